// Special functions that take a loop for each element.
#pragma once

#include <tenon/core/tensor_fwd.h>

namespace tenon::kernels {

// The n-th derivative of digamma, in float64, rounded once.
void polygamma(int64_t n, const TensorBase& self, const TensorBase& out);

// The regularized incomplete gamma function of the parameter `self` at `other`, the lower one or the upper one: the
// share of gamma's integral up to there, or from there on. Both are broadcast to `out`. In float64, rounded once.
void incomplete_gamma(const TensorBase& self, const TensorBase& other, bool is_upper, const TensorBase& out);

}  // namespace tenon::kernels
