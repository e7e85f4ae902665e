// The functional form of a custom operator that writes to arguments: it takes the same arguments, leaves them alone,
// and returns what they would have become behind the operator's own results.
//
//   mylib::sin_(Tensor(a0!) x) -> ()      mylib_functional::sin_(Tensor x) -> Tensor
#pragma once

#include <tenon/core/tensor.h>
#include <tenon/dispatch/operator.h>

namespace tenon::aot {

// Made at its first use, and the same for as long as somebody keeps it. No name leads to it.
dispatch::OperatorRef functional_form(const dispatch::Operator& op);

// The form for arguments that look into the same memory, one of them written:
//
//   mylib::two(Tensor(a0!) x, Tensor(a1!) y) -> ()
//   mylib_functional::two.aliased(Tensor x, Tensor y, Tensor[] bases, SymInt[] places) -> Tensor[]
//
// `bases` are the memories in question, each as the tensor that has all of it. `places` has the strides of each base
// first, because the values that arrive may lie otherwise; then it says of every tensor among the arguments, in order,
// which base it looks into and how (`Place`). The operator runs on views of copies of the bases, and the form returns
// what those have become.
dispatch::OperatorRef aliased_form(const dispatch::Operator& op);

// Where a tensor lies: in which base (-1: in none, and nothing else follows), its sizes, strides and offset.
struct Place {
  int64_t base = -1;
  SymInts sizes, strides;
  SymInt offset = 0;
};
void append(SymInts& places, const Place& place);
Place take_place(const SymInts& places, size_t& at);

}  // namespace tenon::aot
