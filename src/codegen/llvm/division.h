// Integer division. x86 has no vector division of integers; quotients of up to 52 bits are exact in double arithmetic.
#pragma once

#include "math/formula.h"

#include <tenon/core/dtype.h>

namespace tenon::codegen {

struct DivisionResult {
  llvm::Value *quotient, *remainder;
};

// Of i64 index expressions, scalar or vector, rounding down. A zero divisor gives anything but no trap. `small`: the
// dividend is known to stay below 2^52 in magnitude.
DivisionResult index_floor_div(Context& context, llvm::Value* a, llvm::Value* b, bool small);

// Of values of an integer dtype, truncating: a zero divisor gives 0 and 0, the smallest number over -1 itself and 0.
DivisionResult truncating_division(Context& context, Dtype dtype, llvm::Value* a, llvm::Value* b);

}  // namespace tenon::codegen
