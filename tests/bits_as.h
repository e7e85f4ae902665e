// The bits of a tensor's elements, taken for another dtype.
#pragma once

#include <tenon/dispatch/call.h>

namespace tenon::testing {

inline Tensor bits_as(const Tensor& tensor, Dtype dtype) {
  const dispatch::Value args[] = {dispatch::Value(tensor), dispatch::Value(dtype)};
  return dispatch::call_boxed(dispatch::find_operator("aten::view.dtype"), args)[0].take_tensor();
}

}  // namespace tenon::testing
