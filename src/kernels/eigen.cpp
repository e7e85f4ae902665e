#include <tenon/kernels/eigen.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/strided.h"

namespace tenon::kernels {
namespace {

// Jacobi's method: each rotation takes two elements beside the diagonal away, and all of them grow smaller, in the end
// quadratically. It finds small eigenvalues as exactly as the matrix has them. (Golub and Van Loan, 8.5.)
class Rotations {
 public:
  explicit Rotations(size_t n) : matrix(n * n), vectors(n * n), n_(n) {}

  std::vector<double> matrix, vectors;  // by rows; in the end the diagonal has the eigenvalues, columns the vectors

  void run() {
    std::fill(vectors.begin(), vectors.end(), 0.0);
    for (size_t at = 0; at < n_; ++at) vectors[at * n_ + at] = 1;
    constexpr int kMostSweeps = 60;  // ten are many
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      bool rotated = false;
      for (size_t p = 0; p + 1 < n_; ++p)
        for (size_t q = p + 1; q < n_; ++q) rotated |= rotate(p, q);
      if (!rotated) return;
    }
  }

 private:
  double& at(size_t row, size_t column) { return matrix[row * n_ + column]; }

  // Whether there was anything to take away.
  bool rotate(size_t p, size_t q) {
    const double beside = at(p, q);
    constexpr double kEpsilon = std::numeric_limits<double>::epsilon() / 2;
    if (beside == 0 || std::fabs(beside) <= kEpsilon * std::sqrt(std::fabs(at(p, p)) * std::fabs(at(q, q)))) {
      at(p, q) = at(q, p) = 0;
      return false;
    }
    const double angle = (at(q, q) - at(p, p)) / (2 * beside);
    const double t = std::copysign(1 / (std::fabs(angle) + std::hypot(1, angle)), angle);
    const double c = 1 / std::hypot(1, t), s = t * c;
    at(p, p) -= t * beside;
    at(q, q) += t * beside;
    at(p, q) = at(q, p) = 0;
    for (size_t each = 0; each < n_; ++each) {
      if (each != p && each != q) {
        const double first = at(each, p), second = at(each, q);
        at(p, each) = at(each, p) = c * first - s * second;
        at(q, each) = at(each, q) = s * first + c * second;
      }
      double &first = vectors[each * n_ + p], &second = vectors[each * n_ + q];
      const double before = first;
      first = c * before - s * second;
      second = s * before + c * second;
    }
    return true;
  }

  size_t n_;
};

// 1 or -1: what makes the largest element of a column positive, the first of those that are equal but for rounding.
double sign_of(const Rotations& solved, size_t n, size_t column) {
  double most = 0;
  for (size_t row = 0; row < n; ++row) most = std::max(most, std::fabs(solved.vectors[row * n + column]));
  for (size_t row = 0; row < n; ++row)
    if (double each = solved.vectors[row * n + column]; std::fabs(each) >= most * (1 - 1e-6)) return each < 0 ? -1 : 1;
  return 1;
}

}  // namespace

void symmetric_eigen(const TensorBase& self, bool reads_upper, const TensorBase& values, const TensorBase& vectors) {
  const size_t rank = self.sizes().size();
  const auto n = static_cast<size_t>(self.sizes()[rank - 1]);
  Ints batch(self.sizes().subspan(0, rank - 2));
  auto outer = [&](const TensorBase& of) { return Ints(of.strides().subspan(0, rank - 2)); };
  const Ints of_self = outer(self), of_values = outer(values), of_vectors = outer(vectors);
  int64_t count = 1;
  for (int64_t size : batch) count *= size;
  if (n == 0) return;
  const int64_t row_step = self.strides()[rank - 2], column_step = self.strides()[rank - 1];
  const int64_t value_step = values.strides()[rank - 2], vector_row = vectors.strides()[rank - 2],
                vector_column = vectors.strides()[rank - 1];
  auto solve = [&]<typename T>(int64_t begin, int64_t end) {
    Rotations rotations(n);
    std::vector<size_t> order(n);
    for (int64_t each = begin; each < end; ++each) {
      const T* from = self.data<T>() + offset_of(each, batch, of_self);
      T* to_values = values.data<T>() + offset_of(each, batch, of_values);
      T* to_vectors = vectors.data<T>() + offset_of(each, batch, of_vectors);
      double most = 0;
      bool finite = true;
      for (size_t row = 0; row < n; ++row)
        for (size_t column = 0; column <= row; ++column) {
          auto low = static_cast<int64_t>(column), high = static_cast<int64_t>(row);
          auto number = static_cast<double>(reads_upper ? from[low * row_step + high * column_step]
                                                        : from[high * row_step + low * column_step]);
          rotations.matrix[row * n + column] = rotations.matrix[column * n + row] = number;
          most = std::max(most, std::fabs(number));
          finite &= std::isfinite(number);
        }
      // Of a size at which no square overflows or vanishes; a power of two, so that nothing is rounded.
      const double scale = finite && most > 0 ? std::ldexp(1, std::ilogb(most)) : 1;
      for (double& number : rotations.matrix) number = finite ? number / scale : 0;
      rotations.run();
      std::iota(order.begin(), order.end(), size_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return rotations.matrix[a * n + a] < rotations.matrix[b * n + b]; });
      for (size_t column = 0; column < n; ++column) {
        const size_t source = order[column];
        const double nothing = finite ? 1 : std::numeric_limits<double>::quiet_NaN();
        const double sign = sign_of(rotations, n, source) * nothing;
        to_values[static_cast<int64_t>(column) * value_step] =
            static_cast<T>(rotations.matrix[source * n + source] * scale * nothing);
        for (size_t row = 0; row < n; ++row)
          to_vectors[static_cast<int64_t>(row) * vector_row + static_cast<int64_t>(column) * vector_column] =
              static_cast<T>(rotations.vectors[row * n + source] * sign);
      }
    }
  };
  parallel_for(count, std::max<int64_t>(1, kGrain / static_cast<int64_t>(n * n * n)), [&](int64_t begin, int64_t end) {
    self.dtype() == kFloat64 ? solve.template operator()<double>(begin, end)
                             : solve.template operator()<float>(begin, end);
  });
}

}  // namespace tenon::kernels
