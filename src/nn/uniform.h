// How weights begin.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon::nn {

// Uniform in ±bound.
Tensor uniform(const SymInts& sizes, double bound, Dtype dtype);

}  // namespace tenon::nn
