// exp and what is made of it.
#include "functions.h"
#include "polynomials.h"

namespace tenon::codegen {
namespace {

// exp(x) - 1 = p and exp(x) = (1 + p) * 2^n, with |p| < 0.42. Wants a moderate x.
struct Reduced {
  Real p;
  Nearest n;
};

Real exp_minus_one_near_zero(Real r) {
  return multiply_add(r * r, r.is_double() ? polynomial(r, kExpF64) : polynomial(r, kExpF32), r);
}

Reduced reduce(Real x) {
  const double* ln2 = x.is_double() ? kLn2F64 : kLn2F32;
  Nearest n = nearest_product(x, x.is_double() ? kLog2EF64[0] : kLog2EF32[0]);
  Real r = multiply_add(n.real, -ln2[1], multiply_add(n.real, -ln2[0], x));
  return {exp_minus_one_near_zero(r), n};
}

// y * 2^n, rounded once, for n that need two steps.
Real scale(Real y, Whole n) {
  Whole half = n >> 1;
  return y * power_of_two(y, half) * power_of_two(y, n - half);
}

// NaN stays.
Real clamp(Real x, double low, double high) {
  Real below = select(x > high, high, x);
  return select(below < low, low, below);
}

}  // namespace

Real exp(Real x) {
  Reduced parts = reduce(x.is_double() ? clamp(x, -746, 710) : clamp(x, -104, 89));
  return scale(1.0 + parts.p, parts.n.integer);
}

Real exp2(Real x) {
  x = x.is_double() ? clamp(x, -1076, 1025) : clamp(x, -151, 129);
  Nearest n = nearest(x);
  return scale(1.0 + exp_minus_one_near_zero((x - n.real) * (x.is_double() ? 0x1.62e42fefa39efp-1 : 0x1.62e43p-1)),
               n.integer);
}

Real expm1(Real x) {
  Reduced parts = reduce(x.is_double() ? clamp(x, -40, 710) : clamp(x, -30, 89));
  // Half of the result, since 2^n itself may be too large.
  Real half = power_of_two(x, parts.n.integer - 1);
  Real result = multiply_add(half, parts.p, half - 0.5);
  return select(abs(x) < (x.is_double() ? 0x1p-60 : 0x1p-30), x, result + result);
}

Real sigmoid(Real x) {
  Real e = exp(-abs(x));
  Real right = quotient(number(x, 1.0), 1.0 + e);
  return select(x < 0.0, e * right, right);
}

// |x| = n ln(2)/2 + r; with w = 2^n = exp(2 (|x| - r)) and t = tanh(r), exp(2|x|) = w (1 + t) / (1 - t), and so
// tanh|x| = ((w - 1) + (w + 1) t) / ((w + 1) + (w - 1) t). Rounding keeps the lower side the larger one: never above 1.
// One constant for ln(2)/2 will do: where n is not zero the result depends little on the argument's last digit.
Real tanh(Real x) {
  const double limit = x.is_double() ? 20 : 10;
  Real a = abs(x);
  a = select(a > limit, limit, a);
  Nearest n = nearest_product(a, 2 * (x.is_double() ? kLog2EF64[0] : kLog2EF32[0]));
  Real r = multiply_add(n.real, x.is_double() ? -0x1.62e42fefa39efp-2 : -0x1.62e43p-2, a);
  Real square = r * r;
  Real t = multiply_add(r * square, x.is_double() ? polynomial(square, kTanhF64) : polynomial(square, kTanhF32), r);
  Real w = power_of_two(n), less = w - 1.0, more = w + 1.0;
  return copy_sign(quotient(multiply_add(more, t, less), multiply_add(less, t, more)), x);
}

Real sinh(Real x) {
  if (!x.is_double()) return narrow(sinh(widen(x)));
  Real a = abs(x);
  Real t = expm1(a);
  Real usual = 0.5 * (t + t / (t + 1.0));
  Real root = exp(0.5 * a);
  return copy_sign(select(a > 40.0, 0.5 * root * root, usual), x);
}

Real cosh(Real x) {
  if (!x.is_double()) return narrow(cosh(widen(x)));
  Real a = abs(x);
  Real e = exp(a);
  Real root = exp(0.5 * a);
  return select(a > 40.0, 0.5 * root * root, 0.5 * e + 0.5 / e);
}

}  // namespace tenon::codegen
