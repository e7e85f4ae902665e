// Pseudoinverses and ranks, with bounds for each matrix of a batch: what counts as zero among singular values.
#include "ops/linalg/matrices.h"

#include <limits>

namespace tenon::ops {
namespace {

// Singular values below this share of the largest count as zero, if nothing else is said.
Tensor usual_share(const Tensor& a) {
  const SymInt rows = a.size(-2), columns = a.size(-1);
  const SymInt most = decide_typically(rows >= columns) ? rows : columns;
  const double epsilon = a.dtype() == kFloat64 ? std::numeric_limits<double>::epsilon()
                                               : static_cast<double>(std::numeric_limits<float>::epsilon());
  return full(SymInts{}, epsilon, TensorOptions(a.dtype(), a.device())) * Scalar(most);
}

using OptionalTensor = std::optional<Tensor>;

// What a singular value must exceed to count: `values` are [..., k], the largest first or not; the result is [..., 1].
Tensor least_that_counts(const Tensor& a, const Tensor& values, const OptionalTensor& atol,
                         const OptionalTensor& rtol) {
  Tensor most = amax(values, Ints{-1}, true);
  auto beside = [](const Tensor& each) { return each.dim() == 0 ? each : unsqueeze(each, -1); };
  Tensor share = rtol ? beside(*rtol) : usual_share(a);
  if (!rtol && atol) share = where(beside(*atol) > 0, zeros_like(share), share);
  Tensor relative = share.to(values.dtype()) * most;
  return atol ? maximum(beside(*atol).to(values.dtype()), relative) : relative;
}

bool has_no_elements(const Tensor& a) { return decide_or(a.numel() == 0, false); }

Tensor pseudoinverse(const Tensor& self, const OptionalTensor& atol, const OptionalTensor& rtol, bool hermitian) {
  matrices(self, "linalg_pinv", hermitian);
  if (has_no_elements(self))
    return zeros(with(outer_sizes(self), {self.size(-1), self.size(-2)}), TensorOptions(self.dtype(), self.device()));
  auto inverted = [&](const Tensor& values) {
    Tensor counts = abs(values) > least_that_counts(self, abs(values), atol, rtol);
    return where(counts, 1.0 / where(counts, values, ones_like(values)), zeros_like(values));
  };
  if (hermitian) {
    auto [values, vectors] = linalg_eigh(self);
    return contiguous(matmul(vectors * unsqueeze(inverted(values), -2), turned(vectors)));
  }
  auto [u, s, vh] = _linalg_svd(self);
  return contiguous(matmul(turned(vh) * unsqueeze(inverted(s), -2), turned(u)));
}

// (Golub and Pereyra, 1973.) Of matrices whose rank does not change.
Tensor pseudoinverse_gradient(Grad& g) {
  Tensor a = g.saved("self"), p = g.saved("result"), grad = g.grad(), pt = turned(p), gt = turned(grad);
  Tensor result = -matmul(matmul(pt, grad), pt);
  result = result + matmul(matmul(gt - matmul(a, matmul(p, gt)), p), pt);
  return result + matmul(pt, matmul(p, gt - matmul(matmul(gt, p), a)));
}

Tensor rank_of(const Tensor& self, const OptionalTensor& atol, const OptionalTensor& rtol, bool hermitian) {
  matrices(self, "linalg_matrix_rank", hermitian);
  if (has_no_elements(self)) return zeros(outer_sizes(self), TensorOptions(kInt64, self.device()));
  Tensor values = hermitian ? abs(linalg_eigvalsh(self)) : linalg_svdvals(self);
  return sum(values > least_that_counts(self, values, atol, rtol), OptionalInts(Ints{-1}));
}

}  // namespace

OPS(pseudoinverse) {
  op("linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> "
     "Tensor")
      .decompose(pseudoinverse)
      .grad("self", saves("self", "result"), pseudoinverse_gradient);
  op("linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool "
     "hermitian=False) -> Tensor")
      .decompose(rank_of)
      .not_differentiable("result");
}

}  // namespace tenon::ops
