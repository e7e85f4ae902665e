// Cholesky's and Bunch and Kaufman's factors of symmetric matrices.
#include <tenon/kernels/factorizations.h>

#include <cmath>

#include "kernels/matrices.h"

namespace tenon::kernels {
namespace {

// In place of the lower triangle. The number of the first pivot that is not positive, or 0; what comes after it is left
// as it was.
int64_t take_root(std::vector<double>& a, size_t n) {
  for (size_t at = 0; at < n; ++at) {
    double* row = &a[at * n];
    for (size_t before = 0; before < at; ++before) {
      double rest = row[before];
      const double* other = &a[before * n];
      for (size_t k = 0; k < before; ++k) rest -= row[k] * other[k];
      row[before] = rest / other[before];
    }
    double rest = row[at];
    for (size_t k = 0; k < at; ++k) rest -= row[k] * row[k];
    if (!(rest > 0)) {
      row[at] = rest;
      return static_cast<int64_t>(at) + 1;
    }
    row[at] = std::sqrt(rest);
  }
  return 0;
}

// The lower triangle of a symmetric matrix, of which rows and columns are exchanged while it is factored.
class Lower {
 public:
  Lower(std::vector<double>& a, size_t n) : a_(a), n_(n) {}
  double& at(size_t row, size_t column) { return a_[row * n_ + column]; }

  int64_t factor(std::vector<double>& pivots) {
    int64_t first_zero = 0;
    for (size_t k = 0; k < n_;) {
      const Pivot pivot = choose(k);
      if (pivot.zero) {
        if (first_zero == 0) first_zero = static_cast<int64_t>(k) + 1;
      } else {
        exchange(k, pivot);
        pivot.size == 1 ? take_one(k) : take_two(k);
      }
      const auto number = static_cast<double>(pivot.row + 1);
      if (pivot.size == 1) {
        pivots[k] = number;
      } else {
        pivots[k] = pivots[k + 1] = -number;
      }
      k += pivot.size;
    }
    return first_zero;
  }

 private:
  struct Pivot {
    size_t row, size;
    bool zero = false;
  };

  // Bunch and Kaufman's bound for the growth of elements is smallest with this share.
  static constexpr double kShare = 0.64038820320220756;  // (1 + √17) / 8

  Pivot choose(size_t k) {
    const double own = std::fabs(at(k, k));
    size_t largest = k;
    double most = 0;
    for (size_t row = k + 1; row < n_; ++row)
      if (std::fabs(at(row, k)) > most) most = std::fabs(at(row, k)), largest = row;
    if (std::max(own, most) == 0 || std::isnan(own)) return {k, 1, true};
    if (own >= kShare * most) return {k, 1};
    double beside = 0;  // the most beside the diagonal in that row
    for (size_t column = k; column < largest; ++column) beside = std::max(beside, std::fabs(at(largest, column)));
    for (size_t row = largest + 1; row < n_; ++row) beside = std::max(beside, std::fabs(at(row, largest)));
    if (own * beside >= kShare * most * most) return {k, 1};
    if (std::fabs(at(largest, largest)) >= kShare * beside) return {largest, 1};
    return {largest, 2};
  }

  void exchange(size_t k, const Pivot& pivot) {
    const size_t mine = k + pivot.size - 1, other = pivot.row;
    if (mine == other) return;
    for (size_t row = other + 1; row < n_; ++row) std::swap(at(row, mine), at(row, other));
    for (size_t between = mine + 1; between < other; ++between) std::swap(at(between, mine), at(other, between));
    std::swap(at(mine, mine), at(other, other));
    if (pivot.size == 2) std::swap(at(k + 1, k), at(other, k));
  }

  void take_one(size_t k) {
    const double pivot = at(k, k);
    for (size_t column = k + 1; column < n_; ++column) {
      const double factor = at(column, k) / pivot;
      for (size_t row = column; row < n_; ++row) at(row, column) -= at(row, k) * factor;
    }
    for (size_t row = k + 1; row < n_; ++row) at(row, k) /= pivot;
  }

  void take_two(size_t k) {
    const double beside = at(k + 1, k), first = at(k + 1, k + 1) / beside, second = at(k, k) / beside;
    const double scale = 1 / (first * second - 1) / beside;
    for (size_t column = k + 2; column < n_; ++column) {
      const double one = scale * (first * at(column, k) - at(column, k + 1));
      const double two = scale * (second * at(column, k + 1) - at(column, k));
      for (size_t row = column; row < n_; ++row) at(row, column) -= at(row, k) * one + at(row, k + 1) * two;
      at(column, k) = one;
      at(column, k + 1) = two;
    }
  }

  std::vector<double>& a_;
  size_t n_;
};

// X of L D Lᵀ X = B in place of x, n by k.
void solve_blocks(const std::vector<double>& a, const std::vector<double>& pivots, size_t n, std::vector<double>& x,
                  size_t k) {
  auto row_of = [&](size_t row) { return x.data() + row * k; };
  auto exchanged = [&](size_t row, double number) {
    const auto other = static_cast<size_t>(std::min(std::max(std::fabs(number), 1.0), static_cast<double>(n))) - 1;
    if (other != row) std::swap_ranges(row_of(row), row_of(row) + k, row_of(other));
  };
  auto subtract = [&](size_t row, size_t other, double factor) {
    for (size_t column = 0; column < k; ++column) row_of(row)[column] -= factor * row_of(other)[column];
  };
  for (size_t at = 0; at < n;) {
    if (pivots[at] > 0 || at + 1 == n) {
      exchanged(at, pivots[at]);
      for (size_t row = at + 1; row < n; ++row) subtract(row, at, a[row * n + at]);
      for (size_t column = 0; column < k; ++column) row_of(at)[column] /= a[at * n + at];
      ++at;
      continue;
    }
    exchanged(at + 1, pivots[at]);
    for (size_t row = at + 2; row < n; ++row) {
      subtract(row, at, a[row * n + at]);
      subtract(row, at + 1, a[row * n + at + 1]);
    }
    const double beside = a[(at + 1) * n + at], first = a[at * n + at] / beside,
                 second = a[(at + 1) * n + at + 1] / beside, scale = first * second - 1;
    for (size_t column = 0; column < k; ++column) {
      const double one = row_of(at)[column] / beside, two = row_of(at + 1)[column] / beside;
      row_of(at)[column] = (second * one - two) / scale;
      row_of(at + 1)[column] = (first * two - one) / scale;
    }
    at += 2;
  }
  for (size_t at = n; at-- > 0;) {
    const bool pair = pivots[at] < 0 && at > 0;
    for (size_t row = at + 1; row < n; ++row) {
      subtract(at, row, a[row * n + at]);
      if (pair) subtract(at - 1, row, a[row * n + at - 1]);
    }
    exchanged(at, pivots[at]);
    if (pair) --at;
  }
}

}  // namespace

void cholesky_factor(const TensorBase& self, bool upper, const TensorBase& factor, const TensorBase& info) {
  const auto batch = batch_of(self, 2);
  const Entries from(self, 2, batch), to(factor, 2, batch), failed(info, 0, batch);
  const auto n = static_cast<size_t>(from.rows);
  for_each_entry(batch, from.rows * from.rows, [&](int64_t which) {
    std::vector<double> a = from.read(which), result(a.size());
    if (upper)
      for (size_t row = 0; row < n; ++row)
        for (size_t column = 0; column < row; ++column) a[row * n + column] = a[column * n + row];
    failed.write(which, static_cast<double>(take_root(a, n)));
    for (size_t row = 0; row < n; ++row)
      for (size_t column = 0; column <= row; ++column)
        result[upper ? column * n + row : row * n + column] = a[row * n + column];
    to.write(which, result.data());
  });
}

void ldl_factor(const TensorBase& self, const TensorBase& ld, const TensorBase& pivots, const TensorBase& info) {
  const auto batch = batch_of(self, 2);
  const Entries from(self, 2, batch), to(ld, 2, batch), rows(pivots, 1, batch), zero(info, 0, batch);
  const auto n = static_cast<size_t>(from.rows);
  for_each_entry(batch, from.rows * from.rows, [&](int64_t which) {
    std::vector<double> a = from.read(which), order(n);
    for (size_t row = 0; row < n; ++row) std::fill(&a[row * n] + row + 1, &a[row * n] + n, 0.0);
    zero.write(which, static_cast<double>(Lower(a, n).factor(order)));
    to.write(which, a.data());
    rows.write(which, order.data());
  });
}

void ldl_solve(const TensorBase& ld, const TensorBase& pivots, const TensorBase& b, const TensorBase& result) {
  const auto batch = batch_of(result, 2);
  const Entries factors(ld, 2, batch), order(pivots, 1, batch), from(b, 2, batch), to(result, 2, batch);
  for_each_entry(batch, factors.rows * factors.rows, [&](int64_t which) {
    std::vector<double> x = from.read(which);
    solve_blocks(factors.read(which), order.read(which), static_cast<size_t>(to.rows), x,
                 static_cast<size_t>(to.columns));
    to.write(which, x.data());
  });
}

}  // namespace tenon::kernels
