// Special functions that take a loop for each element.
#pragma once

#include <tenon/core/tensor_fwd.h>

namespace tenon::kernels {

// The n-th derivative of digamma, in float64, rounded once.
void polygamma(int64_t n, const TensorBase& self, const TensorBase& out);

}  // namespace tenon::kernels
