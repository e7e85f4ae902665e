#include <tenon/kernels/special.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/strided.h"

namespace tenon::kernels {
namespace {

constexpr double kFar = 10;  // from here on the series below are exact to the last bit

// Hurwitz' zeta function, the sum of (q + k)^-s for k >= 0, of q > 0 and a whole s >= 2: the first terms one by one,
// the rest by Euler and Maclaurin's formula.
double zeta_right(double s, double q) {
  double sum = 0;
  for (; q < kFar; ++q) sum += std::pow(q, -s);
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

void polygamma(int64_t n, const TensorBase& self, const TensorBase& out) {
  Strided source(self), target(out);
  with_element_type(self.dtype(), [&]<typename From>() {
    with_element_type(out.dtype(), [&]<typename To>() {
      if constexpr (std::is_floating_point_v<decltype(widen(To()))>) {
        const From* from = self.data<From>();
        To* to = out.data<To>();
        parallel_for(target.count, kGrain / 16, [&](int64_t begin, int64_t end) {
          for (int64_t at = begin; at < end; ++at) {
            auto x = static_cast<double>(widen(from[offset_of(at, source.sizes, source.strides)]));
            double value = derivative(n, x);
            if constexpr (std::is_same_v<To, double>)
              to[offset_of(at, target.sizes, target.strides)] = value;
            else
              to[offset_of(at, target.sizes, target.strides)] = narrow<To>(static_cast<float>(value));
          }
        });
      }
    });
  });
}

}  // namespace tenon::kernels
