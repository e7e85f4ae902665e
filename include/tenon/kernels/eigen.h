// Eigenvalues and eigenvectors of symmetric matrices.
#pragma once

#include <tenon/core/tensor_fwd.h>

namespace tenon::kernels {

// Of each matrix of a batch [..., n, n], of which one triangle is read: the eigenvalues in ascending order [..., n],
// and the eigenvectors as columns [..., n, n], orthonormal, the largest element of each positive. What is not finite
// has NaNs. In float64, rounded once.
void symmetric_eigen(const TensorBase& self, bool reads_upper, const TensorBase& values, const TensorBase& vectors);

}  // namespace tenon::kernels
