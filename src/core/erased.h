// What stands in a cell for a parameter that was given up: its sizes, strides and dtype, and no data. Reading such a
// cell is an Error.
#pragma once

#include <tenon/core/tensor.h>

#include <string>

namespace tenon::core {

Tensor erased(const Tensor& tensor);
bool is_erased(const TensorBase& tensor);
[[noreturn]] void refuse_erased(const std::string& name);

}  // namespace tenon::core
