// Sizes that only the data can tell, in fake implementations: the result of a `nonzero` has as many rows as there are
// non-zeros.
//
//   .register_fake([](const Tensor& x) { return empty({fake::new_dynamic_size(), x.dim()}, kInt64); })
#pragma once

#include <tenon/sym/shape_env.h>

#include <optional>

namespace tenon::fake {

// A new unbacked size from `min` to `max`, both plain numbers and at least 0.
SymInt new_dynamic_size(const SymInt& min = 0, const std::optional<SymInt>& max = std::nullopt);

// Raised by `new_dynamic_size` where such sizes cannot be had: on meta tensors, outside of tracing, in a capture that
// does not take them.
class DynamicOutputShape : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

// While one lives, unbacked numbers come from this environment; null: there are none. `items`: for the elements of
// tensors; `sizes`: for data-dependent sizes.
class DynamicSizes {
 public:
  explicit DynamicSizes(Ref<sym::ShapeEnv> env, bool items = true, bool sizes = true);
  ~DynamicSizes();
  DynamicSizes(const DynamicSizes&) = delete;
  // What the innermost one gives; null where there is none.
  static Ref<sym::ShapeEnv> for_items();
  static Ref<sym::ShapeEnv> for_sizes();

 private:
  const DynamicSizes* before_;
  Ref<sym::ShapeEnv> env_;
  bool items_, sizes_;
};

}  // namespace tenon::fake
