#include <tenon/kernels/item.h>

#include "kernels/elements.h"

namespace tenon::kernels {

Scalar item(const TensorBase& tensor) {
  TENON_CHECK(tensor.defined(), "[item] expected a tensor, got an undefined one");
  int64_t count = 1;
  for (int64_t size : tensor.sizes()) count *= size;
  TENON_CHECK(count == 1, "[item] expected a tensor of one element, got {}", tensor.description());
  if (tensor.dtype() == kFloat8E4M3FN) return Scalar(double{to_float(*tensor.data<Float8E4M3FN>())});
  if (tensor.dtype() == kFloat8E5M2) return Scalar(double{to_float(*tensor.data<Float8E5M2>())});
  return with_element_type(tensor.dtype(), [&]<typename T>() { return Scalar(widen(*tensor.data<T>())); });
}

}  // namespace tenon::kernels
