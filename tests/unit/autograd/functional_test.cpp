#include <tenon/autograd/functional.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error_of.h"

namespace tenon::testing {
namespace {

using Tensors = std::vector<Tensor>;

Tensor numbers(std::initializer_list<double> values) { return tensor(std::vector<double>(values), kFloat64); }

void expect_same(const Tensor& found, const Tensor& expected) {
  ASSERT_EQ(found.description(), expected.description());
  EXPECT_TRUE(found.allclose(expected)) << found << "\n" << expected;
}

Tensor cubed(const Tensor& x) { return x * x * x; }

TEST(Functional, VjpAndJvpAreTheTwoProducts) {
  // f(a, b) = (a·b, a²): the derivative is a matrix with blocks diag(b), diag(a), diag(2a), 0.
  auto f = [](const Tensor& a, const Tensor& b) { return Tensors{a * b, a * a}; };
  Tensor a = numbers({1, 2}), b = numbers({3, 5}), u = numbers({1, -1}), w = numbers({2, 0.5});
  autograd::ValueAndDerivative forward = autograd::jvp(f, {a, b}, {u, w});
  expect_same(forward.value[0], a * b);
  expect_same(forward.derivative[0], b * u + a * w);
  expect_same(forward.derivative[1], 2 * a * u);
  autograd::ValueAndDerivative back = autograd::vjp(f, {a, b}, {u, w});
  expect_same(back.derivative[0], b * u + 2 * a * w);
  expect_same(back.derivative[1], a * u);
  EXPECT_FALSE(forward.derivative[0].requires_grad() || back.derivative[0].requires_grad());
}

TEST(Functional, AJacobianHasTheSizesOfOutputAndInput) {
  Tensor x = randn({2, 3}, kFloat64);
  Tensor matrix = autograd::jacobian([](const Tensor& at) { return at.sum(1); }, {x})[0][0];
  Tensor expected = zeros({2, 2, 3}, kFloat64);
  expected[0][0].fill_(1);
  expected[1][1].fill_(1);
  expect_same(matrix, expected);
  // An output without elements, and one that does not depend on the input.
  EXPECT_EQ(autograd::jacobian([](const Tensor& at) { return at.slice(0, 0, 0); }, {x})[0][0].description(),
            "float64[0, 3, 2, 3]");
  auto constant = [](const Tensor&) { return ones({1}, kFloat64); };
  expect_same(autograd::jacobian(constant, {x})[0][0], zeros({1, 2, 3}, kFloat64));
  EXPECT_THAT(error_of([&] { autograd::jacobian(constant, {x}, {.strict = true}); }),
              ::testing::HasSubstr("output 0 of the function does not depend on its inputs (strict)"));
}

TEST(Functional, HessianAndItsProduct) {
  auto f = [](const Tensor& a, const Tensor& b) { return (cubed(a) * b).sum(); };
  Tensor a = numbers({1, 2}), b = numbers({3, 5}), u = numbers({1, -1}), w = numbers({2, 0.5});
  std::vector<Tensors> whole = autograd::hessian(f, {a, b});
  expect_same(whole[0][0], eye(2, kFloat64) * (6 * a * b));
  expect_same(whole[0][1], eye(2, kFloat64) * (3 * a * a));
  expect_same(whole[1][1], zeros({2, 2}, kFloat64));
  Tensors product = autograd::hvp(f, {a, b}, {u, w});
  expect_same(product[0], 6 * a * b * u + 3 * a * a * w);
  expect_same(product[1], 3 * a * a * u);
}

TEST(Functional, WithCreateGraphInputsAreFollowed) {
  Tensor x = numbers({2, 3}).set_requires_grad();
  Tensor slopes =
      autograd::jvp([](const Tensor& at) { return cubed(at); }, {x}, {numbers({1, 1})}, {.create_graph = true})
          .derivative[0];
  expect_same(autograd::grad({slopes.sum()}, {x})[0], (6 * x).detach());
}

TEST(Functional, RefusesWhatHasNoDerivative) {
  Tensor x = numbers({1, 2});
  EXPECT_EQ(error_of([&] { autograd::jvp(cubed, {x}, {ones({3}, kFloat64)}); }),
            "[jvp] v[0] must have the sizes of float64[2], got float64[3]");
  EXPECT_EQ(error_of([&] { autograd::hessian(cubed, {x}); }),
            "[hessian] expected a function with one result of one element, got 1 results, the first float64[2]");
  EXPECT_EQ(error_of([&] { autograd::vjp(cubed, {ones({2}, kInt64)}, {x}); }),
            "[vjp] expected tensors of floating point numbers, got int64[2] at position 0");
}

}  // namespace
}  // namespace tenon::testing
