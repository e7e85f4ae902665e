// A tensor that from now on is another one's memory, sizes and strides.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon {

// Returns `self`. Not for tensors that autograd follows: no gradient flows through it.
//
//   Tensor a = zeros({2}), b = ones({3});
//   set_(a, b);
//   a.add_(1);  // b is twos
Tensor set_(const Tensor& self, const Tensor& source);

}  // namespace tenon
