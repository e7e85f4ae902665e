// Seed 001: checkpointed parts of a model, in walks that are captured.
#include "compiled_autograd.h"

#include <tenon/autograd/checkpoint.h>

namespace tenon {
namespace {

using namespace testing;

// The seed's model on the CPU, with 256 features: a compiled function inside checkpointed modules.
struct ModuleWithCompiled : nn::Module {
  static constexpr int64_t kFeatures = 256;
  nn::Linear first = submodule("linear_1", nn::Linear(kFeatures, kFeatures));
  nn::Linear second = submodule("linear_2", nn::Linear(kFeatures, kFeatures, {.bias = false}));
  Cell<Tensor> bias = parameter("linear_2_bias", zeros({kFeatures}));

  Tensor operator()(const Tensor& input) const {
    static const auto bias_sigmoid_mul =
        compile([](Tensor x1, Tensor x2, Tensor added) { return x1 * (x2 + added).sigmoid(); });
    return bias_sigmoid_mul(first(input), second(input), bias.get());
  }
};

struct Model : nn::Module {
  ModuleWithCompiled one = submodule("module_with_jit_1", ModuleWithCompiled());
  ModuleWithCompiled two = submodule("module_with_jit_2", ModuleWithCompiled());

  Tensor operator()(const Tensor& x, bool checkpointing) const {
    auto forward = [this](const Tensor& input) {
      Tensor y = input + one(input);
      return y + two(y.transpose(-2, -3)).transpose(-2, -3);
    };
    return checkpointing ? autograd::checkpoint(forward, x, {.use_reentrant = true}) : forward(x);
  }
};

TEST_F(TestCompiledAutograd, issue106555) {
  manual_seed(1234567890);
  Model model;
  Tensor input = randn({1, 8, 16, ModuleWithCompiled::kFeatures}).set_requires_grad();
  Tensor target = randn({1, 8, 16, ModuleWithCompiled::kFeatures});
  auto train = [&](bool checkpointing) {
    model.zero_grad();
    (target - model(input.clone(), checkpointing)).abs().mean().backward();
    Tensors found;
    add_gradients(found, model);
    return found;
  };
  Tensors expected = train(false);
  compiled_autograd::Enable on;
  for (int round = 0; round < 10; ++round) expect_equal(train(true), expected);
  // Two walks, one inside the other: each is captured once.
  EXPECT_EQ(captures(), 2);
}

// Attention, with dropout so that there is a random state to keep; the seed's operator has one without using it.
Tensor attention(const Tensor& query, const Tensor& key) {
  Tensor scores = matmul(query, key.transpose(-2, -1)) / std::sqrt(static_cast<double>(query.size(-1).plain()));
  return matmul(dropout(softmax(scores, -1), 0.5, true), key);
}

TEST_F(TestCompiledAutograd, trace_run_with_rng_state) {
  auto g = [](Tensor q1, Tensor k1, Tensor q2, Tensor k2) {
    auto checkpointed = [](const Tensors& inputs) { return Tensors{attention(inputs[0], inputs[1])}; };
    Tensor y1 = attention(q1, k1), y2 = autograd::checkpoint_many(checkpointed, {q2, k2})[0];
    Tensor y = y1 * y2;
    return matmul(y, y);
  };
  auto f = [&] {
    Tensors leaves;
    for (int at = 0; at < 4; ++at) leaves.push_back(leaf({1, 1, 4, 4}));
    Tensor out = compile(g, {.fullgraph = true})(leaves[0], leaves[1], leaves[2], leaves[3]);
    out.sum().backward();
    Tensors found = {out.detach()};
    for (const Tensor& each : leaves) found.push_back(each.grad());
    return found;
  };
  // What backward draws again belongs to the call of forward: its graph is run as it is, between those of the walk.
  check_output_and_recompiles(f, {1, 1}, {.fullgraph = false});
  // And it is eager's, which runs the checkpointed part again with the numbers of the first time.
  auto eager = [&] {
    manual_seed(5);
    Tensors leaves;
    for (int at = 0; at < 4; ++at) leaves.push_back(leaf({1, 1, 4, 4}));
    g(leaves[0], leaves[1], leaves[2], leaves[3]).sum().backward();
    Tensors found;
    for (const Tensor& each : leaves) found.push_back(each.grad());
    return found;
  };
  Tensors expected = eager();
  compiled_autograd::Enable on;
  for (int round = 0; round < 3; ++round) expect_equal(eager(), expected);
}

}  // namespace
}  // namespace tenon
