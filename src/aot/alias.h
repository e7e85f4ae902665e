#pragma once

#include <tenon/core/tensor.h>

namespace tenon::aot {

// The same memory under a tensor of its own, without history.
inline Tensor alias_without_history(const Tensor& tensor) {
  return core::make_view(tensor, tensor.sym_sizes(), tensor.sym_strides(), tensor.sym_storage_offset());
}

}  // namespace tenon::aot
