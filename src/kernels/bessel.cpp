// Bessel's and Airy's functions. Series where they need few terms, asymptotic ones where those have all digits, and the
// trapezoidal rule on an integral (which converges faster than any power of its step) in between.
#include <tenon/kernels/special.h>

#include <math.h>  // j0 and its relatives are POSIX's

#include <cmath>
#include <limits>
#include <numbers>

namespace tenon::kernels {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kPi = std::numbers::pi;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kFar = 30;  // from here on terms of asymptotic series fall below the last bit before they grow

// The sum of (x²/4)^k / (k! (k + order)!), for k >= 0: all of one sign.
double power_series(double x, int order) {
  double z = x * x / 4, term = 1, sum = 1;
  for (int k = 1; term > sum * 1e-17; ++k) {
    term *= z / (static_cast<double>(k) * (k + order));
    sum += term;
  }
  return sum;
}

// Hankel's series: the sum of `sign`^k a_k(order) / x^k.
double hankel_series(double x, double order, double sign) {
  double term = 1, sum = 1, square = 4 * order * order;
  for (int k = 1; k < 40; ++k) {
    double odd = 2 * k - 1, next = term * sign * (square - odd * odd) / (k * 8 * x);
    if (std::abs(next) >= std::abs(term) || std::abs(next) < 1e-18) break;
    term = next;
    sum += term;
  }
  return sum;
}

// I(order) times exp(-|x|), of x >= 0 and an order of 0 or 1.
double scaled_first_kind(double x, int order) {
  if (std::isinf(x)) return 0;
  if (x < kFar) return std::exp(-x) * power_series(x, order) * (order == 1 ? x / 2 : 1);
  return hankel_series(x, order, -1) / std::sqrt(2 * kPi * x);
}

// exp(x) K(order) as the integral of exp(-x (cosh t - 1)) cosh(order t) over t >= 0, of x from 1/2 on.
double scaled_second_kind(double x, double order) {
  if (std::isinf(x)) return 0;
  if (x > kFar) return std::sqrt(kPi / (2 * x)) * hankel_series(x, order, 1);
  constexpr double kStep = 1.0 / 16;
  double end = std::acosh(1 + 45 / x), sum = 0.5;
  for (double t = kStep; t < end; t += kStep) {
    double half = std::sinh(t / 2);
    sum += std::exp(-2 * x * half * half) * std::cosh(order * t);
  }
  return sum * kStep;
}

// K(0) and K(1) of 0 < x <= 2, by their series at 0.
double small_k0(double x) {
  double z = x * x / 4, term = 1, harmonic = 0, sum = 0;
  for (int k = 1; term > 1e-18; ++k) {
    term *= z / (static_cast<double>(k) * k);
    harmonic += 1.0 / k;
    sum += term * harmonic;
  }
  return sum - (std::log(x / 2) + std::numbers::egamma) * power_series(x, 0);
}

double small_k1(double x) {
  double z = x * x / 4, term = 1, digammas = 1 - 2 * std::numbers::egamma, sum = digammas;  // psi(k + 1) + psi(k + 2)
  for (int k = 1; term > 1e-18; ++k) {
    term *= z / (static_cast<double>(k) * (k + 1));
    digammas += 1.0 / k + 1.0 / (k + 1);
    sum += term * digammas;
  }
  return 1 / x + std::log(x / 2) * (x / 2) * power_series(x, 1) - x / 4 * sum;
}

double second_kind(double x, int order, bool scaled) {
  if (std::isnan(x)) return x;
  if (x <= 0) return x == 0 ? kInf : kNone;
  if (x > 2) return scaled_second_kind(x, order) * (scaled ? 1 : std::exp(-x));
  return (order == 0 ? small_k0(x) : small_k1(x)) * (scaled ? std::exp(x) : 1);
}

// Ai by its series at 0, in more digits than are left when its parts cancel.
double airy_series(double x) {
  constexpr long double kAtZero = 0.355028053887817239260063186004183L, kSlope = 0.258819403792806798405183560189204L;
  const long double z = static_cast<long double>(x) * x * x;
  long double f = 1, g = x, even = 1, odd = x;
  for (int k = 1; std::abs(even) + std::abs(odd) > 1e-25L; ++k) {
    even *= z / ((3.0L * k - 1) * (3.0L * k));
    odd *= z / ((3.0L * k) * (3.0L * k + 1));
    f += even;
    g += odd;
  }
  return static_cast<double>(kAtZero * f - kSlope * g);
}

// Left of -8: a wave whose amplitude and phase are asymptotic series in 1/zeta.
double airy_wave(double size) {
  const double zeta = 2.0 / 3 * size * std::sqrt(size);
  double term = 1, even = 1, odd = 0;
  for (int k = 1; k < 20; ++k) {
    double next = term * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216.0 * k * (2 * k - 1) * zeta);
    if (next >= term || next < 1e-18) break;
    term = next;
    (k % 2 == 0 ? even : odd) += (k / 2 % 2 == 0 ? 1 : -1) * term;
  }
  const double angle = zeta + kPi / 4;
  return (std::sin(angle) * even - std::cos(angle) * odd) / std::sqrt(kPi * std::sqrt(size));
}

}  // namespace

double bessel_j0(double x) { return std::isinf(x) ? 0 : ::j0(x); }
double bessel_j1(double x) { return std::isinf(x) ? 0 : ::j1(x); }
double bessel_y0(double x) { return x < 0 ? kNone : std::isinf(x) ? 0 : x == 0 ? -kInf : ::y0(x); }
double bessel_y1(double x) { return x < 0 ? kNone : std::isinf(x) ? 0 : x == 0 ? -kInf : ::y1(x); }

double spherical_bessel_j0(double x) { return std::isinf(x) ? 0 : x == 0 ? 1 : std::sin(x) / x; }

double scaled_modified_bessel_i0(double x) { return std::isnan(x) ? x : scaled_first_kind(std::abs(x), 0); }
double scaled_modified_bessel_i1(double x) {
  return std::isnan(x) ? x : std::copysign(scaled_first_kind(std::abs(x), 1), x);
}
// In two factors, because the exponential overflows earlier than the function does.
double modified_bessel_i0(double x) {
  if (std::isinf(x)) return kInf;
  const double half = std::exp(std::abs(x) / 2);
  return scaled_modified_bessel_i0(x) * half * half;
}
double modified_bessel_i1(double x) {
  if (std::isinf(x)) return x;
  const double half = std::exp(std::abs(x) / 2);
  return scaled_modified_bessel_i1(x) * half * half;
}

double modified_bessel_k0(double x) { return second_kind(x, 0, false); }
double modified_bessel_k1(double x) { return second_kind(x, 1, false); }
double scaled_modified_bessel_k0(double x) { return second_kind(x, 0, true); }
double scaled_modified_bessel_k1(double x) { return second_kind(x, 1, true); }

double airy_ai(double x) {
  if (std::isnan(x) || std::isinf(x)) return std::isnan(x) ? x : std::copysign(0.0, 1);
  if (x < -8) return airy_wave(-x);
  if (x <= 1) return airy_series(x);
  const double zeta = 2.0 / 3 * x * std::sqrt(x);
  return std::sqrt(x / 3) / kPi * scaled_second_kind(zeta, 1.0 / 3) * std::exp(-zeta);
}

}  // namespace tenon::kernels
