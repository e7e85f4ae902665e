// The math functions, as formulas on lanes; each within 4 ulp (most within 2) over the whole range of float and double.
// Functions that are rare are computed in double for float, or by libm lane by lane.
#pragma once

#include "formula.h"

#include <tenon/loop/kernel.h>

namespace tenon::codegen {

// A transcendental operation of the loop IR; `b` is null for unary ones.
llvm::Value* math_function(Context& context, loop::OpCode code, llvm::Value* a, llvm::Value* b);
// Whether it has a branch for rare lanes.
bool math_makes_branches(loop::OpCode code);

Real exp(Real x);
Real exp2(Real x);
Real expm1(Real x);
Real sigmoid(Real x);
Real tanh(Real x);
Real sinh(Real x);
Real cosh(Real x);
Real log(Real x);
Real log2(Real x);
Real log10(Real x);
Real log1p(Real x);
Real asinh(Real x);
Real acosh(Real x);
Real atanh(Real x);
Real sin(Real x);
Real cos(Real x);
Real tan(Real x);
Real asin(Real x);
Real acos(Real x);
Real atan(Real x);
Real atan2(Real y, Real x);
Real erf(Real x);
Real erfc(Real x);
Real log_gamma(Real x);
Real pow(Real x, Real y);

}  // namespace tenon::codegen
