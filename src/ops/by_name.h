// What functions of other rows share: what they ask of a tensor; and calls by name, through the dispatcher, of rows
// that have no C++ function, or not yet one that is declared.
#pragma once

#include <tenon/dispatch/packet.h>

namespace tenon::ops {

// The tensor, if there is one.
inline const Tensor& given(const Tensor& tensor, const char* op_name) {
  TENON_CHECK(tensor.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  return tensor;
}

inline void check_rank(const Tensor& tensor, int64_t rank, const char* what, const char* op_name) {
  TENON_CHECK(given(tensor, op_name).dim() == rank, "[{}] expected {} of {} dimensions, got {}", op_name, what, rank,
              tensor.description());
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
