// What the rows about matrices have in common: batches [..., m, n], results that lie in memory by columns, as LAPACK
// and so PyTorch leave them.
#pragma once

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {

// Matrices of float32 or float64; square ones where they must be.
inline const Tensor& matrices(const Tensor& self, std::string_view op_name, bool square = false) {
  TENON_CHECK(self.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  TENON_CHECK(self.dim() >= 2, "[{}] expected matrices, or batches of them, got {}", op_name, self.description());
  TENON_CHECK_IMPLEMENTED(self.dtype() == kFloat32 || self.dtype() == kFloat64,
                          "[{}] expected numbers of float32 or float64, got {}", op_name, self.description());
  TENON_CHECK(!square || same_size(self.size(-1), self.size(-2)),
              "[{}] expected square matrices, or batches of them, got {}", op_name, self.description());
  return self;
}

// The sizes in front of the last `own`.
inline SymInts outer_sizes(const Tensor& self, size_t own = 2) {
  SymInts sizes = self.sym_sizes();
  while (own-- > 0) sizes.pop_back();
  return sizes;
}

inline SymInts with(SymInts batch, std::initializer_list<SymInt> own) {
  for (const SymInt& size : own) batch.push_back(size);
  return batch;
}

inline SymInt smaller(const SymInt& a, const SymInt& b) { return decide_typically(a <= b) ? a : b; }

// The last but one dimension varies fastest.
inline TensorMeta by_columns(const SymInts& sizes, const Tensor& like) {
  if (sizes.size() < 2) return TensorMeta::contiguous(sizes, like.dtype(), like.device());
  const size_t last = sizes.size() - 1;
  SymInts turned = sizes;
  std::swap(turned[last], turned[last - 1]);
  SymInts strides = core::contiguous_strides(turned.span());
  std::swap(strides[last], strides[last - 1]);
  return {sizes, strides, like.dtype(), like.device()};
}

inline TensorMeta nothing_like(const Tensor& like) {
  return TensorMeta::contiguous(SymInts{0}, like.dtype(), like.device());
}

inline TensorMeta numbers(const SymInts& sizes, const Tensor& like, Dtype dtype) {
  return TensorMeta::contiguous(sizes, dtype, like.device());
}

inline Tensor turned(const Tensor& self) { return transpose(self, -2, -1); }

inline Tensor unit_like(const Tensor& self, const SymInt& size) {
  return eye(size, TensorOptions(self.dtype(), self.device()));
}

// Raises what `info` says of the first matrix that could not be factored.
void check_factored(const Tensor& info, std::string_view op_name, std::string_view what);

// 1, 2 and infinity, or minus these for the smallest instead of the largest: of sums of columns, of singular values, of
// sums of rows.
Tensor matrix_norm(const Tensor& self, const Scalar& ord, const Ints& dim = {-2, -1}, bool keepdim = false,
                   std::optional<Dtype> dtype = std::nullopt);

}  // namespace tenon::ops
