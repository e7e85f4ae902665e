#include <tenon/numerics/conjugate_gradients.h>
#include <tenon/numerics/stencil.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error_of.h"
#include "values_of.h"

#include <tenon/tenon.h>

namespace tenon::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

// Symmetric, with the eigenvalues of 4·(2 - 2·cos) and more: positive.
const Tensor& matrix() {
  static const Tensor made = tensor({{4.0, 1.0, 0.0}, {1.0, 3.0, 1.0}, {0.0, 1.0, 2.0}}, kFloat64);
  return made;
}
Tensor times_matrix(const Tensor& v) { return matrix().matmul(v); }

TEST(ConjugateGradients, SolvesInAsManyStepsAsThereAreElements) {
  Tensor right = tensor({1.0, 2.0, 3.0}, kFloat64);
  numerics::CGResult found = numerics::cg(times_matrix, right, {.tolerance = 1e-12});
  EXPECT_TRUE(found.converged);
  EXPECT_FALSE(found.indefinite);
  EXPECT_LE(found.iterations, 3);
  EXPECT_LE(found.residual, 1e-11);
  EXPECT_TRUE(times_matrix(found.x).allclose(right, 1e-10));
}

TEST(ConjugateGradients, TensorsOfAnyShapeAreOneVector) {
  auto map = [](const Tensor& u) { return u - 2.0 * numerics::laplacian(u); };
  Tensor wanted = arange(20).to(kFloat64).view({4, 5});
  numerics::CGResult found = numerics::cg(map, map(wanted), {.tolerance = 1e-12});
  EXPECT_TRUE(found.converged);
  EXPECT_TRUE(found.x.allclose(wanted, 1e-9, 1e-9));
}

TEST(ConjugateGradients, AStartThatIsRightNeedsNoStep) {
  Tensor x = tensor({1.0, -1.0, 2.0}, kFloat64);
  numerics::CGResult found = numerics::cg(times_matrix, times_matrix(x), {.start = x});
  EXPECT_EQ(found.iterations, 0);
  EXPECT_TRUE(found.converged);
  EXPECT_EQ(values(found.x), values(x));
}

TEST(ConjugateGradients, APreconditionerThatIsTheInverseNeedsOne) {
  Tensor scale = tensor({1.0, 10.0, 100.0, 1000.0}, kFloat64);
  auto map = [&](const Tensor& v) { return scale * v; };
  Tensor right = ones({4}, kFloat64);
  EXPECT_EQ(numerics::cg(map, right, {.tolerance = 1e-10}).iterations, 4);
  numerics::CGOptions options{.tolerance = 1e-10, .preconditioner = [&](const Tensor& r) { return r / scale; }};
  numerics::CGResult found = numerics::cg(map, right, options);
  EXPECT_EQ(found.iterations, 1);
  EXPECT_THAT(values(found.x), Pointwise(DoubleNear(1e-12), {1.0, 0.1, 0.01, 0.001}));
}

TEST(ConjugateGradients, SaysThatAMapIsNotPositive) {
  Tensor scale = tensor({1.0, -1.0}, kFloat64);
  numerics::CGResult found = numerics::cg([&](const Tensor& v) { return scale * v; }, tensor({1.0, 2.0}, kFloat64));
  EXPECT_TRUE(found.indefinite);
  EXPECT_FALSE(found.converged);
  EXPECT_EQ(found.iterations, 0);
}

TEST(ConjugateGradients, EndsWhereItMay) {
  Tensor right = tensor({1.0, 2.0, 3.0}, kFloat64);
  numerics::CGResult found = numerics::cg(times_matrix, right, {.tolerance = 1e-12, .max_iterations = 1});
  EXPECT_EQ(found.iterations, 1);
  EXPECT_FALSE(found.converged);
  EXPECT_GT(found.residual, 1e-3);
  // Zeros are solved by zeros, and what is not a number by nothing.
  EXPECT_THAT(values(numerics::cg(times_matrix, zeros({3}, kFloat64)).x), ElementsAre(0, 0, 0));
  numerics::CGResult none = numerics::cg([](const Tensor& v) { return v * std::nan(""); }, right);
  EXPECT_FALSE(none.converged || none.indefinite);
}

TEST(ConjugateGradients, HasNoHistoryAndLeavesTheStartAlone) {
  Tensor right = ones({3}, kFloat64).set_requires_grad(), start = zeros({3}, kFloat64);
  numerics::CGResult found = numerics::cg(times_matrix, right, {.start = start});
  EXPECT_FALSE(found.x.requires_grad());
  EXPECT_THAT(values(start), ElementsAre(0, 0, 0));
}

TEST(ConjugateGradients, Refusals) {
  Tensor right = ones({3}, kFloat64);
  EXPECT_EQ(error_of([&] { (void)numerics::cg(times_matrix, ones({3}, kInt64)); }),
            "[cg] expected a right side of floating point numbers, got int64[3]");
  EXPECT_EQ(error_of([&] { (void)numerics::cg([](const Tensor& v) { return v.sum(); }, right); }),
            "[cg] expected the function to give a tensor like the right side, float64[3], got float64[]");
  EXPECT_EQ(error_of([&] { (void)numerics::cg(times_matrix, right, {.start = ones({2}, kFloat64)}); }),
            "[cg] expected a start like the right side, float64[3], got float64[2]");
  EXPECT_EQ(error_of([&] { (void)numerics::cg(nullptr, right); }), "[cg] expected a function, got none");
}

}  // namespace
}  // namespace tenon::testing
