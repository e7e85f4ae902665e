#include <tenon/dispatch/numbers.h>

namespace tenon {
namespace {

// A tensor of no dimensions that promotes beside `like` as the number itself would.
Tensor beside(const Tensor& like, const Scalar& number, const char* name) {
  TENON_CHECK(like.defined(), "[{}] expected a tensor, got an undefined one", name);
  auto level = [](Dtype dtype) { return is_floating(dtype) ? 2 : is_integral(dtype) ? 1 : 0; };
  Dtype own = number.dtype(), dtype = level(own) > level(like.dtype()) ? own : like.dtype();
  return scalar_tensor(number, TensorOptions(dtype, like.device()));
}

}  // namespace

Tensor where(const Tensor& condition, const Tensor& self, const Scalar& other) {
  return where(condition, self, beside(self, other, "where"));
}
Tensor where(const Tensor& condition, const Scalar& self, const Tensor& other) {
  return where(condition, beside(other, self, "where"), other);
}
Tensor where(const Tensor& condition, const Scalar& self, const Scalar& other) {
  TENON_CHECK(condition.defined(), "[where] expected a tensor, got an undefined one");
  Dtype dtype = promote(self.dtype(), other.dtype());
  TensorOptions options(dtype, condition.device());
  return where(condition, scalar_tensor(self, options), scalar_tensor(other, options));
}
Tensor maximum(const Tensor& self, const Scalar& other) { return maximum(self, beside(self, other, "maximum")); }
Tensor maximum(const Scalar& self, const Tensor& other) { return maximum(beside(other, self, "maximum"), other); }
Tensor minimum(const Tensor& self, const Scalar& other) { return minimum(self, beside(self, other, "minimum")); }
Tensor minimum(const Scalar& self, const Tensor& other) { return minimum(beside(other, self, "minimum"), other); }

bool equal(const Tensor& self, const Tensor& other) {
  TENON_CHECK(self.defined() && other.defined(), "[equal] expected a tensor, got an undefined one");
  if (self.dim() != other.dim()) return false;
  for (int64_t dim = 0; dim < self.dim(); ++dim)
    if (bool(self.size(dim) != other.size(dim))) return false;
  return all(self == other).item<bool>();
}

Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  TENON_CHECK_VALUE(rtol >= 0 && atol >= 0, "[isclose] expected tolerances of at least 0, got rtol {} and atol {}",
                    rtol, atol);
  Tensor same = self == other;
  if (equal_nan) same = logical_or(same, logical_and(self != self, other != other));
  Tensor bound = abs(other) * rtol + atol, distance = abs(self - other);
  // An infinite bound or distance is no nearness: infinities are near to themselves alone.
  return logical_or(same, logical_and(isfinite(distance), distance <= bound));
}

bool allclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  return all(isclose(self, other, rtol, atol, equal_nan)).item<bool>();
}

bool Tensor::equal(const Tensor& other) const { return tenon::equal(*this, other); }
bool Tensor::allclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  return tenon::allclose(*this, other, rtol, atol, equal_nan);
}

}  // namespace tenon
