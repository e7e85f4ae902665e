#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/numerics/lobpcg.h>
#include <tenon/tenon.h>

#include "error_of.h"

namespace tenon {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

// The matrix of second differences of a line, whose eigenvalues are 2 - 2 cos(pi j / (n + 1)).
Tensor line(int64_t n, Dtype dtype = kFloat64) {
  Tensor one = eye(n, dtype), matrix = one * 2;
  Tensor beside = constant_pad_nd(one, {1, 0}).narrow(1, 0, n);
  return matrix - beside - beside.t();
}

double eigenvalue(int64_t n, int64_t j) {
  return 2 - 2 * std::cos(M_PI * static_cast<double>(j) / static_cast<double>(n + 1));
}

TEST(Lobpcg, finds_the_ends_of_a_known_spectrum) {
  manual_seed(5);
  constexpr int64_t n = 40;
  for (bool largest : {true, false})
    for (Dtype dtype : {kFloat64, kFloat32}) {
      auto [values, vectors] = numerics::lobpcg(line(n, dtype), {.k = 4, .largest = largest});
      double within = dtype == kFloat64 ? 1e-10 : 1e-5;
      for (int64_t at = 0; at < 4; ++at)
        EXPECT_NEAR(values.to(kFloat64).select(0, at).item<double>(), eigenvalue(n, largest ? n - at : 1 + at), within);
      Tensor products = vectors.t().matmul(vectors);
      EXPECT_TRUE(products.allclose(eye(4, dtype), within, within));
    }
}

TEST(Lobpcg, what_it_starts_from_and_when_it_ends) {
  manual_seed(6);
  Tensor matrix = line(12), start = std::get<1>(linalg_eigh(matrix)).narrow(1, 0, 2);
  // Eigenvectors are where it stays.
  auto [values, vectors] = numerics::lobpcg(matrix, {.k = 2, .largest = false, .start = start, .max_iterations = 1});
  EXPECT_NEAR(values.select(0, 1).item<double>(), eigenvalue(12, 2), 1e-12);
  auto rough = numerics::lobpcg(matrix, {.k = 2, .tolerance = 1e-2});
  EXPECT_NEAR(rough.values.select(0, 0).item<double>(), eigenvalue(12, 12), 1e-2);
  // Both triangles count.
  Tensor skew = randn({12, 12}, kFloat64);
  EXPECT_TRUE(numerics::lobpcg(matrix + skew - skew.t(), {.k = 1})
                  .values.allclose(numerics::lobpcg(matrix, {.k = 1}).values, 1e-9, 1e-9));
  EXPECT_TRUE(numerics::lobpcg(zeros({3, 3})).values.equal(zeros({1})));
}

TEST(Lobpcg, refusals) {
  EXPECT_THAT(error_of([] { numerics::lobpcg(ones({2, 3})); }),
              HasSubstr("[lobpcg] expected square matrices, or batches of them, got float32[2, 3]"));
  EXPECT_THAT(error_of([] { numerics::lobpcg(ones({5, 5}), {.k = 2}); }),
              HasSubstr("[lobpcg] expected k from 1 to 1, a third of the 5 rows of the matrix, got 2"));
  EXPECT_THAT(error_of([] { numerics::lobpcg(ones({6, 6}).to(kInt64)); }), HasSubstr("float32 or float64"));
  EXPECT_THAT(error_of([] { numerics::lobpcg(ones({6, 6}), {.k = 2, .start = ones({6, 3})}); }),
              HasSubstr("[lobpcg] expected a start of float32[6, 2], got float32[6, 3]"));
}

TEST(Eigh, against_what_it_promises) {
  manual_seed(7);
  for (int64_t n : {1, 2, 7, 30}) {
    Tensor spread = randn({2, n, n}, kFloat64), matrix = spread + spread.transpose(1, 2);
    auto [values, vectors] = linalg_eigh(matrix);
    EXPECT_TRUE(matmul(vectors * values.unsqueeze(1), vectors.transpose(1, 2)).allclose(matrix, 1e-12, 1e-12));
    EXPECT_TRUE(matmul(vectors.transpose(1, 2), vectors).allclose(eye(n, kFloat64), 1e-12, 1e-13));
    EXPECT_TRUE((values.narrow(1, 1, n - 1) >= values.narrow(1, 0, n - 1)).all().item<bool>());
  }
  // Equal eigenvalues have orthonormal vectors, too, and numbers of any size are as exact.
  auto [twice, basis] = linalg_eigh(ones({4, 4}, kFloat64));
  EXPECT_TRUE(matmul(basis.t(), basis).allclose(eye(4, kFloat64), 1e-12, 1e-13));
  EXPECT_NEAR(twice.select(0, 3).item<double>(), 4, 1e-14);
  for (double scale : {1e-300, 1e300}) {
    Tensor values = std::get<0>(linalg_eigh(line(5) * scale)) / scale;
    EXPECT_NEAR(values.select(0, 0).item<double>(), eigenvalue(5, 1), 1e-14);
  }
  EXPECT_TRUE(isnan(std::get<0>(linalg_eigh(full({2, 2}, NAN)))).all().item<bool>());
}

TEST(Eigh, gradients) {
  manual_seed(8);
  Tensor matrix = randn({2, 4, 4}, kFloat64).set_requires_grad();
  auto function = [](const Tensor& at) {
    auto [values, vectors] = linalg_eigh((at + at.transpose(1, 2)) / 2);
    return std::vector<Tensor>{values, vectors};
  };
  EXPECT_TRUE(autograd::gradcheck(function, {matrix}, {.check_forward_ad = true}));
  EXPECT_TRUE(autograd::gradgradcheck(function, {matrix}));
  EXPECT_THAT(error_of([] { linalg_eigh(ones({2, 3})); }), HasSubstr("[linalg_eigh] expected square matrices"));
  EXPECT_THAT(error_of([] { linalg_eigh(ones({2, 2}), "X"); }), HasSubstr("expected UPLO to be 'L' or 'U', got 'X'"));
}

}  // namespace
}  // namespace tenon
