#include <tenon/kernels/special.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/wide_lines.h"

namespace tenon::kernels {
namespace {

constexpr double kFar = 10;  // from here on the series below are exact to the last bit

// Hurwitz' zeta function of q > 0 and s > 1: the first terms one by one, the rest by Euler and Maclaurin's formula,
// whose terms get smaller as long as s is small beside q.
double zeta_right(double s, double q) {
  double sum = 0;
  for (; q < kFar + s; ++q) {
    double term = std::pow(q, -s);
    sum += term;
    if (std::isinf(sum) || term == 0 || term < sum * 1e-18) return sum;
  }
  double power = std::pow(q, -s);
  sum += power * q / (s - 1) + power / 2;
  // Bernoulli numbers over factorials: B(2k) / (2k)!.
  constexpr double kTerms[] = {
      1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160, -691.0 / 1307674368000.0, 1.0 / 74724249600.0};
  double factor = s, scale = power / q;
  for (size_t at = 0; at < std::size(kTerms); ++at) {
    sum += kTerms[at] * factor * scale;
    auto k = static_cast<double>(2 * at);
    factor *= (s + k + 1) * (s + k + 2);
    scale /= q * q;
  }
  return sum;
}

// Terms left of 0 are those of the right with another sign, from the place where they begin to where they end.
double zeta(double s, double q) {
  if (q > 0 || std::isnan(q)) return zeta_right(s, q);
  if (q == std::floor(q)) return std::numeric_limits<double>::infinity();
  double count = std::floor(-q) + 1, first = 1 - (q + count);
  double left = zeta_right(s, first) - zeta_right(s, first + count);
  return (std::fmod(s, 2) == 0 ? left : -left) + zeta_right(s, q + count);
}

double digamma(double x) {
  if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
  if (x < 0) {
    double part = x - std::trunc(x);
    if (part == 0) return std::numeric_limits<double>::quiet_NaN();
    return digamma(1 - x) - std::numbers::pi / std::tan(std::numbers::pi * part);
  }
  double sum = 0;
  for (; x < kFar; ++x) sum -= 1 / x;
  constexpr double kTerms[] = {1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12};
  double z = 1 / (x * x), series = 0;
  for (double term : kTerms) series = series * z + term;
  return sum + std::log(x) - 0.5 / x - z * series;
}

double derivative(int64_t n, double x) {
  if (n == 0) return digamma(x);
  auto order = static_cast<double>(n);
  double size = std::tgamma(order + 1) * zeta(order + 1, x);
  return n % 2 == 1 ? size : -size;
}

}  // namespace

double hurwitz_zeta(double s, double q) {
  if (std::isnan(s) || std::isnan(q)) return s + q;
  if (s == 1) return std::numeric_limits<double>::infinity();
  // Powers of negative numbers are real for whole exponents alone.
  if (s < 1 || (q <= 0 && q != std::floor(q) && s != std::floor(s))) return std::numeric_limits<double>::quiet_NaN();
  return zeta(s, q);
}

double scaled_erfc(double x) {
  // erfc has digits up to here; what x * x loses in rounding is given back.
  if (x < 26) {
    double square = x * x;
    return std::exp(square) * std::exp(std::fma(x, x, -square)) * std::erfc(x);
  }
  double z = 1 / (2 * x * x), sum = 1, term = 1;
  for (int k = 1; k < 10; ++k) {
    term *= -(2 * k - 1) * z;
    sum += term;
  }
  return sum / (x * std::sqrt(std::numbers::pi));
}

double log_normal_distribution(double x) {
  double t = x * std::numbers::sqrt2 / 2;
  if (x < -1) return std::log(scaled_erfc(-t) / 2) - t * t;
  return std::log1p(-std::erfc(t) / 2);
}

// Hastings' rational guess (Abramowitz and Stegun 26.2.23), good to three digits, and three steps of Halley's, each
// with three times as many.
double normal_quantile(double p) {
  if (std::isnan(p) || p < 0 || p > 1) return std::numeric_limits<double>::quiet_NaN();
  if (p == 0 || p == 1) return std::copysign(std::numeric_limits<double>::infinity(), p - 0.5);
  if (p > 0.5) return -normal_quantile(1 - p);
  double t = std::sqrt(-2 * std::log(p));
  double x = (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
  for (int step = 0; step < 3; ++step) {
    double off = std::erfc(-x * std::numbers::sqrt2 / 2) / 2 - p;
    double move = off * std::sqrt(2 * std::numbers::pi) * std::exp(x * x / 2);
    x -= move / (1 + x * move / 2);
  }
  return x;
}

namespace {

// Strides under which a tensor has these sizes, 0 where it is broadcast.
Ints broadcast_strides(const TensorBase& tensor, const Ints& sizes) {
  Ints strides;
  strides.resize(sizes.size(), 0);
  const auto rank = static_cast<size_t>(tensor.dim());
  for (size_t dim = 0; dim < rank; ++dim)
    if (tensor.sizes()[dim] != 1) strides[sizes.size() - rank + dim] = tensor.strides()[dim];
  return strides;
}

// Calls compute(position of the first, count, results) for stretches of the result, which is rounded from float64 to
// float32, and from there to a half.
template <typename Compute>
void each_stretch(const TensorBase& out, const Compute& compute) {
  const Strided target(out);
  parallel_for(target.count, kGrain / 16, [&](int64_t begin, int64_t end) {
    double results[kStretch];
    float rounded[kStretch];
    for_each_stretch(target.sizes, begin, end, [&](int64_t first, int64_t count) {
      compute(first, count, results);
      const Stretch place{out, offset_of(first, target.sizes, target.strides), target.strides.back(), count};
      if (out.dtype() == kFloat64) return write_line(results, place);
      std::copy(results, results + count, rounded);
      write_line(rounded, place);
    });
  });
}

// `compute(double)` of each element; the result has the sizes of `self`.
template <typename Compute>
void of_elements(const TensorBase& self, const TensorBase& out, const Compute& compute) {
  const Strided source(self);
  each_stretch(out, [&](int64_t first, int64_t count, double* results) {
    read_line({self, offset_of(first, source.sizes, source.strides), source.strides.back(), count}, results);
    for (int64_t at = 0; at < count; ++at) results[at] = compute(results[at]);
  });
}

}  // namespace

void each_element(double (*function)(double), const TensorBase& self, const TensorBase& out) {
  of_elements(self, out, function);
}

void each_pair(double (*function)(double, double), const TensorBase& a, const TensorBase& b, const TensorBase& out) {
  const Ints sizes = Strided(out).sizes;
  const Ints a_strides = broadcast_strides(a, sizes), b_strides = broadcast_strides(b, sizes);
  each_stretch(out, [&](int64_t first, int64_t count, double* results) {
    double others[kStretch];
    read_line({a, offset_of(first, sizes, a_strides), a_strides.back(), count}, results);
    read_line({b, offset_of(first, sizes, b_strides), b_strides.back(), count}, others);
    for (int64_t at = 0; at < count; ++at) results[at] = function(results[at], others[at]);
  });
}

void polygamma(int64_t n, const TensorBase& self, const TensorBase& out) {
  of_elements(self, out, [n](double x) { return derivative(n, x); });
}

}  // namespace tenon::kernels
