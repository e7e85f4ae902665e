// Orders along a dimension.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon::kernels {

// The first elements along `dim` in ascending or descending order, as many as `values` has, and where they stood. Equal
// elements keep their order; NaNs are larger than everything.
void sort(const Tensor& self, int64_t dim, bool descending, const Tensor& values, const Tensor& indices);

}  // namespace tenon::kernels
