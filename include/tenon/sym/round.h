// Decimal rounding of numbers that may be symbols: to so many digits behind the point, or, if that is negative, before
// it. Halves go to the even neighbour. An integer stays one; behind the point it has nothing to round.
//
//   SymFloat price = round(SymFloat(123.4567), 1);   // 123.5
//   SymInt whole = round(SymInt(125), -1);           // 120
#pragma once

#include <tenon/support/error.h>
#include <tenon/sym/sym_float.h>

#include <cmath>

namespace tenon {

// An Error for a symbol whose scaled value 64 bits do not hold.
inline SymFloat round(const std::same_as<SymFloat> auto& a, int64_t digits) {
  double unit = std::pow(10.0, static_cast<double>(std::abs(digits)));
  if (!a.is_symbolic()) {
    double value = double(a), scaled = digits < 0 ? value / unit : value * unit;
    if (!std::isfinite(scaled)) return a;  // there are no digits to lose, or no number
    return SymFloat(digits < 0 ? std::nearbyint(scaled) * unit : std::nearbyint(scaled) / unit);
  }
  if (digits < 0) return SymFloat(round(a / unit)) * unit;
  return SymFloat(round(a * unit)) / unit;
}

inline SymInt round(const std::same_as<SymInt> auto& a, int64_t digits) {
  if (digits >= 0) return a;
  TENON_CHECK(digits >= -18, "[round] expected at most 18 digits before the point, as 64 bits hold, got {}", -digits);
  int64_t unit = 1;
  for (int64_t digit = digits; digit < 0; ++digit) unit *= 10;
  // Down, and up again from the half on; a half stays down where that is even.
  SymInt below = a / unit, rest = a - below * unit, twice = rest * 2;
  SymInt up = to_int(twice > unit) + to_int(twice == unit) * (below % 2);
  return (below + up) * unit;
}

}  // namespace tenon
