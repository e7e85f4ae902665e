// Seed 002: modules, graphs taken out of the compiler and put in again, and backends of the user's.
#include "aot.h"

#include <tenon/dispatch/library.h>
#include <tenon/dispatch/packet.h>
#include <tenon/graph/split.h>

namespace tenon {
namespace {

using testing::difference;
using testing::leaf;
using testing::on_both_backends;
using testing::recording;
using testing::run_graph;
using testing::same_bits;

aot::GraphCompiler compiler_of(const char* backend) {
  return std::string_view(backend) == "inductor" ? aot::scheduled : aot::interpreted;
}

TEST(AotAutogradFallbackTests, LSTM) {
  struct Repro : nn::Module {
    nn::LSTM lstm = submodule("self_mod_model_lstm_lstm", nn::LSTM(64, 64, {.num_layers = 2, .bidirectional = true}));
    auto operator()(const Tensor& permuted) const {
      auto [sequence, state] = lstm(permuted);
      return std::tuple(sequence, state.h, state.c);
    }
  };
  Repro module;
  Tensor input = randn({4, 64, 92}).permute({2, 0, 1});
  ASSERT_EQ((std::vector<int64_t>(input.strides().begin(), input.strides().end())),
            (std::vector<int64_t>{1, 5888, 92}));
  auto [sequence, h, c] = module(input);
  on_both_backends([&, sequence = sequence, h = h, c = c](const char* backend) {
    auto f = compile([&](Tensor permuted) { return module(permuted); }, {.backend = backend});
    auto [found, found_h, found_c] = f(input);
    EXPECT_LT(difference(found.detach(), sequence.detach()), 1e-5);
    EXPECT_LT(difference(found_h.detach(), h.detach()), 1e-5);
    EXPECT_LT(difference(found_c.detach(), c.detach()), 1e-5);
    EXPECT_EQ(f.compile_count(), 1);
  });
}

// A module whose forward hands what it holds to a function of its own. A graph that was taken out of `compile()` by a
// backend has them as inputs.
TEST(AotAutogradFallbackTests, call_fn_with_non_const_inputs_aot_safe) {
  struct SpecialForward : nn::Module {
    nn::Conv2d conv = submodule("conv", nn::Conv2d(3, 20, nn::Pair(5, 5)));
    Tensor convolve(const Tensor& x, const Tensor& weight, const Tensor& bias) const { return conv2d(x, weight, bias); }
    Tensor operator()(const Tensor& x) const {
      Tensor weight = conv.weight.get(), bias = conv.bias.get();
      return convolve(x, weight, bias);
    }
  };
  SpecialForward module;
  Tensor x = randn({3, 10, 10}), real = module(x);
  std::vector<graph::Graph> graphs;
  compile([&](Tensor image) { return module(image); }, {.fullgraph = true, .backend = recording(graphs)})(x);
  ASSERT_EQ(graphs.size(), 1u);
  auto exported = [&](Tensor image) {
    return run_graph(graphs[0], {image, module.conv.weight.get(), module.conv.bias.get()})[0].tensor();
  };
  EXPECT_LT(difference(exported(x).detach(), real.detach()), 1e-6);
  on_both_backends([&](const char* backend) {
    auto f = compile(exported, {.backend = backend});
    EXPECT_LT(difference(f(x).detach(), real.detach()), 1e-5);
    EXPECT_EQ(f.compile_count(), 1);
  });
}

TEST(AotAutogradFallbackTests, call_fn_with_non_const_inputs_aot_unsafe) {
  struct SpecialForward : nn::Module {
    Tensor bad_forward(const Tensor& parameter, const Tensor& y) const {
      bool before = autograd::grad_enabled();
      autograd::set_grad_enabled(false);
      parameter.add_(y);
      autograd::set_grad_enabled(before);
      return y;
    }
    Tensor operator()(const Tensor& x, const Tensor& y) const { return bad_forward(x, y); }
  };
  SpecialForward module;
  Tensor x = leaf({4}), y = randn({4}), expected = x.detach().clone();
  auto expect_written = [&](const Tensor& result) {
    expected.add_(y);
    EXPECT_TRUE(same_bits(result, y));
    EXPECT_TRUE(same_bits(x.detach(), expected));
    EXPECT_TRUE(x.is_leaf() && x.requires_grad());
  };
  expect_written(module(x, y));
  std::vector<graph::Graph> graphs;
  expect_written(compile(module, {.fullgraph = true, .backend = recording(graphs)})(x, y));
  ASSERT_EQ(graphs.size(), 1u);
  auto exported = [&](Tensor parameter, Tensor other) { return run_graph(graphs[0], {parameter, other})[0].tensor(); };
  expect_written(exported(x, y));
  on_both_backends([&](const char* backend) { expect_written(compile(exported, {.backend = backend})(x, y)); });
}

TEST(AotAutogradFallbackTests, call_fn_with_non_const_inputs_aot_unsafe_control_flow) {
  struct SpecialForward : nn::Module {
    Tensor bad_forward(const Tensor& parameter, const Tensor& y) const {
      if ((y[0][0] < 3).item<bool>()) return y + parameter;
      return parameter * y;
    }
    Tensor operator()(const Tensor& x, const Tensor& y) const {
      Tensor a = x * y;
      a = bad_forward(a, a);
      Tensor b = x + y;
      return a * b;
    }
  };
  SpecialForward module;
  Tensor x = leaf({2, 2}), y = randn({2, 2}), real = module(x, y);
  std::vector<graph::Graph> graphs;
  auto optimized = compile(module, {.backend = recording(graphs)});
  EXPECT_TRUE(same_bits(optimized(x, y).detach(), real.detach()));
  // Python splits at the call of a method that breaks too, which makes four graphs of these two.
  EXPECT_EQ(graphs.size(), 2u);
  size_t operators = 0;
  for (const graph::Graph& graph : graphs) operators += graph.nodes.size();
  EXPECT_EQ(operators, 7u) << "product, two selects, comparison; sum, sum, product";
  on_both_backends([&](const char* backend) {
    auto f = compile(optimized, {.backend = backend});
    for (int call = 0; call < 2; ++call) EXPECT_TRUE(same_bits(f(x, y).detach(), real.detach()));
  });
}

TEST(AotAutogradFallbackTests, nn_parameter_construction) {
  auto function = [](Tensor x) {
    Tensor y = x.sin();
    Tensor z = ones({1}).set_requires_grad();  // what a parameter is here: a leaf that requires grad
    return y + z;
  };
  on_both_backends([&](const char* backend) {
    auto f = compile(function, {.backend = backend});
    Tensor x = rand({4, 4});
    for (int call = 0; call < 2; ++call) {
      Tensor result = f(x), expected = function(x);
      EXPECT_TRUE(same_bits(result.detach(), expected.detach()));
      EXPECT_TRUE(expected.requires_grad());
      EXPECT_TRUE(result.requires_grad());
    }
  });
}

TEST(AotAutogradFallbackTests, aot_export_joint_simple_repro) {
  struct Model : nn::Module {
    nn::Linear linear = submodule("linear", nn::Linear(5, 7));
    Tensor operator()(const Tensor& x) const { return linear(x); }
  };
  Model model;
  Tensor x = rand({3, 4, 5});
  on_both_backends([&](const char* backend) {
    size_t outputs = 0;
    Backend mini = [&](const graph::Graph& graph) -> GraphFunction {
      aot::JointGraph forward = aot::export_joint(graph, false);
      outputs = forward.graph.outputs.size();
      return compiler_of(backend)(forward.graph);
    };
    auto compiled = compile([&](Tensor input) { return model(input); }, {.backend = mini});
    EXPECT_LT(difference(compiled(x).detach(), model(x).detach()), 1e-6);
    EXPECT_EQ(outputs, 1u) << "forward alone";
  });
  // With backward, the same graph gives the gradients of what requires grad.
  Tensor weight = model.linear.weight.get(), bias = model.linear.bias.get();
  aot::JointGraph joint = export_joint([](Tensor input, Tensor w, Tensor b) { return linear(input, w, b); },
                                       Tracing::Fake, x, weight, bias);
  Tensor along = randn({3, 4, 7});
  const Tensor inputs[] = {x, weight.detach(), bias.detach(), along};
  std::vector<dispatch::Value> found = graph::interpret(joint.graph, inputs);
  std::vector<Tensor> expected = autograd::grad({model(x)}, {weight, bias}, {along});
  ASSERT_EQ(found.size(), 3u);
  for (size_t at = 0; at < 2; ++at) EXPECT_LT(difference(found[at + 1].tensor(), expected[at]), 1e-5);
}

// y and z are one tensor if there are few elements.
std::tuple<Tensor, Tensor> maybe_dupe(const Tensor& x) {
  Tensor y = x + 1, z = x + 2;
  return x.numel() < 5 ? std::tuple(y, y) : std::tuple(y, z);
}

TEST(AotAutogradFallbackTests, multiple_aot_autograd_calls_dupe_args) {
  dispatch::Library lib("custom", dispatch::Library::Kind::Def);
  lib.def("maybe_dupe_op(Tensor a) -> (Tensor, Tensor)");
  lib.impl("maybe_dupe_op", maybe_dupe, "CPU");
  lib.impl("maybe_dupe_op", maybe_dupe, "Meta");
  auto function = [](Tensor a) {
    dispatch::Results results = dispatch::call_by_name("custom::maybe_dupe_op", {dispatch::Value(a)});
    return std::tuple(results[0].tensor().mul_(results[1].tensor()));
  };
  on_both_backends([&](const char* backend) {
    std::vector<size_t> arguments;  // of the second piece
    Backend in_pieces = [&](const graph::Graph& whole) -> GraphFunction {
      std::vector<graph::Piece> pieces =
          graph::split(whole, [](const graph::Node& node) { return node.op->brief_name().starts_with("mul") ? 1 : 0; });
      EXPECT_EQ(pieces.size(), 2u);
      arguments.push_back(pieces.back().inputs.size());
      std::vector<graph::PieceFunction> functions;
      for (const graph::Piece& piece : pieces) functions.push_back(aot::compile(piece.graph, compiler_of(backend)).run);
      return [whole, pieces, functions](std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
        return graph::run_pieces(whole, pieces, functions, inputs, symbols);
      };
    };
    auto f = compile(function, {.dynamic = Dynamic::Off, .backend = in_pieces});
    EXPECT_TRUE(same_bits(std::get<0>(f(ones({4}))), full({4}, 4.0)));
    EXPECT_TRUE(same_bits(std::get<0>(f(ones({6}))), full({6}, 6.0)));
    EXPECT_EQ(arguments, (std::vector<size_t>{1, 2}));
    EXPECT_EQ(f.compile_count(), 2);
  });
}

}  // namespace
}  // namespace tenon
