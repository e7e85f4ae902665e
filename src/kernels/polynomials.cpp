// Orthogonal polynomials, by the recurrences between three of them; Chebyshev's of high degree, inside of [-1, 1], by
// angles.
#include <tenon/kernels/special.h>

#include <cmath>
#include <limits>

namespace tenon::kernels {
namespace {

constexpr double kMany = 6;                  // degrees from which angles are cheaper than steps
constexpr int64_t kMost = int64_t{1} << 20;  // and beyond which no steps are taken
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// p(0) = 1, p(1) = `first`, p(k + 1) = next(k, p(k), p(k - 1)).
template <typename Next>
double by_recurrence(int64_t n, double first, Next&& next) {
  if (n == 0) return 1;
  if (n > kMost) return kNone;
  double before = 1, here = first;
  for (int64_t k = 1; k < n && !std::isnan(here); ++k) {
    double after = next(static_cast<double>(k), here, before);
    before = here;
    here = after;
  }
  return here;
}

// Degrees beyond this are so for all that a loop can do.
int64_t degree(double n) { return n >= 0x1p40 ? int64_t{1} << 40 : static_cast<int64_t>(n); }

constexpr int64_t kMostOfHermite = 512;  // as in PyTorch

double sign_of(double x, int64_t n) { return x > 0 || n % 2 == 0 ? 1 : -1; }

double chebyshev(double x, int64_t n, double first) {
  return by_recurrence(n, first, [x](double, double here, double before) { return 2 * x * here - before; });
}

bool by_angles(double x, double n) { return n > kMany && std::abs(x) < 1; }

}  // namespace

double chebyshev_t(double x, double given) {
  if (!(given > -1)) return 0;
  const int64_t n = degree(given);
  if (std::abs(x) == 1) return sign_of(x, n);
  if (by_angles(x, given)) return std::cos(static_cast<double>(n) * std::acos(x));
  return chebyshev(x, n, x);
}

double chebyshev_u(double x, double given) {
  if (!(given > -1)) return 0;
  const int64_t n = degree(given);
  const auto above = static_cast<double>(n + 1);
  if (std::abs(x) == 1) return sign_of(x, n) * above;
  if (by_angles(x, given)) return std::sin(above * std::acos(x)) / std::sin(std::acos(x));
  return chebyshev(x, n, 2 * x);
}

double chebyshev_v(double x, double given) {
  if (!(given > -1)) return 0;
  const int64_t n = degree(given);
  const auto middle = static_cast<double>(n) + 0.5;
  if (x == 1) return 1;
  if (x == -1) return sign_of(x, n) * 2 * middle;
  if (by_angles(x, given)) return std::cos(middle * std::acos(x)) / std::cos(std::acos(x) / 2);
  return chebyshev(x, n, 2 * x - 1);
}

double chebyshev_w(double x, double given) {
  if (!(given > -1)) return 0;
  const int64_t n = degree(given);
  const auto middle = static_cast<double>(n) + 0.5;
  if (x == 1) return 2 * middle;
  if (x == -1) return sign_of(x, n);
  if (by_angles(x, given)) return std::sin(middle * std::acos(x)) / std::sin(std::acos(x) / 2);
  return chebyshev(x, n, 2 * x + 1);
}

double shifted_chebyshev_t(double x, double n) { return chebyshev_t(2 * x - 1, n); }
double shifted_chebyshev_u(double x, double n) { return chebyshev_u(2 * x - 1, n); }
double shifted_chebyshev_v(double x, double n) { return chebyshev_v(2 * x - 1, n); }
double shifted_chebyshev_w(double x, double n) { return chebyshev_w(2 * x - 1, n); }

double hermite_h(double x, double given) {
  if (!(given > -1)) return 0;
  const int64_t n = degree(given);
  if (n > kMostOfHermite) return kNone;
  return by_recurrence(n, 2 * x, [x](double k, double here, double before) { return 2 * (x * here - k * before); });
}

double hermite_he(double x, double given) {
  if (!(given > -1)) return 0;
  const int64_t n = degree(given);
  if (n > kMostOfHermite) return kNone;
  return by_recurrence(n, x, [x](double k, double here, double before) { return x * here - k * before; });
}

double laguerre_l(double x, double given) {
  if (!(given > -1)) return 0;
  if (x == 0) return 1;
  return by_recurrence(degree(given), 1 - x, [x](double k, double here, double before) {
    return ((2 * k + 1 - x) * here - k * before) / (k + 1);
  });
}

double legendre_p(double x, double given) {
  if (!(given > -1)) return 0;
  const int64_t n = degree(given);
  if (std::abs(x) == 1) return sign_of(x, n);
  return by_recurrence(
      n, x, [x](double k, double here, double before) { return ((2 * k + 1) * x * here - k * before) / (k + 1); });
}

}  // namespace tenon::kernels
