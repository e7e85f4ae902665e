#include "functions.h"

#include <limits>

namespace tenon::codegen {

// Float: exp(y log|x|) in double, whose error stays far below float's rounding; double needs more digits than a double
// logarithm has, and is libm's.
Real pow(Real x, Real y) {
  if (x.is_double()) return call_lanes("pow", x, y);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Real magnitude = narrow(exp(widen(y) * log(widen(abs(x)))));
  Real half = 0.5 * y;
  Truth whole_number = truncate(y) == y;
  Truth odd = whole_number & (truncate(half) != half);
  Real result = select(odd & sign_bit(x), -magnitude, magnitude);
  result = select((x < 0.0) & (x > -infinity) & !whole_number, std::numeric_limits<double>::quiet_NaN(), result);
  Truth one = (y == 0.0) | (x == 1.0) | ((x == -1.0) & (abs(y) == infinity));
  return select(one, 1.0, select(is_nan(x) | is_nan(y), x + y, result));
}

}  // namespace tenon::codegen
