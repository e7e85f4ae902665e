// What the user says of a tensor's sizes before it reaches a compiled function.
//
//   mark_dynamic(x, 0);               // compile for any batch size from the first call on
//   mark_dynamic(x, 1, 2, 512);       // any width from 2 to 512
//   mark_static(x, 1);                // compile anew for every width
//   maybe_mark_dynamic(y, 0);         // if the function allows it
//   mark_unbacked(y, 1);              // nothing is assumed of it
//
// A mark belongs to the tensor, not to its views or results.
#pragma once

#include <tenon/core/tensor.h>

#include <limits>

namespace tenon {

// Size `dim` is a symbol from the first compile on. It is an Error if the function turns out to fix it: the message
// says where and why. Sizes outside of [min, max] are compiled for themselves.
void mark_dynamic(const Tensor& tensor, int64_t dim, int64_t min = 2,
                  int64_t max = std::numeric_limits<int64_t>::max());
// The same as a wish: if the function fixes the size, it is fixed.
void maybe_mark_dynamic(const Tensor& tensor, int64_t dim);
// A new value of this size is a new compile, whatever the options say.
void mark_static(const Tensor& tensor, int64_t dim);
// The size is a symbol of which nothing is assumed, not even that it is neither 0 nor 1. A question about it that no
// `check` answers is a DataDependentError.
void mark_unbacked(const Tensor& tensor, int64_t dim);

namespace capture {

enum class Mark : uint8_t { None, Dynamic, MaybeDynamic, Static, Unbacked };
struct DimMark {
  Mark mark = Mark::None;
  int64_t min = 2, max = std::numeric_limits<int64_t>::max();
};
// The mark of a dimension.
DimMark mark_of(const Tensor& tensor, int64_t dim);

}  // namespace capture
}  // namespace tenon
