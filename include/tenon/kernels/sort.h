// Orders along a dimension.
#pragma once

#include <tenon/core/tensor_fwd.h>

namespace tenon::kernels {

// The first elements along `dim` in ascending or descending order, as many as `values` has, and where they stood. Equal
// elements keep their order; NaNs are larger than everything.
void sort(const TensorBase& self, int64_t dim, bool descending, const TensorBase& values, const TensorBase& indices);

}  // namespace tenon::kernels
