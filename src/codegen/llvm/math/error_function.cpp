#include "functions.h"
#include "polynomials.h"

namespace tenon::codegen {

// Near zero x times a polynomial, further out 1 - exp(-polynomial); libm for double.
Real erf(Real x) {
  if (x.is_double()) return call_lanes("erf", x);
  Real a = abs(x);
  Real near = a * polynomial(a * a, kErfNearF32);
  Real bounded = select(a > 4.0, 4.0, a);
  Real far = 1.0 - exp(-polynomial(bounded - 2.5, kErfFarF32));
  return copy_sign(select(a > 1.0, far, near), x);
}

// Far out what is left of 1 is small: libm keeps its bits.
Real erfc(Real x) { return call_lanes("erfc", x); }

Real log_gamma(Real x) { return call_lanes("lgamma", x); }

}  // namespace tenon::codegen
