// Products of matrices by oneDNN, for float32 and bfloat16. Halves are accumulated in float32 and rounded once.
#pragma once

#include <tenon/core/tensor_fwd.h>

namespace tenon::kernels {

// out = relu(alpha * (a @ b) + beta * bias). A `beta` of 0 ignores the bias, NaNs in it included.
struct MatmulEpilogue {
  const TensorBase* bias = nullptr;  // of the result's dtype, its shape broadcasts to the result's; a row is cheapest
  bool relu = false;                 // keeps NaNs
  double alpha = 1, beta = 1;
};

// Whether this machine's oneDNN multiplies matrices of that dtype.
bool matmul_supports(Dtype dtype);

// [m, k] @ [k, n] into [m, n], or [batch, m, k] @ [batch, k, n] into [batch, m, n] (a batch of stride 0 is read once).
// All of one dtype, any strides: operands of which one of the last two strides is 1 are read in place, others are
// copied first. `out` shares no memory with the rest. Shapes are checked by the caller (the row).
void matmul(const TensorBase& a, const TensorBase& b, const TensorBase& out, const MatmulEpilogue& epilogue = {});

// How many oneDNN primitives this thread has made (tests look at it); one costs 0.2 ms, so they are kept by shape.
int64_t matmul_primitives_made();

}  // namespace tenon::kernels
