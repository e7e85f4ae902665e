// Gradients against closed forms and central differences.
#include "unit/autograd/helpers.h"

namespace tenon::testing {
namespace {

Tensor x23() { return real({0.3, -1.2, 0.8, 1.7, -0.4, 2.1}, {2, 3}); }
Tensor positive23() { return real({0.3, 1.2, 0.8, 1.7, 0.4, 2.1}, {2, 3}); }
Tensor row3() { return real({0.9, -0.6, 1.4}); }

TEST(Gradients, ClosedForms) {
  Tensor x = leaf({0.5, -1.0, 2.0});
  (x.sin() * 3).sum().backward();
  expect_near(x.grad(), {3 * std::cos(0.5), 3 * std::cos(-1.0), 3 * std::cos(2.0)});
  Tensor y = leaf({0.5, -1.0, 2.0});
  (y * y * y).sum().backward();
  expect_near(y.grad(), {0.75, 3.0, 12.0});
}

TEST(Gradients, Unary) {
  for (auto* f : {neg, sin, cos, tanh, sigmoid, exp, erf, abs, relu})
    check_gradients([f](const std::vector<Tensor>& in) { return f(in[0]); }, {x23()});
  for (auto* f : {log, sqrt, rsqrt, reciprocal})
    check_gradients([f](const std::vector<Tensor>& in) { return f(in[0]); }, {positive23()});
}

TEST(Gradients, BinaryWithBroadcasting) {
  auto check = [](auto f) {
    Function g = [f](const std::vector<Tensor>& in) { return f(in[0], in[1]); };
    check_gradients(g, {positive23(), real({0.7, 1.6, 1.1})});
    check_gradients(g, {positive23(), real({0.7, 1.6}, {2, 1})});
    check_gradients(g, {real({0.7, 1.6}, {2, 1}), row3().abs()});
  };
  check([](const Tensor& a, const Tensor& b) { return a + b; });
  check([](const Tensor& a, const Tensor& b) { return a - b; });
  check([](const Tensor& a, const Tensor& b) { return a * b; });
  check([](const Tensor& a, const Tensor& b) { return a / b; });
  check([](const Tensor& a, const Tensor& b) { return pow(a, b); });
  check([](const Tensor& a, const Tensor& b) { return maximum(a, b); });
  check([](const Tensor& a, const Tensor& b) { return minimum(a, b); });
  check([](const Tensor& a, const Tensor& b) { return where(a > 1, a, b * 2); });
  check([](const Tensor& a, const Tensor& b) { return add(a, b, 2.5); });
}

TEST(Gradients, Scalars) {
  check_gradients([](const std::vector<Tensor>& in) { return 2 - in[0] * 3 / 4 + 1; }, {x23()});
  check_gradients([](const std::vector<Tensor>& in) { return pow(in[0], 3); }, {x23()});
  check_gradients([](const std::vector<Tensor>& in) { return pow(in[0], 1.7); }, {positive23()});
}

TEST(Gradients, Reductions) {
  check_gradients([](const std::vector<Tensor>& in) { return in[0].sum(1); }, {x23()});
  check_gradients([](const std::vector<Tensor>& in) { return in[0].sum({0, 1}, true); }, {x23()});
  check_gradients([](const std::vector<Tensor>& in) { return in[0].mean(0); }, {x23()});
  check_gradients([](const std::vector<Tensor>& in) { return in[0].amax(1); }, {x23()});
  check_gradients([](const std::vector<Tensor>& in) { return in[0].amin(0, true); }, {x23()});
}

TEST(Gradients, Views) {
  auto check = [](auto f) { check_gradients([f](const std::vector<Tensor>& in) { return f(in[0]).sin(); }, {x23()}); };
  check([](const Tensor& x) { return x.view({3, 2}); });
  check([](const Tensor& x) { return x.reshape({6}); });
  check([](const Tensor& x) { return x.t().reshape({6}); });
  check([](const Tensor& x) { return x.permute({1, 0}); });
  check([](const Tensor& x) { return x.transpose(0, 1); });
  check([](const Tensor& x) { return x.unsqueeze(1).squeeze(1); });
  check([](const Tensor& x) { return x.unsqueeze(0).expand({2, 2, 3}); });
  check([](const Tensor& x) { return x.slice(1, 1, 3); });
  check([](const Tensor& x) { return x.slice(1, 0, 3, 2); });
  check([](const Tensor& x) { return x.select(0, 1); });
  check([](const Tensor& x) { return x.contiguous().clone(); });
}

TEST(Gradients, Cat) {
  check_gradients([](const std::vector<Tensor>& in) { return cat(std::vector{in[0], in[1], in[0]}, 0).sin(); },
                  {x23(), real({1, 2, 3}, {1, 3})});
}

TEST(Gradients, Products) {
  Tensor a = x23(), b = real({0.2, -0.7, 1.1, 0.5, -0.3, 0.9}, {3, 2}), bias = real({0.4, -0.8});
  check_gradients([](const std::vector<Tensor>& in) { return mm(in[0], in[1]).sin(); }, {a, b});
  check_gradients([](const std::vector<Tensor>& in) { return mm(in[0].t(), in[1].t()); }, {a, b});
  check_gradients([](const std::vector<Tensor>& in) { return addmm(in[0], in[1], in[2], 0.5, 2).sin(); }, {bias, a, b});
  check_gradients([](const std::vector<Tensor>& in) { return matmul(in[0], in[1]); }, {a, row3()});
  check_gradients([](const std::vector<Tensor>& in) { return linear(in[0], in[1].t(), in[2]).tanh(); }, {a, b, bias});
  check_second_gradients([](const std::vector<Tensor>& in) { return mm(in[0], in[1]).tanh(); }, {a, b});
}

TEST(Gradients, SoftmaxAndLosses) {
  check_gradients([](const std::vector<Tensor>& in) { return softmax(in[0], 1); }, {x23()});
  check_gradients([](const std::vector<Tensor>& in) { return log_softmax(in[0], 0); }, {x23()});
  check_gradients([](const std::vector<Tensor>& in) { return mse_loss(in[0], in[1]); }, {x23(), positive23()});
  check_gradients([](const std::vector<Tensor>& in) { return nll_loss(in[0], tensor({2, 0}), real({0.5, 2.0, 1.5})); },
                  {x23()});
  check_gradients([](const std::vector<Tensor>& in) { return cross_entropy_loss(in[0], tensor({2, 0})); }, {x23()});
  check_gradients([](const std::vector<Tensor>& in) { return gather(in[0], 1, tensor({2, 0, 0, 1}).view({2, 2})); },
                  {x23()});
  check_second_gradients([](const std::vector<Tensor>& in) { return cross_entropy_loss(in[0], tensor({2, 0})); },
                         {x23()});
}

TEST(Gradients, OverwritingOperators) {
  check_gradients([](const std::vector<Tensor>& in) { return in[0].clone().copy_(in[1]).sin(); }, {x23(), row3()});
}

TEST(Gradients, Second) {
  auto one = [](auto f) { return Function([f](const std::vector<Tensor>& in) { return f(in[0]); }); };
  check_second_gradients(one([](const Tensor& x) { return x.sin(); }), {x23()});
  check_second_gradients(one([](const Tensor& x) { return x.tanh() * x; }), {x23()});
  check_second_gradients(one([](const Tensor& x) { return x.exp(); }), {x23()});
  check_second_gradients(one([](const Tensor& x) { return x.sigmoid().sum(1); }), {x23()});
  check_second_gradients(one([](const Tensor& x) { return (x * x).select(0, 1).log(); }), {positive23()});
  check_second_gradients([](const std::vector<Tensor>& in) { return in[0] / in[1]; }, {x23(), row3()});
  check_second_gradients([](const std::vector<Tensor>& in) { return in[0].clone().mul_(in[1]).exp_(); },
                         {x23(), row3()});
}

TEST(Gradients, ThirdOfACube) {
  Tensor x = leaf({2.0});
  Tensor y = x * x * x;
  Tensor first = autograd::grad({y}, {x}, {}, true, true)[0];
  Tensor second = autograd::grad({first}, {x}, {}, true, true)[0];
  Tensor third = autograd::grad({second}, {x})[0];
  expect_near(first, {12});
  expect_near(second, {12});
  expect_near(third, {6});
}

TEST(Gradients, MixedDtypesComeBackInTheirOwn) {
  Tensor narrow = tensor({1.5f, 2.5f}).set_requires_grad();
  Tensor wide = leaf({2.0, 4.0});
  (narrow * wide).sum().backward();
  EXPECT_EQ(narrow.grad().dtype(), kFloat32);
  EXPECT_EQ(wide.grad().dtype(), kFloat64);
  expect_near(narrow.grad(), {2, 4});
  expect_near(wide.grad(), {1.5, 2.5});
}

TEST(Gradients, ComparisonsCarryNone) {
  Tensor x = leaf({1.0, -1.0});
  EXPECT_FALSE((x > 0).requires_grad());
  EXPECT_FALSE(zeros_like(x).requires_grad());
  EXPECT_FALSE(x.detach().requires_grad());
  EXPECT_TRUE(where(x > 0, x, x * 2).requires_grad());
}

}  // namespace
}  // namespace tenon::testing
