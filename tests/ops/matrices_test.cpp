// What tables of numbers do not show of factors: that their products are the matrix, at sizes and ranks that are not
// small, that gradients hold where formulas have gaps, and what is said of matrices that have no factors.
#include "error_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/autograd/engine.h>
#include <tenon/autograd/grad.h>
#include <tenon/capture/compile.h>
#include <tenon/core/random.h>
#include <tenon/generated/ops.h>

#include <cmath>

namespace tenon::test {
namespace {

using tenon::testing::error_of;
using ::testing::HasSubstr;

Tensor turned(const Tensor& x) { return transpose(x, -2, -1); }
double largest(const Tensor& x) { return max(abs(x)).item<double>(); }

TEST(Matrices, FactorsMultiplyToTheMatrix) {
  manual_seed(1);
  for (const SymInts& sizes : {SymInts{40, 25}, SymInts{25, 40}, SymInts{2, 30, 30}, SymInts{3, 1, 7}}) {
    Tensor a = randn(sizes, kFloat64);
    auto [p, l, u] = linalg_lu(a);
    EXPECT_LT(largest(matmul(p, matmul(l, u)) - a), 1e-12);
    auto [q, r] = linalg_qr(a);
    EXPECT_LT(largest(matmul(q, r) - a), 1e-12);
    EXPECT_LT(largest(matmul(turned(q), q) - eye(q.size(-1), kFloat64)), 1e-13) << "orthonormal columns";
    for (bool full : {false, true}) {
      auto [left, s, right] = linalg_svd(a, full);
      const SymInt count = s.size(-1);
      Tensor product = matmul(narrow(left, -1, 0, count) * unsqueeze(s, -2), narrow(right, -2, 0, count));
      EXPECT_LT(largest(product - a), 1e-12);
      EXPECT_LT(largest(matmul(turned(left), left) - eye(left.size(-1), kFloat64)), 1e-13);
      EXPECT_LT(largest(matmul(right, turned(right)) - eye(right.size(-2), kFloat64)), 1e-13);
    }
  }
}

TEST(Matrices, SingularValuesOfMatricesThatLackThem) {
  Tensor zero = zeros({3, 2}, kFloat64);
  auto [u, s, vh] = linalg_svd(zero, true);
  EXPECT_EQ(largest(s), 0);
  EXPECT_LT(largest(matmul(turned(u), u) - eye(3, kFloat64)), 1e-15) << "a basis all the same";
  Tensor one = matmul(tensor({3.0, 4.0, 0.0}).view({3, 1}), tensor({1.0, 0.0}).view({1, 2})).to(kFloat64);
  auto [left, values, right] = linalg_svd(one, false);
  EXPECT_NEAR(values[0].item<double>(), 5, 1e-14);
  EXPECT_EQ(values[1].item<double>(), 0);
  EXPECT_LT(largest(matmul(turned(left), left) - eye(2, kFloat64)), 1e-14);
  // Neither too large nor too small to be squared.
  for (double scale : {1e-200, 1e200}) EXPECT_NEAR(linalg_svdvals(one * scale)[0].item<double>() / scale, 5, 1e-13);
  EXPECT_TRUE(isnan(linalg_svdvals(full({2, 2}, INFINITY))).all().item<bool>());
}

TEST(Matrices, SymmetricSystemsByBlocksOfTwo) {
  manual_seed(2);
  for (int64_t n : {1, 2, 5, 20}) {
    Tensor half = randn({4, n, n}, kFloat64), a = half + turned(half), b = randn({4, n, 3}, kFloat64);
    auto [ld, pivots] = linalg_ldl_factor(a);
    Tensor x = linalg_ldl_solve(ld, pivots, b);
    EXPECT_LT(largest(matmul(a, x) - b), 1e-9) << n;
    if (n == 20) {
      EXPECT_LT(min(pivots).item<int64_t>(), 0) << "there are blocks of two among them";
    }
  }
}

// Of the logarithm of the determinant by Cholesky's factor: the inverse, whichever triangle was read.
TEST(Matrices, TheGradientOfARootIsSymmetric) {
  manual_seed(3);
  Tensor half = randn({2, 5, 5}, kFloat64), a = matmul(half, turned(half)) + eye(5, kFloat64);
  for (bool upper : {false, true}) {
    auto function = [&](const Tensor& x) { return sum(log(diagonal(linalg_cholesky(x, upper), 0, -2, -1))) * 2; };
    Tensor x = a.clone().set_requires_grad();
    function(x).backward();
    EXPECT_LT(largest(x.grad() - linalg_inv(a)), 1e-10);
    Tensor y = a.clone().set_requires_grad();
    compile(function, {.fullgraph = true})(y).backward();
    EXPECT_LT(largest(y.grad() - x.grad()), 1e-12);
  }
}

TEST(Matrices, ASingularMatrixHasCofactors) {
  Tensor a = tensor({1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 1.0, 0.0, 1.0}).view({3, 3}).to(kFloat64).set_requires_grad();
  Tensor det = linalg_det(a);
  EXPECT_NEAR(det.item<double>(), 0, 1e-15);
  det.backward();
  // By minors.
  const double expected[] = {4, 4, -4, -2, -2, 2, 0, 0, 0};
  for (int64_t at = 0; at < 9; ++at) EXPECT_NEAR(a.grad().view({-1})[at].item<double>(), expected[at], 1e-13) << at;
}

TEST(Matrices, WhatHasNoFactorsIsNamed) {
  Tensor singular = stack({eye(2, kFloat64), ones({2, 2}, kFloat64)});
  EXPECT_THAT(
      error_of([&] { linalg_inv(singular); }),
      HasSubstr("[linalg_inv] expected invertible matrices, whose pivots are not zero, got one whose pivot 2 is "
                "not (batch element 1)"));
  EXPECT_THAT(error_of([&] { linalg_solve(singular, ones({2, 2, 1}, kFloat64)); }), HasSubstr("[linalg_solve]"));
  EXPECT_THAT(error_of([&] { linalg_cholesky(-eye(3)); }),
              HasSubstr("[linalg_cholesky] expected positive definite matrices, whose pivots are positive, got one "
                        "whose pivot 1 is not (batch element 0)"));
  EXPECT_THAT(error_of([&] { linalg_inv(ones({2, 3})); }), HasSubstr("expected square matrices, or batches of them"));
  EXPECT_THAT(error_of([&] { linalg_det(ones({2, 2}, kInt64)); }), HasSubstr("expected numbers of float32 or float64"));
  EXPECT_THAT(error_of([&] { linalg_qr(ones({2, 2}), "half"); }),
              HasSubstr("expected mode to be 'reduced', 'complete' or 'r', got 'half'"));
  EXPECT_THAT(error_of([&] { linalg_lu(ones({2, 2}), false); }), HasSubstr("LU without pivoting"));
  // Those that are asked not to raise say which pivot it was.
  EXPECT_EQ(std::get<1>(linalg_inv_ex(singular))[1].item<int64_t>(), 2);
  // A compiled function raises when it runs.
  auto compiled = compile([](Tensor x) { return linalg_inv(x) * 2; }, {.fullgraph = true});
  EXPECT_LT(largest(compiled(eye(2, kFloat64) * 4) - eye(2, kFloat64) * 0.5), 1e-15);
  EXPECT_THAT(error_of([&] { compiled(zeros({2, 2}, kFloat64)); }), HasSubstr("[linalg_inv]"));
}

}  // namespace
}  // namespace tenon::test
