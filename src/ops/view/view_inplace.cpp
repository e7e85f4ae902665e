// Views that take the place of what they view: the tensor itself gets another shape, its memory stays.
#include "ops/by_name.h"

#include <tenon/ops/table.h>

#include <algorithm>

namespace tenon::ops {
namespace {

// `self` becomes what `view` is; autograd says how.
Tensor take_view(const Tensor& self, const Tensor& view) {
  static const dispatch::Operator& op = dispatch::find_operator("tenon::take_view_");
  const dispatch::Value args[] = {dispatch::Value(self), dispatch::Value(view)};
  return dispatch::call_boxed(op, args)[0].take_tensor();
}

// `self` with other sizes, dense from its first element on; what is new has no value yet. Sizes that it has already
// leave it as it is, unless a format is asked for.
Tensor resized(const Tensor& self, const SymInts& size, std::optional<MemoryFormat> format) {
  given(self, "resize_");
  TENON_CHECK(format != MemoryFormat::Preserve,
              "[resize_] unsupported memory format: expected the contiguous one, got one to be preserved, and other "
              "sizes have other strides");
  Ints plain;
  for (const SymInt& each : size) {
    plain.push_back(each.plain());
    TENON_CHECK(plain.back() >= 0, "[resize_] expected sizes of at least 0, got {}", str(size));
  }
  bool same = !format && std::ranges::equal(plain, self.sizes());
  Ints strides = same ? Ints(self.strides()) : core::contiguous_strides(plain.span());
  static const dispatch::Operator& op = dispatch::find_operator("tenon::resize_geometry_");
  const dispatch::Value args[] = {dispatch::Value(self), dispatch::Value(plain), dispatch::Value(strides)};
  return dispatch::call_boxed(op, args)[0].take_tensor();
}

}  // namespace

OPS(view_inplace) {
  op("swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)")
      .decompose([](const Tensor& self, int64_t axis0, int64_t axis1) {
        return transpose(given(self, "swapaxes"), axis0, axis1);
      });
  op("swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)")
      .decompose([](const Tensor& self, int64_t dim0, int64_t dim1) {
        return transpose(given(self, "swapdims"), dim0, dim1);
      });
  // Example: x.clone().t_();
  op("t_(Tensor(a!) self) -> Tensor(a!)")
      .decompose([](const Tensor& self) { return take_view(self, t(given(self, "t_"))); })
      .moves_self();
  // Example: x.clone().transpose_(0, 1);
  op("transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)")
      .decompose([](const Tensor& self, int64_t dim0, int64_t dim1) {
        return take_view(self, transpose(given(self, "transpose_"), dim0, dim1));
      })
      .moves_self();
  // Example: x.clone().swapaxes_(0, 1);
  op("swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)")
      .decompose([](const Tensor& self, int64_t axis0, int64_t axis1) {
        return take_view(self, transpose(given(self, "swapaxes_"), axis0, axis1));
      })
      .moves_self();
  // Example: x.clone().swapdims_(0, 1);
  op("swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)")
      .decompose([](const Tensor& self, int64_t dim0, int64_t dim1) {
        return take_view(self, transpose(given(self, "swapdims_"), dim0, dim1));
      })
      .moves_self();
  // Example: x.clone().squeeze_();
  op("squeeze_(Tensor(a!) self) -> Tensor(a!)")
      .decompose([](const Tensor& self) { return take_view(self, squeeze(given(self, "squeeze_"))); })
      .moves_self();
  // Example: x.clone().squeeze_(0);
  op("squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)")
      .decompose([](const Tensor& self, int64_t dim) { return take_view(self, squeeze(given(self, "squeeze_"), dim)); })
      .moves_self();
  // Example: x.clone().unsqueeze_(0);
  op("unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)")
      .decompose(
          [](const Tensor& self, int64_t dim) { return take_view(self, unsqueeze(given(self, "unsqueeze_"), dim)); })
      .moves_self();
  // Example: x.clone().as_strided_({2, 2}, {1, 2}, 1);
  op("as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a!)")
      .decompose([](const Tensor& self, const SymInts& size, const SymInts& stride,
                    const std::optional<SymInt>& storage_offset) {
        return take_view(self, as_strided(given(self, "as_strided_"), size, stride, storage_offset));
      })
      .moves_self();
  // Example: x.clone().resize_({3, 2});
  op("resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)")
      .decompose(resized)
      .moves_self();
}

}  // namespace tenon::ops
