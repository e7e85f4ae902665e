// Bits of elements, whatever they mean.
#pragma once

#include <tenon/core/tensor_fwd.h>

namespace tenon::kernels {

// The bytes of `self` in the order of its coordinates, as those of `out`. Both have as many; where their elements are
// of different sizes, `out` is contiguous.
void copy_bits(const TensorBase& self, const TensorBase& out);

}  // namespace tenon::kernels
