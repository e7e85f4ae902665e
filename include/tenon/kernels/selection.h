// Kernels whose results are as large as the data says; they make them.
#pragma once

#include <tenon/core/tensor_fwd.h>

namespace tenon::kernels {

// int64[count, rank]: the coordinates of the elements that are not zero, in row-major order.
TensorBase nonzero(const TensorBase& self);

// The distinct elements in ascending order (NaNs last, each distinct from the others); where each element of `self` is
// found among them (of the shape of `self`), and how often each occurs. What is not asked for has no elements.
struct Distinct {
  TensorBase values, inverse, counts;
};
Distinct unique(const TensorBase& self, bool return_inverse, bool return_counts);

// The same of the slices along a dimension, compared element by element in row-major order; or, if `consecutive`, of
// those runs of equal slices that stand beside each other, in the order in which they come. The slices are dense, one
// after another, whatever the dimension. `inverse` and `counts` are vectors.
Distinct unique_slices(const TensorBase& self, int64_t dim, bool consecutive);
// Runs of equal elements in row-major order; as in `unique`, what is not asked for has no elements.
Distinct unique_consecutive(const TensorBase& self, bool return_inverse, bool return_counts);

// int64[sum of repeats]: position i, repeats[i] times. `repeats` is a vector of int64 or int32, none negative.
TensorBase repeated_positions(const TensorBase& repeats);

}  // namespace tenon::kernels
