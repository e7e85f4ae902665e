// One element as a number.
#pragma once

#include <tenon/core/tensor_fwd.h>

namespace tenon::kernels {

// The value of a tensor of one element; an Error for any other.
Scalar item(const TensorBase& tensor);

}  // namespace tenon::kernels
