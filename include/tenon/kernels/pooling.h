// Windows that slide over the last dimensions.
#pragma once

#include <tenon/core/tensor_fwd.h>

namespace tenon::kernels {

// The window of one output position along one dimension: positions start, start + step, … before end, all inside the
// input.
struct Window {
  int64_t start, end, step = 1;
  int64_t divisor = 0;  // of an average: how many positions it counts for, those outside included
};
using Windows = std::vector<std::vector<Window>>;  // by pooled dimension, then by output position

// Windows of `kernel` elements every `stride`, over `size` elements with `padding` at both ends.
std::vector<Window> sliding_windows(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                                    int64_t count);
// As many windows as asked for, that cover everything as evenly as can be.
std::vector<Window> even_windows(int64_t size, int64_t count);

// The largest element of each window, a NaN being larger than everything, and its row-major position within the pooled
// dimensions.
void max_pool(const TensorBase& self, const Windows& windows, const TensorBase& out, const TensorBase& indices);

// The largest element of each window of `kernel` elements, as max_pool, over two or three dimensions; where windows
// begin follows from a number of [0, 1) for each of them and plane, of two the column's first: as evenly as can be, the
// last at the end.
void fractional_max_pool(const TensorBase& self, const Ints& kernel, const TensorBase& samples, const TensorBase& out,
                         const TensorBase& indices);

// `grad` at the places that `indices` name, as max_pool gave them: out[plane][index] is the sum of its gradients, in
// row-major order. Halves are added up in float32 and rounded once. An index outside of its plane is an IndexError.
void max_pool_backward(const TensorBase& grad, const TensorBase& indices, size_t dims, const TensorBase& out);

// The sum of each window's elements over the product of its divisors, or over `divisor` if that is not 0.
void average_pool(const TensorBase& self, const Windows& windows, int64_t divisor, const TensorBase& out);
// What each element of an average's input contributed: `grad` shared out over the windows, into `out` of the input's
// shape.
void average_pool_backward(const TensorBase& grad, const Windows& windows, int64_t divisor, const TensorBase& out);

}  // namespace tenon::kernels
