// Between dtypes: how they are stored, how they are computed with, and casts.
//
// Bool is i1, narrow floats are computed as float, everything else is itself. In memory bool is a byte, and narrow
// floats are integers of 16 and 8 bits.
#pragma once

#include "math/formula.h"

#include <tenon/core/dtype.h>

namespace tenon::codegen {

llvm::Type* storage_type(Context& context, Dtype dtype);
llvm::Type* compute_type(Context& context, Dtype dtype);
llvm::Value* from_storage(Context& context, Dtype dtype, llvm::Value* raw);
// A float64 value may be stored to a buffer of narrow floats too; it is rounded once.
llvm::Value* to_storage(Context& context, Dtype dtype, llvm::Value* value);
// Between compute types; for a narrow float, rounds to it and gives the float.
llvm::Value* cast_value(Context& context, Dtype from, Dtype to, llvm::Value* value);

}  // namespace tenon::codegen
