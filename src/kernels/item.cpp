#include <tenon/kernels/item.h>

#include "kernels/elements.h"

namespace tenon::kernels {

Scalar item(const TensorBase& tensor) {
  TENON_CHECK(tensor.defined(), "[item] expected a tensor, got an undefined one");
  int64_t count = 1;
  for (int64_t size : tensor.sizes()) count *= size;
  TENON_CHECK(count == 1, "[item] expected a tensor of one element, got {}", tensor.description());
  return with_element_type(tensor.dtype(), [&]<typename T>() { return Scalar(widen(*tensor.data<T>())); });
}

}  // namespace tenon::kernels
