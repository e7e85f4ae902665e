// One operation of an expression on plain operands.
#pragma once

#include <tenon/sym/expr.h>

namespace tenon::sym {

// False if it has no value, or none that fits 64 bits. Reals, operands and results alike, are the bits of the double.
bool apply_operation(Op op, int64_t a, int64_t b, int64_t& result);

}  // namespace tenon::sym
