// Operations on single values: everything that is not memory, loops or a math function.
#pragma once

#include "math/formula.h"

#include <tenon/loop/kernel.h>

namespace tenon::codegen {

// `dtype` is that of the operands.
llvm::Value* unary_operation(Context& context, loop::OpCode code, Dtype dtype, llvm::Value* a);
llvm::Value* binary_operation(Context& context, loop::OpCode code, Dtype dtype, llvm::Value* a, llvm::Value* b);

// Whether emitting it may add branches, so that it cannot go into the end of a block that already has its branch.
bool makes_branches(const loop::Op& op);

}  // namespace tenon::codegen
