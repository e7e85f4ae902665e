// sin, cos, tan: reduction by multiples of pi/2, with the lanes of huge arguments left to libm.
#include "functions.h"
#include "polynomials.h"

namespace tenon::codegen {
namespace {

// Beyond it the reduction below loses its accuracy.
double limit_of(Real x) { return x.is_double() ? 0x1p20 : 0x1p16; }

struct Turned {
  Real sine, cosine;  // of the rest
  Whole quarter;      // how many quarter turns were taken away
};

Turned turn(Real x) {
  Nearest n = nearest(x * 0x1.45f306dc9c883p-1);
  Real r = x;
  if (x.context->target.has_fma) {
    for (int i = 0; i < 3; ++i) r = multiply_add(-n.real, x.is_double() ? kHalfPiF64[i] : kHalfPiF32[i], r);
  } else {
    for (double part : kHalfPiShortF64) r = r - n.real * part;
  }
  Real z = r * r;
  Real sine_tail = x.is_double() ? polynomial(z, kSinF64) : polynomial(z, kSinF32);
  Real cosine_tail = x.is_double() ? polynomial(z, kCosF64) : polynomial(z, kCosF32);
  Real sine = multiply_add(r * z, sine_tail, r);
  Real cosine = 1.0 + multiply_add(z * z, cosine_tail, -0.5 * z);
  return {sine, cosine, n.integer};
}

Real at_quarter(const Turned& turned, Whole quarter) {
  Real result = select((quarter & 1) != 0, turned.cosine, turned.sine);
  const int to_sign = result.is_double() ? 62 : 30;
  return from_bits(result, bits(result) ^ ((quarter & 2) << to_sign));
}

// Float without fused multiply-add goes through double: the parts of pi/2 would be too short.
bool through_double(Real x) { return !x.is_double() && !x.context->target.has_fma; }

Real usual_sin(Real x) {
  if (through_double(x)) return narrow(usual_sin(widen(x)));
  Turned turned = turn(x);
  return at_quarter(turned, turned.quarter);
}
Real usual_cos(Real x) {
  if (through_double(x)) return narrow(usual_cos(widen(x)));
  Turned turned = turn(x);
  return at_quarter(turned, turned.quarter + 1);
}
Real usual_tan(Real x) {
  if (through_double(x)) return narrow(usual_tan(widen(x)));
  Turned turned = turn(x);
  Truth odd = (turned.quarter & 1) != 0;
  return select(odd, -turned.cosine, turned.sine) / select(odd, turned.sine, turned.cosine);
}

}  // namespace

// The reduction loses the sign of zero.
Real sin(Real x) { return call_lanes_where(abs(x) > limit_of(x), "sin", x, select(x == 0.0, x, usual_sin(x))); }
Real cos(Real x) { return call_lanes_where(abs(x) > limit_of(x), "cos", x, usual_cos(x)); }
Real tan(Real x) { return call_lanes_where(abs(x) > limit_of(x), "tan", x, select(x == 0.0, x, usual_tan(x))); }

}  // namespace tenon::codegen
