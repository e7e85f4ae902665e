// Views that are made again: the same view of another tensor, and the tensor that a view was made of.
//
//   Tensor view = x.select(1, 2), other = x.clone();
//   Tensor same = autograd::view_func(view, other);                        // other.select(1, 2)
//   Tensor whole = autograd::reverse_view_func(view, view.detach());       // what x is, in the memory of the view
//
// A view remembers the steps that made it; where they are not known (pieces, `ViewReplay(false)`, no_grad), its places
// in memory. Autograd follows views of floating point tensors: those of others know nothing.
#pragma once

#include <tenon/core/tensor.h>

#include <functional>

namespace tenon::autograd {

// The tensor that a view looks into, which is itself no view; undefined of any other tensor.
//
//   bool found = autograd::base_of(x.view({-1})).is(x) && !autograd::base_of(x).defined();
Tensor base_of(const Tensor& tensor);

// What takes the place of what the steps of a view hold, while it is made again: of sizes, indices and offsets, and of
// tensors whose sizes and strides a step reads (`slice_inverse`). The view itself keeps what it has.
//
//   Tensor view = x.select(1, 1);
//   autograd::ViewVisitors moved{.number = [](const SymInt& index) { return index + 1; }};
//   Tensor next = autograd::view_func(view, x, moved);  // x.select(1, 2)
struct ViewVisitors {
  std::function<SymInt(const SymInt&)> number = {};
  std::function<Tensor(const Tensor&)> tensor = {};
};

// The view of another base, of the sizes and dtype of its own. A step that names places in memory wants one that has
// the strides of its own, too.
Tensor view_func(const Tensor& view, const Tensor& new_base, const ViewVisitors& visitors = {});

// A view of `new_view` with the sizes and strides of the base of `view`. It lies where the base would lie: the memory
// must have room for it. `new_view` is laid out as `view` is.
Tensor reverse_view_func(const Tensor& view, const Tensor& new_view);

}  // namespace tenon::autograd
