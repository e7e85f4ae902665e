// What layers share: how weights begin, and tensors that may be absent.
#pragma once

#include <tenon/core/cell.h>

namespace tenon::nn {

// Uniform in ±bound.
Tensor uniform(const SymInts& sizes, double bound, Dtype dtype);
// Nothing, for a cell of an undefined tensor.
std::optional<Tensor> given(const Cell<Tensor>& cell);
// "True" or "False", as PyTorch prints them.
std::string_view yes_or_no(bool flag);

}  // namespace tenon::nn
