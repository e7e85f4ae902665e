// Whether tensors are equal, or nearly so.
#include "ops/by_name.h"

#include <tenon/dispatch/registration.h>
#include <tenon/ops/table.h>

#include <algorithm>

namespace tenon::ops {
namespace {

Tensor close(const Tensor& a, const Tensor& b, double relative, double absolute, bool equal_nan) {
  TENON_CHECK(given(a, "isclose").dtype() == given(b, "isclose").dtype(),
              "[isclose] expected tensors of one dtype, got {} and {}", a.description(), b.description());
  TENON_CHECK(relative >= 0 && absolute >= 0, "[isclose] expected bounds of at least 0, got {} and {}", relative,
              absolute);
  Tensor same = a == b;
  if (a.dtype() == kBool || (relative == 0 && absolute == 0 && !is_floating(a.dtype()))) return same;
  if (equal_nan && is_floating(a.dtype())) same = logical_or(same, logical_and(isnan(a), isnan(b)));
  if (relative == 0 && absolute == 0) return same;
  Tensor x = a, y = b;
  if (!is_floating(a.dtype())) x = a.to(kFloat32), y = b.to(kFloat32);
  Tensor apart = abs(x - y), most = abs(y * relative) + absolute;
  return logical_or(same, logical_and(isfinite(apart), apart <= most));
}

// Questions about tensors whose answer is no tensor: they have no row.
bool same_elements(const Tensor& self, const Tensor& other) {
  given(self, "equal");
  given(other, "equal");
  if (!std::ranges::equal(self.sizes(), other.sizes())) return false;
  return all(self == other).item<bool>();
}

template <typename F>
void define_question(const char* schema, F function) {
  dispatch::Operator& op = dispatch::define(schema::parse(schema));
  dispatch::register_kernel(op, DispatchKey::CPU, dispatch::boxed(std::move(function)));
}

[[maybe_unused]] const bool registered = [] {
  define_question("aten::equal(Tensor self, Tensor other) -> bool", same_elements);
  define_question(
      "aten::allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) "
      "-> bool",
      [](const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
        return all(close(self, other, rtol, atol, equal_nan)).item<bool>();
      });
  define_question("aten::is_nonzero(Tensor self) -> bool", [](const Tensor& self) {
    TENON_CHECK(given(self, "is_nonzero").numel().plain() == 1,
                "[is_nonzero] expected one element, whose truth is meant, got {}", self.description());
    return (reshape(self, {}) != 0).item<bool>();
  });
  return true;
}();

}  // namespace

OPS(closeness) {
  op("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor")
      .decompose(close);
}

}  // namespace tenon::ops
