// The logarithm of the gamma function's absolute value. std::lgamma leaves the sign in a variable that threads share.
#pragma once

#include <math.h>

namespace tenon::support {

inline double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

}  // namespace tenon::support
