// Numbers where operators expect tensors, single sizes where they expect lists, and comparisons of whole tensors.
#pragma once

#include <tenon/core/tensor.h>
#include <tenon/generated/ops.h>

namespace tenon {

//   Tensor positive = maximum(x, 0), capped = minimum(1.5, x);
//   Tensor kept = where(x > 0, x, 0.0), flags = where(x > 0, 1, 0), shown = where(x > 0, -1.0, x);
//   Tensor powers = pow(2.0, x);
//
// A number takes part in promotion as in `x + number`: it gives a dtype only if the tensors' kind is lower.
Tensor where(const Tensor& condition, const Tensor& self, const Scalar& other);
Tensor where(const Tensor& condition, const Scalar& self, const Tensor& other);
Tensor where(const Tensor& condition, const Scalar& self, const Scalar& other);
Tensor maximum(const Tensor& self, const Scalar& other);
Tensor maximum(const Scalar& self, const Tensor& other);
Tensor minimum(const Tensor& self, const Scalar& other);
Tensor minimum(const Scalar& self, const Tensor& other);

// Of one dimension.
//
//   Tensor a = zeros(3), b = ones(3, kInt64), c = empty(3), d = rand(3), e = randn(3), f = full(3, 7.0);
template <PlainInteger T>
Tensor zeros(T size, const TensorOptions& options = {}) {
  return zeros(SymInts{SymInt(size)}, options);
}
template <PlainInteger T>
Tensor ones(T size, const TensorOptions& options = {}) {
  return ones(SymInts{SymInt(size)}, options);
}
template <PlainInteger T>
Tensor empty(T size, const TensorOptions& options = {}) {
  return empty(SymInts{SymInt(size)}, options);
}
template <PlainInteger T>
Tensor rand(T size, const TensorOptions& options = {}) {
  return rand(SymInts{SymInt(size)}, options);
}
template <PlainInteger T>
Tensor randn(T size, const TensorOptions& options = {}) {
  return randn(SymInts{SymInt(size)}, options);
}
template <PlainInteger T>
Tensor full(T size, const Scalar& value, const TensorOptions& options = {}) {
  return full(SymInts{SymInt(size)}, value, options);
}

// Whether all elements are equal, and the sizes. A NaN equals nothing.
//
//   bool same = equal(x, x.clone());
bool equal(const Tensor& self, const Tensor& other);
// Where |self - other| <= atol + rtol * |other|.
//
//   Tensor near = isclose(x, x + 1e-7);
//   bool all_near = allclose(x, x + 1e-7);
Tensor isclose(const Tensor& self, const Tensor& other, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
bool allclose(const Tensor& self, const Tensor& other, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);

}  // namespace tenon
