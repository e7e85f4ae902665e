// Arithmetic on doubles. Plain numbers, folded constants and evaluated expressions all come here, so that they agree
// bit for bit.
#pragma once

#include <tenon/sym/expr.h>

#include <cmath>

namespace tenon::sym {

// RealAbs, RealNeg, Sqrt … Log2.
double apply_unary(Op op, double x);
// RealAdd … RealMax.
double apply_binary(Op op, double a, double b);
// RealEq … Same.
bool apply_comparison(Op op, double a, double b);
// Floor, Ceil, Round, Trunc; false if the result is no 64-bit number.
bool apply_rounding(Op op, double x, int64_t& result);
inline bool has_no_fraction(double x) { return std::isfinite(x) && std::trunc(x) == x; }

}  // namespace tenon::sym
