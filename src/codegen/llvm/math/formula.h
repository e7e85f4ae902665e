// Formulas on lanes: C++ arithmetic that emits LLVM instructions.
//
// A `Real` is a float or double value, scalar or vector; a `Whole` is an integer of the same width as some Real, and a
// `Truth` a condition. Plain numbers take the type of the other operand. The same formula gives the same bits for a
// scalar and for every lane of a vector, since each instruction is exact or correctly rounded on its own.
#pragma once

#include "../target.h"

#include <llvm/IR/IRBuilder.h>

#include <span>

namespace tenon::codegen {

// Where instructions go, and for whom.
struct Context {
  llvm::IRBuilder<>& b;
  const TargetSpec& target;
};

struct Truth {
  Context* context;
  llvm::Value* value;
};

struct Whole {
  Context* context;
  llvm::Value* value;
};

struct Real {
  Context* context;
  llvm::Value* value;
  bool is_double() const { return value->getType()->getScalarType()->isDoubleTy(); }
};

Real number(Real like, double value);
Whole whole(Whole like, int64_t value);

Real operator+(Real a, Real b);
Real operator-(Real a, Real b);
Real operator*(Real a, Real b);
Real operator/(Real a, Real b);
Real operator-(Real a);
Real operator+(Real a, double b);
Real operator-(Real a, double b);
Real operator*(Real a, double b);
Real operator+(double a, Real b);
Real operator-(double a, Real b);
Real operator*(double a, Real b);
Real operator/(double a, Real b);

// a*b + c: fused where the target has it, else rounded twice. Formulas must be accurate enough either way.
Real multiply_add(Real a, Real b, Real c);
Real multiply_add(Real a, double b, Real c);
Real multiply_add(Real a, Real b, double c);
// coefficients[0] + x * (coefficients[1] + x * (…)).
Real polynomial(Real x, std::span<const double> coefficients);

// a / b within 1 ulp, for a finite b in 1 … 2^30 and a of at most its size, or NaN: a third of the time of a division.
Real quotient(Real a, Real b);

Real abs(Real a);
Real square_root(Real a);
Real floor(Real a);
Real round_even(Real a);
Real truncate(Real a);
Real copy_sign(Real magnitude, Real sign);
Truth operator<(Real a, Real b);
Truth operator<=(Real a, Real b);
Truth operator>(Real a, Real b);
Truth operator>=(Real a, Real b);
Truth operator==(Real a, Real b);
Truth operator!=(Real a, Real b);
Truth operator<(Real a, double b);
Truth operator<=(Real a, double b);
Truth operator>(Real a, double b);
Truth operator>=(Real a, double b);
Truth operator==(Real a, double b);
Truth operator!=(Real a, double b);
Truth is_nan(Real a);
Truth sign_bit(Real a);
Truth operator&(Truth a, Truth b);
Truth operator|(Truth a, Truth b);
Truth operator^(Truth a, Truth b);
Truth operator!(Truth a);
Real select(Truth condition, Real a, Real b);
Real select(Truth condition, Real a, double b);
Real select(Truth condition, double a, Real b);
Whole select(Truth condition, Whole a, Whole b);

Whole bits(Real a);
Real from_bits(Real like, Whole a);
Whole operator+(Whole a, Whole b);
Whole operator-(Whole a, Whole b);
Whole operator&(Whole a, Whole b);
Whole operator|(Whole a, Whole b);
Whole operator^(Whole a, Whole b);
Whole operator+(Whole a, int64_t b);
Whole operator-(Whole a, int64_t b);
Whole operator&(Whole a, int64_t b);
Whole operator|(Whole a, int64_t b);
Whole operator<<(Whole a, int bits);
Whole operator>>(Whole a, int bits);  // arithmetic
Whole shift_right_unsigned(Whole a, int bits);
Truth operator==(Whole a, int64_t b);
Truth operator!=(Whole a, int64_t b);
Truth operator>(Whole a, int64_t b);
Truth operator<(Whole a, int64_t b);
Real to_real(Real like, Whole a);  // signed

Real widen(Real a);   // float → double
Real narrow(Real a);  // double → float

// The nearest whole number to a small `a` (|a| < 2^21 for float, 2^50 for double), as a number and as an integer. Never
// converts, so that NaN and out-of-range lanes give some number and no undefined value.
struct Nearest {
  Real real;
  Whole integer;
  Whole raw;  // the integer plus the exponent's bias in the low bits (9 of a float, 12 of a double), something above
};
Nearest nearest(Real a);
Nearest nearest_product(Real a, double b);  // to a*b
// 2^n for -126 <= n <= 127 (float), -1022 <= n <= 1023 (double).
Real power_of_two(Real like, Whole n);
Real power_of_two(Nearest n);

// Applies the runtime's lanes function of that name ("sin") to all lanes.
Real call_lanes(const char* name, Real a, Real b);
Real call_lanes(const char* name, Real a);
// The same for the lanes in `where`, behind a branch that is not taken if there are none; the others stay as in
// `usual`.
Real call_lanes_where(Truth where, const char* name, Real a, Real usual);
Real call_lanes_where(Truth where, const char* name, Real a, Real b, Real usual);

}  // namespace tenon::codegen
