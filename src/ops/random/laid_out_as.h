// What has been drawn for a tensor that is to be like another.
#pragma once

#include <tenon/generated/ops.h>
#include <tenon/ops/row.h>

namespace tenon::ops {

// In the order in memory of the tensor that it is made like, unless another is asked for.
inline Tensor laid_out_as(const Tensor& self, const Tensor& drawn, std::optional<MemoryFormat> format) {
  bool keeps = !format || *format == MemoryFormat::Preserve;
  if (keeps ? self.is_contiguous() : *format == MemoryFormat::Contiguous) return drawn;
  return copy(empty_like(self, TensorOptions(drawn.dtype(), drawn.device()), format), drawn);
}

}  // namespace tenon::ops
