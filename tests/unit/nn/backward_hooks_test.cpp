// Backward hooks of modules: what they see, what they may change, and when.
#include <tenon/nn/modules.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends.h"
#include "error_of.h"
#include "values_of.h"

namespace tenon {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::values;
using Tensors = std::vector<Tensor>;

// y = 2 x + 3 z, which also uses its first input outside of it.
struct Mixed : nn::Module {
  Tensor operator()(const Tensor& x, const Tensor& z) const {
    return run(x, z, [](const Tensor& a, const Tensor& b) { return a * 2 + b * 3; });
  }
};

TEST(BackwardHooks, see_the_gradients_of_inputs_and_output) {
  Mixed module;
  Tensors inputs, outputs;
  module.register_full_backward_hook([&](const nn::Module&, const Tensors& grad_input, const Tensors& grad_output) {
    inputs = grad_input;
    outputs = grad_output;
    return Tensors();
  });
  Tensor x = ones({2}).set_requires_grad(), z = ones({2}).set_requires_grad();
  // What x gets outside of the module is no gradient of the module's input.
  (module(x, z) * 5 + x * 100).sum().backward();
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(values(inputs[0]), (std::vector<double>{10, 10}));
  EXPECT_EQ(values(inputs[1]), (std::vector<double>{15, 15}));
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(values(outputs[0]), (std::vector<double>{5, 5}));
  EXPECT_EQ(values(x.grad()), (std::vector<double>{110, 110}));
  // An input that requires no grad has none, also if it is the first.
  inputs.clear();
  module(ones({2}), z).sum().backward();
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_FALSE(inputs[0].defined());
  EXPECT_EQ(values(inputs[1]), (std::vector<double>{3, 3}));
}

TEST(BackwardHooks, change_gradients) {
  Mixed module;
  auto pre = module.register_full_backward_pre_hook(
      [](const nn::Module&, const Tensors& grad_output) { return Tensors{grad_output[0] * 10}; });
  auto post = module.register_full_backward_hook(
      [](const nn::Module&, const Tensors& in, const Tensors& out) { return Tensors{in[0] + out[0], in[1] * 0}; });
  Tensor x = ones({2}).set_requires_grad(), z = ones({2}).set_requires_grad();
  module(x, z).sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{30, 30}));
  EXPECT_EQ(values(z.grad()), (std::vector<double>{0, 0}));
  // A call keeps the hooks that it began with.
  x.set_grad(Tensor());
  Tensor before = module(x, z);
  pre();
  post();
  before.sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{30, 30}));
  x.set_grad(Tensor());
  module(x, z).sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{2, 2}));
}

TEST(BackwardHooks, are_called_where_no_input_requires_grad) {
  nn::Linear layer(3, 2);
  int calls = 0;
  layer.register_full_backward_hook([&](const nn::Module& module, const Tensors& grad_input, const Tensors&) {
    EXPECT_EQ(module.kind(), "Linear");
    EXPECT_FALSE(grad_input.at(0).defined());
    ++calls;
    return Tensors();
  });
  layer(ones({1, 3})).sum().backward();
  EXPECT_EQ(calls, 1);
  NoGrad off;
  layer(ones({1, 3}));
  EXPECT_EQ(calls, 1);
}

TEST(BackwardHooks, wrong_counts_are_refused) {
  Mixed module;
  module.register_full_backward_hook(
      [](const nn::Module&, const Tensors& grad_input, const Tensors&) { return Tensors{grad_input[0]}; });
  Tensor x = ones({2}).set_requires_grad();
  EXPECT_THAT(
      error_of([&] { module(x, x).sum().backward(); }),
      HasSubstr("[register_full_backward_hook] a hook of the Module returned 1 gradients: expected 2, or none"));
  // What goes in may not be changed in place: its node would miss it.
  struct Changes : nn::Module {
    Tensor operator()(const Tensor& in) const {
      return run(in, [](const Tensor& each) { return each.mul_(2); });
    }
  } changes;
  changes.register_full_backward_hook([](const nn::Module&, const Tensors&, const Tensors&) { return Tensors(); });
  EXPECT_THAT(error_of([&] { changes(x * 1); }), HasSubstr("BackwardHookFunctionBackward"));
}

// A stack of modules: from the last to the first, eagerly and compiled, at every call.
TEST(BackwardHooks, compiled_is_eager) {
  nn::Sequential model(nn::Linear(3, 4), nn::Tanh(), nn::Linear(4, 2));
  std::vector<std::string> order;
  for (const auto& [name, part] : model.children())
    part.register_full_backward_hook(
        [&order, name = name](const nn::Module&, const Tensors& grad_input, const Tensors&) {
          order.push_back(name);
          return Tensors{grad_input[0].defined() ? grad_input[0] * 2 : Tensor()};
        });
  auto step = [&](Tensor x) { return model(x).square().sum(); };
  auto gradients_of = [&](const auto& function, int64_t rows) {
    manual_seed(1);
    Tensor x = randn({rows, 3}).set_requires_grad();
    model.zero_grad();
    order.clear();
    function(x).backward();
    Tensors all = {x.grad()};
    for (const Tensor& parameter : model.parameters()) all.push_back(parameter.grad());
    return all;
  };
  for (const char* backend : testing::kBackends) {
    auto compiled = compile(step, {.backend = backend});
    for (int64_t rows : {2, 2, 5, 7}) {
      Tensors expected = gradients_of(step, rows);
      EXPECT_EQ(order, (std::vector<std::string>{"2", "1", "0"}));
      Tensors found = gradients_of(compiled, rows);
      EXPECT_EQ(order, (std::vector<std::string>{"2", "1", "0"})) << backend;
      ASSERT_EQ(found.size(), expected.size());
      for (size_t at = 0; at < found.size(); ++at)
        EXPECT_TRUE(allclose(found[at], expected[at], 1e-5, 1e-6)) << backend << " " << rows << " " << at;
    }
  }
}

// Modules of several inputs and outputs, of which some are missing.
TEST(BackwardHooks, of_several_outputs) {
  nn::LSTM layer(3, 4);
  Tensors inputs, outputs;
  int forward_calls = 0;
  layer.register_forward_hook([&](const nn::Module&, const Tensor& input, const Tensor& output) {
    ++forward_calls;
    EXPECT_EQ(input.size(-1), 3);
    return output * 2;
  });
  layer.register_full_backward_hook([&](const nn::Module&, const Tensors& grad_input, const Tensors& grad_output) {
    inputs = grad_input;
    outputs = grad_output;
    return Tensors{grad_input[0] * 10, Tensor(), Tensor()};
  });
  Tensor x = randn({5, 2, 3}).set_requires_grad();
  auto [sequence, state] = layer(x);
  (sequence.sum() + (state.c * 3).sum()).backward();
  EXPECT_EQ(forward_calls, 1);
  ASSERT_EQ(inputs.size(), 3u);
  EXPECT_FALSE(inputs[1].defined() || inputs[2].defined());
  EXPECT_TRUE(allclose(x.grad(), inputs[0] * 10));
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(values(outputs[0]), std::vector<double>(40, 1));
  EXPECT_FALSE(outputs[1].defined());  // nothing used h
  EXPECT_EQ(values(outputs[2]), std::vector<double>(8, 3));
}

// Every layer that is no chain of one input and one output, eager and compiled: the same gradients, and as many calls.
TEST(BackwardHooks, of_every_layer_of_several) {
  struct Case {
    const char* name;
    nn::Module module;
    std::function<Tensor(const Tensor& x, const Tensor& other)> call;
    size_t inputs, outputs;
  };
  nn::LSTM lstm(4, 4);
  nn::GRU gru(4, 4);
  nn::RNN rnn(4, 4);
  nn::RNNCell rnn_cell(4, 4);
  nn::GRUCell gru_cell(4, 4);
  nn::LSTMCell lstm_cell(4, 4);
  nn::MultiheadAttention attention(4, 2);
  nn::TransformerDecoderLayer decoder(4, 2, {.dim_feedforward = 8, .dropout = 0});
  nn::RecurrentSequential stack(nn::GRU(4, 4), nn::LSTM(4, 4));
  const Case cases[] = {
      {"LSTM", lstm,
       [&](const Tensor& x, const Tensor& other) {
         auto [sequence, state] = lstm(x, nn::LSTMState{other.select(0, 0).unsqueeze(0), zeros({1, 2, 4})});
         return sequence.sum() + state.h.square().sum() + state.c.sin().sum();
       },
       3, 3},
      {"GRU", gru,
       [&](const Tensor& x, const Tensor& other) {
         auto [sequence, last] = gru(x, other.select(0, 0).unsqueeze(0));
         return sequence.sum() + last.square().sum();
       },
       2, 2},
      {"RNN", rnn, [&](const Tensor& x, const Tensor&) { return std::get<1>(rnn(x)).square().sum(); }, 2, 2},
      {"RNNCell", rnn_cell, [&](const Tensor& x, const Tensor& other) { return rnn_cell(x[0], other[0]).sum(); }, 2, 1},
      {"GRUCell", gru_cell, [&](const Tensor& x, const Tensor&) { return gru_cell(x[0]).sum(); }, 2, 1},
      {"LSTMCell", lstm_cell,
       [&](const Tensor& x, const Tensor& other) {
         nn::LSTMState next = lstm_cell(x[0], nn::LSTMState{other[0], other[1]});
         return next.h.sum() + next.c.square().sum();
       },
       3, 2},
      {"MultiheadAttention", attention,
       [&](const Tensor& x, const Tensor& other) {
         auto [result, weights] = attention(x, other, other);
         return result.sum() + weights.square().sum();
       },
       3, 2},
      {"MultiheadAttention without weights", attention,
       [&](const Tensor& x, const Tensor& other) { return std::get<0>(attention(x, other, x, {}, false)).sum(); }, 3,
       2},
      {"TransformerDecoderLayer", decoder,
       [&](const Tensor& x, const Tensor& other) { return decoder(x, other).sin().sum(); }, 2, 1},
      {"RecurrentSequential", stack, [&](const Tensor& x, const Tensor&) { return std::get<0>(stack(x)).sum(); }, 1, 4},
  };
  for (const Case& each : cases) {
    int calls = 0;
    size_t inputs = 0, outputs = 0;
    auto remove =
        each.module.register_full_backward_hook([&](const nn::Module&, const Tensors& in, const Tensors& out) {
          ++calls;
          inputs = in.size();
          outputs = out.size();
          Tensors changed;
          for (const Tensor& gradient : in) changed.push_back(gradient.defined() ? gradient * 2 : gradient);
          return changed;
        });
    auto gradients = [&](const auto& function, int64_t length) {
      manual_seed(7);
      Tensor x = randn({length, 2, 4}).set_requires_grad(), other = randn({length, 2, 4}).set_requires_grad();
      calls = 0;
      function(x, other).backward();
      EXPECT_EQ(calls, 1) << each.name;
      EXPECT_EQ(inputs, each.inputs) << each.name;
      EXPECT_EQ(outputs, each.outputs) << each.name;
      return std::pair(x.grad(), other.grad().defined() ? other.grad() : zeros_like(other));
    };
    for (const char* backend : testing::kBackends) {
      auto f = compile(each.call, {.backend = backend});
      for (int64_t length : {3, 3, 4}) {
        auto [x, other] = gradients(each.call, length);
        auto [x_compiled, other_compiled] = gradients(f, length);
        EXPECT_TRUE(allclose(x_compiled, x, 1e-5, 1e-6)) << each.name << ", " << backend << ", " << length;
        EXPECT_TRUE(allclose(other_compiled, other, 1e-5, 1e-6)) << each.name << ", " << backend << ", " << length;
      }
    }
    remove();
  }
}

}  // namespace
}  // namespace tenon
