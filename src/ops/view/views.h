// What rows about views ask of the tensor that they view.
#pragma once

#include <tenon/ops/row.h>

namespace tenon::ops {

inline Geometry geometry_of(const Tensor& self) {
  return {self.sym_sizes(), self.sym_strides(), self.sym_storage_offset()};
}

inline const Tensor& dimensioned(const Tensor& self, std::string_view op_name) {
  TENON_CHECK(self.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  TENON_CHECK(self.dim() > 0, "[{}] expected a tensor of at least one dimension, got {}", op_name, self.description());
  return self;
}

}  // namespace tenon::ops
