// The functional form of a custom operator that writes to arguments: it takes the same arguments, leaves them alone,
// and returns what they would have become behind the operator's own results.
//
//   mylib::sin_(Tensor(a0!) x) -> ()      mylib_functional::sin_(Tensor x) -> Tensor
#pragma once

#include <tenon/dispatch/operator.h>

namespace tenon::aot {

// Defined at its first use, and known by the operator from then on.
const dispatch::Operator& functional_form(const dispatch::Operator& op);

}  // namespace tenon::aot
