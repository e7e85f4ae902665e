// Products of vectors and matrices, added to what is there.
#include "ops/by_name.h"

#include <tenon/ops/table.h>

#include <cmath>

namespace tenon::ops {
namespace {

// Among integers a factor is one too.
Scalar factor(const Scalar& number, Dtype dtype) {
  if (is_floating(dtype) || !number.is_real()) return number;
  const double whole = std::trunc(number.to_double());
  TENON_CHECK(std::abs(whole) < 0x1p63, "[add*] expected a factor that fits 64 bits, got {}", whole);
  return static_cast<int64_t>(whole);
}

// `beta` times what is there, and `alpha` times a product; with a beta of 0 nothing that is there counts.
Tensor added(const Tensor& self, const Tensor& product, const Scalar& given_beta, const Scalar& given_alpha) {
  const Scalar beta = factor(given_beta, product.dtype()), alpha = factor(given_alpha, product.dtype());
  Tensor scaled = alpha.to_double() == 1 ? product : product * alpha;
  if (beta.to_double() == 0) return scaled;
  return (beta.to_double() == 1 ? self : self * beta) + scaled;
}

}  // namespace

OPS(added_products) {
  // Example: addmv(ones({2}), x, ones({3}));
  op("addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha) {
        check_rank(mat, 2, "a matrix", "addmv");
        check_rank(vec, 1, "a vector", "addmv");
        Tensor there = expand(given(self, "addmv"), SymInts{mat.size(0)});
        return added(there, matmul(mat, vec), beta, alpha);
      })
      .with_inplace();
  // Example: addr(x, ones({2}), ones({3}));
  op("addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .decompose(
          [](const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta, const Scalar& alpha) {
            check_rank(vec1, 1, "vectors", "addr");
            check_rank(vec2, 1, "vectors", "addr");
            Tensor there = expand(given(self, "addr"), SymInts{vec1.size(0), vec2.size(0)});
            return added(there, unsqueeze(vec1, 1) * vec2, beta, alpha);
          })
      .with_inplace();
  // Example: addbmm(ones({2, 2}), ones({4, 2, 3}), ones({4, 3, 2}));
  op("addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                    const Scalar& alpha) {
        check_rank(batch1, 3, "batches of matrices", "addbmm");
        check_rank(batch2, 3, "batches of matrices", "addbmm");
        // Halves are added up in float32 and rounded once.
        const Dtype wide = compute_dtype(batch1.dtype());
        Tensor product = sum(bmm(batch1.to(wide), batch2.to(wide)), Ints{0}, false, wide);
        Tensor there = expand(given(self, "addbmm"), product.sym_sizes());
        return added(there.dtype() == batch1.dtype() ? there.to(wide) : there, product, beta, alpha).to(batch1.dtype());
      })
      .with_inplace();
}

}  // namespace tenon::ops
