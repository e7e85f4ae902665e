// Sums that run along a dimension.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon::kernels {

// out[…, i, …] = self[…, 0, …] + … + self[…, i, …], in the dtype of `out` (halves in float32, each rounded once).
void cumulative_sum(const Tensor& self, int64_t dim, const Tensor& out);

}  // namespace tenon::kernels
