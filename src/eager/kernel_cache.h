// The kernels of eager calls: one per operator, dtypes, collapsed rank, and which strides are 0 or 1.
#pragma once

#include "collapse.h"

#include <tenon/dispatch/operator.h>
#include <tenon/schedule/single.h>

namespace tenon::eager {

// What one kernel serves. Sizes, outer strides and numbers are run-time arguments.
struct KernelRequest {
  const dispatch::Operator* op;            // a functional pointwise or reduction row
  std::span<const dispatch::Value> args;   // with real tensors; gives dtypes and the arguments that shape the kernel
  SmallVector<const Tensor*, 4> operands;  // the tensor arguments, in order
  Dtype result;                            // dtype of the output
  LoopDims dims;                           // strides: operands in order, then the output
};

// Compiles at the first request of a kind, and launches.
void run_kernel(const KernelRequest& request, void* output);
void forget_single_kernels();

}  // namespace tenon::eager
