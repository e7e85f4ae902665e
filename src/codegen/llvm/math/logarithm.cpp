// log and what is made of it.
#include "functions.h"
#include "polynomials.h"

#include <limits>

namespace tenon::codegen {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

int mantissa_bits(Real x) { return x.is_double() ? 52 : 23; }

// A small integer as a number, without a conversion instruction (x86 has none for 64 bits before AVX-512).
Real small_to_real(Real like, Whole n) {
  Real magic = number(like, like.is_double() ? 0x1.8p52 : 0x1.8p23);
  return from_bits(like, n + bits(magic)) - magic;
}

// x = m * 2^e with sqrt(1/2) <= m < sqrt(2), for x > 0 that is not subnormal.
struct Split {
  Real m;
  Whole e;
};
Split split(Real x) {
  Whole u = bits(x);
  Whole e = (u - bits(number(x, 0x1.6a09e667f3bcdp-1))) >> mantissa_bits(x);
  return {from_bits(x, u - (e << mantissa_bits(x))), e};
}

// log(1 + f) = f - tail, for 1 + f in [sqrt(1/2), sqrt(2)]; `small` is added to the tail before it is rounded away.
Real log_near_one(Real f, Real plus) {
  Real square = f * f;
  if (!f.is_double()) {
    Real tail = multiply_add(f * square, polynomial(f, kLogF32), plus);
    return f + multiply_add(square, -0.5, tail);
  }
  Real s = f / (f + 2.0);
  Real z = s * s;
  Real half = 0.5 * square;
  return f - (half - multiply_add(s, half + z * polynomial(z, kAtanhF64), plus));
}

struct Prepared {
  Real f, e;
};
// Of a positive number.
Prepared prepare(Real x) {
  const double least = x.is_double() ? 0x1p-1022 : 0x1p-126;
  const int shift = x.is_double() ? 54 : 25;
  Truth subnormal = x < least;
  Split parts = split(select(subnormal, x * (x.is_double() ? 0x1p54 : 0x1p25), x));
  Real e = small_to_real(x, parts.e);
  return {parts.m - 1.0, select(subnormal, e - shift, e)};
}

// `usual` for positive finite x; the limits elsewhere.
Real with_limits(Real x, Real usual) {
  Real other = select(x == 0.0, -kInfinity, select(x < 0.0, kNan, x));
  return select((x > 0.0) & (x < kInfinity), usual, other);
}

Real combine(Real f, Real e) {
  const double* ln2 = f.is_double() ? kLn2F64 : kLn2F32;
  return multiply_add(e, ln2[0], log_near_one(f, e * ln2[1]));
}

}  // namespace

Real log(Real x) {
  Prepared parts = prepare(x);
  return with_limits(x, combine(parts.f, parts.e));
}

Real log2(Real x) {
  const double* scale = x.is_double() ? kLog2EF64 : kLog2EF32;
  Prepared parts = prepare(x);
  Real near = log_near_one(parts.f, number(x, 0.0));
  return with_limits(x, multiply_add(near, scale[0], near * scale[1]) + parts.e);
}

Real log10(Real x) {
  const double* scale = x.is_double() ? kLog10EF64 : kLog10EF32;
  const double* of_two = x.is_double() ? kLog10Of2F64 : kLog10Of2F32;
  Prepared parts = prepare(x);
  Real near = log_near_one(parts.f, number(x, 0.0));
  Real low = multiply_add(parts.e, of_two[1], near * scale[1]);
  return with_limits(x, multiply_add(parts.e, of_two[0], multiply_add(near, scale[0], low)));
}

Real log1p(Real x) {
  Split parts = split(x + 1.0);
  // f = (1 + x) / 2^e - 1, without the rounding of 1 + x; from 2^60 on that does not matter.
  Real shrink = power_of_two(x, whole(parts.e, 0) - parts.e);
  Real exact = multiply_add(x, shrink, shrink - 1.0);
  Real f = select(x > 0x1p60, parts.m - 1.0, exact);
  Real usual = combine(f, small_to_real(x, parts.e));
  Real other = select(x == -1.0, -kInfinity, select(x < -1.0, kNan, x));
  Real result = select((x > -1.0) & (x < kInfinity), usual, other);
  return select(abs(x) < (x.is_double() ? 0x1p-60 : 0x1p-30), x, result);
}

// Rare for float, so in double there.
Real asinh(Real x) {
  if (!x.is_double()) return narrow(asinh(widen(x)));
  Real a = abs(x);
  Real square = a * a;
  Real usual = log1p(a + square / (1.0 + square_root(square + 1.0)));
  return copy_sign(select(a > 0x1p28, log(a) + 0x1.62e42fefa39efp-1, usual), x);
}

Real acosh(Real x) {
  if (!x.is_double()) return narrow(acosh(widen(x)));
  Real t = x - 1.0;
  Real usual = log1p(t + square_root(multiply_add(t, t, t + t)));
  Real result = select(x > 0x1p28, log(x) + 0x1.62e42fefa39efp-1, usual);
  return select(x < 1.0, kNan, result);
}

Real atanh(Real x) {
  if (!x.is_double()) return narrow(atanh(widen(x)));
  Real a = abs(x);
  return copy_sign(0.5 * log1p((a + a) / (1.0 - a)), x);
}

}  // namespace tenon::codegen
