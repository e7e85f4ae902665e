// Singular values by rotations, and the exponential of matrices.
#include <tenon/kernels/factorizations.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/matrices.h"

namespace tenon::kernels {
namespace {

// The columns of a matrix that has at least as many rows, each contiguous. Rotations make them orthogonal: then their
// lengths are the singular values, and what the rotations did to the unit matrix is V.
class Columns {
 public:
  Columns(size_t of_length, size_t how_many)
      : length(of_length), count(how_many), vectors(of_length * how_many), turns(how_many * how_many) {
    for (size_t at = 0; at < count; ++at) turns[at * count + at] = 1;
  }
  size_t length, count;
  std::vector<double> vectors, turns, values;
  std::vector<size_t> order;  // of columns, by length, the longest first

  void run() {
    constexpr int kMostSweeps = 60;  // ten are many
    bool rotated = true;
    for (int sweep = 0; sweep < kMostSweeps && rotated; ++sweep) {
      rotated = false;
      for (size_t p = 0; p + 1 < count; ++p)
        for (size_t q = p + 1; q < count; ++q) rotated |= rotate(p, q);
    }
    for (size_t at = 0; at < count; ++at) values.push_back(std::sqrt(dot(at, at)));
    order.resize(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] > values[b]; });
  }

 private:
  double dot(size_t p, size_t q) const {
    double sum = 0;
    for (size_t at = 0; at < length; ++at) sum += vectors[p * length + at] * vectors[q * length + at];
    return sum;
  }
  static void turn(std::vector<double>& of, size_t size, size_t p, size_t q, double c, double s) {
    for (size_t at = 0; at < size; ++at) {
      double &first = of[p * size + at], &second = of[q * size + at];
      const double before = first;
      first = c * before - s * second;
      second = s * before + c * second;
    }
  }
  // Whether the two were not orthogonal yet.
  bool rotate(size_t p, size_t q) {
    const double a = dot(p, p), b = dot(q, q), between = dot(p, q);
    constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
    if (between == 0 || std::fabs(between) <= kEpsilon * std::sqrt(a) * std::sqrt(b)) return false;
    const double angle = (b - a) / (2 * between);
    const double t = std::copysign(1 / (std::fabs(angle) + std::hypot(1, angle)), angle);
    const double c = 1 / std::hypot(1, t), s = t * c;
    turn(vectors, length, p, q, c, s);
    turn(turns, count, p, q, c, s);
    return true;
  }
};

// More columns of the same length, orthogonal to those there are, up to `wanted`; those of `found` are kept. By
// Gram and Schmidt, twice, from the unit vectors.
void complete(std::vector<double>& basis, size_t length, size_t wanted, std::vector<bool> found) {
  found.resize(wanted, false);
  basis.resize(length * wanted);
  std::vector<double> candidate(length);
  size_t unit = 0;
  for (size_t at = 0; at < wanted; ++at) {
    if (found[at]) continue;
    for (bool taken = false; !taken && unit < length; ++unit) {
      std::fill(candidate.begin(), candidate.end(), 0.0);
      candidate[unit] = 1;
      for (int twice = 0; twice < 2; ++twice)
        for (size_t other = 0; other < wanted; ++other) {
          if (!found[other]) continue;
          double dot = 0;
          for (size_t k = 0; k < length; ++k) dot += candidate[k] * basis[other * length + k];
          for (size_t k = 0; k < length; ++k) candidate[k] -= dot * basis[other * length + k];
        }
      double sum = 0;
      for (double each : candidate) sum += each * each;
      // Of the unit vectors that are left, one has at least this much outside of what there is.
      if (sum * static_cast<double>(length) < 0.5) continue;
      for (size_t k = 0; k < length; ++k) basis[at * length + k] = candidate[k] / std::sqrt(sum);
      taken = found[at] = true;
    }
  }
}

// `basis` has vectors of that length one after another; by columns, or by rows.
void write_basis(const Entries& to, int64_t which, const std::vector<double>& basis, size_t length, bool as_columns) {
  if (!as_columns) return to.write(which, basis.data());
  const auto columns = static_cast<size_t>(to.columns);
  std::vector<double> matrix(to.count());
  for (size_t column = 0; column < columns; ++column)
    for (size_t row = 0; row < length; ++row) matrix[row * columns + column] = basis[column * length + row];
  to.write(which, matrix.data());
}

// The long and the short vectors, one after another, and the values, of one matrix.
struct Singular {
  std::vector<double> longer, shorter, values;

  Singular(const std::vector<double>& a, size_t rows, size_t columns, size_t wanted) {
    const bool tall = rows >= columns;
    const size_t length = tall ? rows : columns, count = tall ? columns : rows;
    double most = 0;
    bool finite = true;
    for (double each : a) {
      most = std::max(most, std::fabs(each));
      finite &= std::isfinite(each);
    }
    values.resize(count);
    if (!finite) {
      const double nothing = std::numeric_limits<double>::quiet_NaN();
      values.assign(count, nothing);
      longer.assign(length * wanted, nothing);
      shorter.assign(count * count, nothing);
      return;
    }
    // Of a size at which no square overflows or vanishes; a power of two, so that nothing is rounded.
    const double scale = most > 0 ? std::ldexp(1, std::ilogb(most)) : 1;
    Columns work(length, count);
    for (size_t at = 0; at < count; ++at)
      for (size_t k = 0; k < length; ++k)
        work.vectors[at * length + k] = (tall ? a[k * columns + at] : a[at * columns + k]) / scale;
    work.run();
    longer.resize(length * count);
    shorter.resize(count * count);
    std::vector<bool> found(count);
    const double least = count > 0 ? work.values[work.order[0]] * std::numeric_limits<double>::min() : 0;
    for (size_t at = 0; at < count; ++at) {
      const size_t source = work.order[at];
      const double value = work.values[source];
      values[at] = value * scale;
      found[at] = value > least;
      for (size_t k = 0; k < length && found[at]; ++k)
        longer[at * length + k] = work.vectors[source * length + k] / value;
      std::copy_n(&work.turns[source * count], count, &shorter[at * count]);
    }
    complete(longer, length, wanted, found);
  }
};

}  // namespace

void singular_values(const TensorBase& self, const TensorBase& u, const TensorBase& s, const TensorBase& vh) {
  const auto batch = batch_of(self, 2);
  const Entries from(self, 2, batch), values(s, 1, batch);
  const bool tall = from.rows >= from.columns, vectors = u.defined();
  const std::optional<Entries> left = vectors ? std::optional(Entries(u, 2, batch)) : std::nullopt;
  const std::optional<Entries> right = vectors ? std::optional(Entries(vh, 2, batch)) : std::nullopt;
  const auto rows = static_cast<size_t>(from.rows), columns = static_cast<size_t>(from.columns);
  const size_t wanted = !vectors ? std::min(rows, columns) : static_cast<size_t>(tall ? left->columns : right->rows);
  for_each_entry(batch, std::min<int64_t>(from.rows * from.columns, kGrain), [&](int64_t which) {
    const Singular found(from.read(which), rows, columns, wanted);
    values.write(which, found.values.data());
    if (!vectors) return;
    write_basis(*left, which, tall ? found.longer : found.shorter, rows, true);
    write_basis(*right, which, tall ? found.shorter : found.longer, columns, false);
  });
}

namespace {

using Square = std::vector<double>;

Square product(const Square& a, const Square& b, size_t n) {
  Square c(n * n);
  for (size_t row = 0; row < n; ++row)
    for (size_t k = 0; k < n; ++k) {
      const double factor = a[row * n + k];
      if (factor == 0) continue;
      for (size_t column = 0; column < n; ++column) c[row * n + column] += factor * b[k * n + column];
    }
  return c;
}

Square exponential(Square a, size_t n) {
  double norm = 0;  // the largest sum of a row
  bool finite = true;
  for (size_t row = 0; row < n; ++row) {
    double sum = 0;
    for (size_t column = 0; column < n; ++column) sum += std::fabs(a[row * n + column]);
    finite &= std::isfinite(sum);
    norm = std::max(norm, sum);
  }
  if (!finite) return Square(n * n, std::numeric_limits<double>::quiet_NaN());
  int squarings = 0;
  if (norm > 0.5) squarings = std::max(0, std::ilogb(norm) + 2);
  for (double& each : a) each = std::ldexp(each, -squarings);
  // Taylor's series at a norm of at most 1/2: the 18th term is below 2⁻⁷⁰.
  Square sum(n * n), term(n * n);
  for (size_t at = 0; at < n; ++at) sum[at * n + at] = term[at * n + at] = 1;
  for (int order = 1; order <= 18; ++order) {
    term = product(term, a, n);
    for (size_t at = 0; at < n * n; ++at) sum[at] += term[at] /= order;
  }
  for (int step = 0; step < squarings; ++step) sum = product(sum, sum, n);
  return sum;
}

}  // namespace

void matrix_exponential(const TensorBase& self, const TensorBase& result) {
  const auto batch = batch_of(self, 2);
  const Entries from(self, 2, batch), to(result, 2, batch);
  for_each_entry(batch, kGrain, [&](int64_t which) {
    to.write(which, exponential(from.read(which), static_cast<size_t>(from.rows)).data());
  });
}

}  // namespace tenon::kernels
