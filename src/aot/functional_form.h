// The functional form of a custom operator that writes to arguments: it takes the same arguments, leaves them alone,
// and returns what they would have become behind the operator's own results.
//
//   mylib::sin_(Tensor(a0!) x) -> ()      mylib_functional::sin_(Tensor x) -> Tensor
#pragma once

#include <tenon/dispatch/operator.h>

namespace tenon::aot {

// Made at its first use, and the same for as long as somebody keeps it. No name leads to it.
dispatch::OperatorRef functional_form(const dispatch::Operator& op);

}  // namespace tenon::aot
