#include "functions.h"
#include "polynomials.h"

namespace tenon::codegen {
namespace {

double half_pi(Real x, int part) { return x.is_double() ? kHalfPiF64[part] : kHalfPiF32[part]; }

// asin(s) - s for 0 <= s <= 1/2, z = s^2.
Real asin_tail(Real s, Real z) { return s * z * (s.is_double() ? polynomial(z, kAsinF64) : polynomial(z, kAsinF32)); }

struct Halved {
  Truth upper;  // |x| > 1/2: asin|x| = pi/2 - 2 asin(s)
  Real s, tail;
};
Halved halve(Real a) {
  Truth upper = a > 0.5;
  Real z = select(upper, multiply_add(a, -0.5, number(a, 0.5)), a * a);
  Real s = select(upper, square_root(z), a);
  return {upper, s, asin_tail(s, z)};
}

// atan of 0 <= a, not NaN.
Real atan_positive(Real a) {
  Truth far = a > 0x1.3504f333f9de6p+1, middle = a > 0x1.a827999fcef32p-2;
  Real one = number(a, 1.0);
  Real above = select(far, -one, select(middle, a - 1.0, a));
  Real below = select(far, a, select(middle, a + 1.0, one));
  Real t = above / below;
  Real z = t * t;
  Real tail = t * z * (a.is_double() ? polynomial(z, kAtanF64) : polynomial(z, kAtanF32));
  Real zero = number(a, 0.0);
  Real base = select(far, half_pi(a, 0), select(middle, 0.5 * half_pi(a, 0), zero));
  Real base_low = select(far, half_pi(a, 1), select(middle, 0.5 * half_pi(a, 1), zero));
  return base + (t + (tail + base_low));
}

}  // namespace

Real asin(Real x) {
  Halved h = halve(abs(x));
  Real twice = h.s + h.s;
  Real upper = half_pi(x, 0) - (twice + (h.tail + h.tail - half_pi(x, 1)));
  return copy_sign(select(h.upper, upper, h.s + h.tail), x);
}

Real acos(Real x) {
  Halved h = halve(abs(x));
  Real signed_s = copy_sign(h.s, x), signed_tail = copy_sign(h.tail, x);
  Real middle = half_pi(x, 0) - (signed_s + (signed_tail - half_pi(x, 1)));
  Real twice = h.s + h.s, twice_tail = h.tail + h.tail;
  Real left = 2 * half_pi(x, 0) - (twice + (twice_tail - 2 * half_pi(x, 1)));
  return select(h.upper, select(x < 0.0, left, twice + twice_tail), middle);
}

Real atan(Real x) { return copy_sign(select(is_nan(x), x, atan_positive(abs(x))), x); }

Real atan2(Real y, Real x) {
  Real a = abs(y), b = abs(x);
  Truth steep = a > b;
  Real large = select(steep, a, b), small = select(steep, b, a);
  // 0/0 and inf/inf have the limits of the quadrant's axis and diagonal.
  Real ratio = select(large == 0.0, 0.0, select(small == large, 1.0, small / large));
  Real angle = atan_positive(ratio);
  angle = select(steep, half_pi(x, 0) - (angle - half_pi(x, 1)), angle);
  angle = select(sign_bit(x), 2 * half_pi(x, 0) - (angle - 2 * half_pi(x, 1)), angle);
  return select(is_nan(x) | is_nan(y), x + y, copy_sign(angle, y));
}

}  // namespace tenon::codegen
