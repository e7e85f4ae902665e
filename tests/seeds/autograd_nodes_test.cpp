// The autograd suite: nodes while they run, nodes with several results, and nodes of second derivatives.
#include "autograd.h"

#include <tenon/dispatch/call_mode.h>
#include <tenon/nn/modules.h>

namespace tenon {
namespace {

using namespace testing;
using autograd::grad_fn;

// A gradient that nobody else holds becomes the leaf's as it is: where PyTorch detaches it twice, nothing is called
// here. Operators are named with their overloads, and a sum's gradient is viewed before it is expanded.
TEST_P(TestAutograd, current_node) {
  std::vector<std::string> log;
  dispatch::CallMode mode([&](dispatch::Call& call, const std::function<void()>& proceed) {
    const autograd::Node* node = autograd::current_node();
    log.push_back(fmt::format("{} in {}", call.op.name(), node ? node->name() : "none"));
    proceed();
  });
  Tensor a = rand({10}, TensorOptions()).set_requires_grad(), b = a.mul(2).div(3).sum();
  EXPECT_THAT(log, ::testing::ElementsAre("aten::rand in none", "aten::mul.Scalar in none", "aten::div.Scalar in none",
                                          "aten::sum in none"));
  log.clear();
  b.backward();
  ASSERT_GE(log.size(), 4u);
  EXPECT_EQ(log[0], "aten::ones_like in none");
  EXPECT_THAT(log, ::testing::Contains("aten::expand in SumBackward0"));
  EXPECT_THAT(log, ::testing::Contains("aten::div.Scalar in DivBackward1"));
  EXPECT_THAT(log, ::testing::Contains("aten::mul.Scalar in MulBackward1"));
  for (const std::string& each : log) EXPECT_THAT(each, Not(HasSubstr("AccumulateGrad")));
  EXPECT_EQ(autograd::current_node(), nullptr);
  expect_filled(a.grad(), 2.0 / 3);
}

struct Scaled : Function<Scaled> {
  static std::tuple<Tensor, int, Tensor> forward(AutogradContext* ctx, const Tensor& x, int number, const Tensor& y) {
    ctx->saved_data["number"] = number;
    return {x * (2.0 * number), number, y * (2.0 * number)};
  }
  static std::vector<Tensor> backward(AutogradContext* ctx, std::vector<Tensor> grads) {
    double factor = 2.0 * static_cast<double>(ctx->saved_data["number"].integer());
    return {grads[0] * factor, Tensor(), grads[2] * factor};
  }
};

TEST_P(TestAutograd, grad_fn_prehooks_multiple_outputs) {
  Tensor b = rand({3, 3}).set_requires_grad();
  auto [variance, mean] = var_mean(b, 0);
  (variance + mean).sum().backward();
  int calls = 0;
  Tensor c = b.detach().clone().set_requires_grad();
  auto [other_variance, other_mean] = var_mean(c, 0);
  EXPECT_EQ(grad_fn(other_variance), grad_fn(other_mean));
  EXPECT_EQ(grad_fn(other_variance)->name(), "VarMeanBackward0");
  autograd::register_prehook(grad_fn(other_variance), [&](std::vector<Tensor>& gradients) {
    ++calls;
    for (Tensor& gradient : gradients) gradient = gradient * 2;
  });
  (other_variance + other_mean).sum().backward();
  EXPECT_EQ(calls, 1);
  expect_near(c.grad(), b.grad() * 2);

  Tensor x = rand({3, 3}).set_requires_grad(), y = rand({3, 3}).set_requires_grad();
  auto [first, number, second] = Scaled::apply(x, 3, y);
  calls = 0;
  autograd::register_prehook(grad_fn(first), [&](std::vector<Tensor>& gradients) {
    ++calls;
    ASSERT_EQ(gradients.size(), 3u);
    EXPECT_FALSE(gradients[1].defined());
    gradients[0] = gradients[0] * 2;
    gradients[2] = gradients[2] * 2;
  });
  (first + second).sum().backward();
  EXPECT_EQ(number, 3);
  EXPECT_EQ(calls, 1);
  expect_filled(x.grad(), 4 * 3);
  expect_filled(y.grad(), 4 * 3);
}

TEST_P(TestAutograd, inplace_on_view_backward) {
  nn::InstanceNorm2d norm(2);
  Tensor x = ones({1, 1, 1, 2}).set_requires_grad();
  // (ReLU as a module that changes its input has no counterpart; the function has.)
  Tensor y = norm(x).relu_().pow(2);
  Tensor g = autograd::grad({y}, {x}, {ones({1, 1, 1, 2})}, true, true)[0];
  autograd::grad({g.sum()}, {x});
  expect_filled(x, 1);

  Tensor inputs = ones({1, 3, 256, 256}).set_requires_grad();
  Tensor view = (inputs + 1).view_as(inputs);
  Tensor probability = threshold_(view, 0, 0).sigmoid();
  Tensor gradients = autograd::grad({probability}, {inputs}, {ones({1, 3, 256, 256})}, true, true)[0];
  gradients.sum().backward();
  double s = 1 / (1 + std::exp(-2.0)), second = s * (1 - s) * (1 - 2 * s);
  expect_filled(inputs.grad(), second);
  // The second-order node is on the way from the penalty.
  std::vector<Ref<autograd::Node>> waiting = {grad_fn(gradients)};
  bool found = false;
  for (size_t at = 0; at < waiting.size() && at < 100; ++at) {
    found |= waiting[at]->name() == "ThresholdBackwardBackward0";
    for (const autograd::Edge& edge : waiting[at]->next_edges())
      if (edge.valid()) waiting.push_back(edge.node);
  }
  // (The gradients of a captured walk have one history, that of what was compiled.)
  EXPECT_EQ(found, !GetParam());
}

}  // namespace
}  // namespace tenon
