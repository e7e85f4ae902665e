// Calls of rows that have no C++ function, or not yet one that is declared: by name, through the dispatcher.
#pragma once

#include <tenon/dispatch/packet.h>

namespace tenon::ops {

// The tensor, if there is one.
inline const Tensor& given(const Tensor& tensor, const char* op_name) {
  TENON_CHECK(tensor.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  return tensor;
}

// The first result.
inline Tensor call(const char* name, std::initializer_list<dispatch::Value> arguments) {
  dispatch::Results results = dispatch::call_by_name(name, arguments);
  return results[0].tensor();
}

// The same with every argument of the schema in its place, those that a program gives by name included.
inline Tensor call_in_order(const char* name, std::initializer_list<dispatch::Value> arguments) {
  return dispatch::call_boxed(dispatch::find_operator(name), arguments)[0].take_tensor();
}

}  // namespace tenon::ops
