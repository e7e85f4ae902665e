// The regularized incomplete gamma functions, P(a, x) and Q(a, x) = 1 - P(a, x): of the two, the one that is small is
// computed, so that the other loses no digits. (DLMF 8.7, 8.9 and 8.12; which one where is Gautschi's, 1979.)
#include <tenon/kernels/special.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "support/log_gamma.h"

namespace tenon::kernels {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
constexpr double kLarge = 1e5;  // from here on the expansion for large parameters is exact
constexpr int kMostSteps = 100000;

// m - log(1 + m), which is close to m * m / 2.
double minus_log1p(double m) {
  if (std::fabs(m) > 0.3) return m - std::log1p(m);
  // By the series of the inverse hyperbolic tangent, whose first term is taken out.
  double t = m / (2 + m), square = t * t, power = square, sum = 1.0 / 3;
  for (int odd = 5; odd < 31; odd += 2, power *= square) sum += power / odd;
  return t * m - 2 * t * square * sum;
}

// log(gamma(1 + a)): near 0, where 1 + a has lost digits of a, by its series, whose terms are zeta(n) / n.
double log_gamma_of_next(double a) {
  if (std::fabs(a) > 0.01) return support::log_gamma(1 + a);
  constexpr double kTerms[] = {-1.0083492773819228 / 7, 1.0173430619844491 / 6,  -1.0369277551433699 / 5,
                               1.0823232337111382 / 4,  -1.2020569031595942 / 3, 1.6449340668482264 / 2,
                               -std::numbers::egamma};
  double sum = 0;
  for (double term : kTerms) sum = sum * a + term;
  return sum * a;
}

// x^a e^-x / gamma(a + 1).
double factor(double a, double x) {
  if (a < 10) return std::exp(a * std::log(x) - x - log_gamma_of_next(a));
  double z = 1 / (a * a);
  double stirling = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188))))) / a;
  // Far from a, x - a has lost digits of x.
  double m = (x - a) / a, exponent = std::fabs(m) > 0.3 ? a * std::log(x / a) - (x - a) : -a * minus_log1p(m);
  return std::exp(exponent - stirling) / std::sqrt(2 * std::numbers::pi * a);
}

// P, by powers of x.
double lower_by_series(double a, double x) {
  double scale = factor(a, x), term = 1, sum = 1;
  if (scale == 0) return 0;
  for (int step = 1; step < kMostSteps && term > sum * kEpsilon; ++step) sum += term *= x / (a + step);
  return scale * sum;
}

// Q, by Legendre's continued fraction and Lentz' way of evaluating one.
double upper_by_fraction(double a, double x) {
  double scale = factor(a, x) * a;
  if (scale == 0) return 0;
  double b = x + 1 - a, c = 1e300, d = 1 / b, value = d;
  for (int step = 1; step < kMostSteps; ++step) {
    double numerator = -step * (step - a);
    b += 2;
    d = 1 / (numerator * d + b);
    c = b + numerator / c;
    value *= c * d;
    if (std::fabs(c * d - 1) < kEpsilon) break;
  }
  return scale * value;
}

// Q of small x and a, where it is close to 0 and P close to 1.
double upper_by_series(double a, double x) {
  double term = 1, sum = 0;
  for (int step = 1; step < 200; ++step) {
    term *= -x / step;
    sum += term / (a + step);
    if (std::fabs(term) <= std::fabs(sum) * kEpsilon) break;
  }
  double logarithm = a * std::log(x) - log_gamma_of_next(a);
  return -std::expm1(logarithm) - a * std::exp(logarithm) * sum;
}

// Temme's expansion, whose first part is the error function of the distance from a.
double of_large(double a, double x, bool upper) {
  double m = (x - a) / a, sign = upper ? 1 : -1;
  if (!(std::fabs(x - a) < 50 * std::sqrt(a))) return (x > a) == upper ? 0 : 1;  // e^-1000 from there on
  double half_square = minus_log1p(m), eta = std::copysign(std::sqrt(2 * half_square), m);
  constexpr double kFirst[] = {
      -2.18544851067999216e-6, 1.0 / 25515, -139.0 / 777600, 1.0 / 2835, 1.0 / 864, -2.0 / 135, 1.0 / 12, -1.0 / 3};
  double first = 0;
  for (double term : kFirst) first = first * eta + term;
  double second = -1.0 / 540 + eta * (-1.0 / 288 + eta * (1.0 / 378));
  double rest = std::exp(-a * half_square) / std::sqrt(2 * std::numbers::pi * a) * (first + second / a);
  return std::erfc(sign * eta * std::sqrt(a / 2)) / 2 + sign * rest;
}

double lower(double a, double x);

double upper(double a, double x) {
  if (x < 0 || a < 0) return kNothing;
  if (a == 0) return x > 0 ? 0 : kNothing;
  if (x == 0) return 1;
  if (std::isinf(a)) return std::isinf(x) ? kNothing : 1;
  if (std::isinf(x)) return 0;
  if (std::isnan(a) || std::isnan(x)) return kNothing;
  if (a > kLarge) return of_large(a, x, true);
  if (x > 1.1) return x < a ? 1 - lower_by_series(a, x) : upper_by_fraction(a, x);
  bool is_large = x <= 0.5 ? -0.4 / std::log(x) < a : x * 1.1 < a;
  return is_large ? 1 - lower_by_series(a, x) : upper_by_series(a, x);
}

double lower(double a, double x) {
  if (x < 0 || a < 0) return kNothing;
  if (a == 0) return x > 0 ? 1 : kNothing;
  if (x == 0) return 0;
  if (std::isinf(a)) return std::isinf(x) ? kNothing : 0;
  if (std::isinf(x)) return 1;
  if (std::isnan(a) || std::isnan(x)) return kNothing;
  if (a > kLarge) return of_large(a, x, false);
  return x > 1 && x > a ? 1 - upper(a, x) : lower_by_series(a, x);
}

}  // namespace

void incomplete_gamma(const TensorBase& self, const TensorBase& other, bool is_upper, const TensorBase& out) {
  each_pair(is_upper ? upper : lower, self, other, out);
}

}  // namespace tenon::kernels
