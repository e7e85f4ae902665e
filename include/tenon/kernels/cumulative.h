// Sums and products that run along a dimension.
#pragma once

#include <tenon/core/tensor_fwd.h>

namespace tenon::kernels {

// out[…, i, …] = self[…, 0, …] + … + self[…, i, …], in the dtype of `out` (halves in float32, each rounded once).
void cumulative_sum(const TensorBase& self, int64_t dim, const TensorBase& out);
// The same with products, and with log(exp(…) + … + exp(…)) of real numbers.
void cumulative_product(const TensorBase& self, int64_t dim, const TensorBase& out);
void cumulative_log_sum_exp(const TensorBase& self, int64_t dim, const TensorBase& out);

}  // namespace tenon::kernels
