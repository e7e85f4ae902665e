// Who is asked when the sizes of a real tensor are read while a function is captured.
#pragma once

#include <tenon/core/tensor.h>

#include <functional>

namespace tenon::core {

// Gives what stands for the tensor, whose sizes may vary from call to call. Asked for the user's code alone, not for
// what operators or the capture itself do.
using SizeReader = std::function<Tensor(const Tensor& real)>;

}  // namespace tenon::core
