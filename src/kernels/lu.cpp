#include <tenon/kernels/factorizations.h>

#include <cmath>

#include "kernels/matrices.h"

namespace tenon::kernels {
namespace {

// The number of the first pivot that is zero, from 1 on, or 0.
int64_t eliminate(std::vector<double>& a, size_t rows, size_t columns, std::vector<double>& pivots) {
  int64_t first_zero = 0;
  const size_t steps = std::min(rows, columns);
  for (size_t at = 0; at < steps; ++at) {
    size_t best = at;
    for (size_t row = at + 1; row < rows; ++row)
      if (std::fabs(a[row * columns + at]) > std::fabs(a[best * columns + at])) best = row;
    pivots[at] = static_cast<double>(best + 1);
    const double pivot = a[best * columns + at];
    if (pivot == 0) {
      if (first_zero == 0) first_zero = static_cast<int64_t>(at) + 1;
      continue;
    }
    if (best != at) std::swap_ranges(&a[at * columns], &a[at * columns] + columns, &a[best * columns]);
    for (size_t row = at + 1; row < rows; ++row) {
      const double factor = a[row * columns + at] /= pivot;
      if (factor == 0) continue;
      for (size_t column = at + 1; column < columns; ++column)
        a[row * columns + column] -= factor * a[at * columns + column];
    }
  }
  return first_zero;
}

// x by rows, n by k: the exchanges in their order, or undone.
void exchange(const std::vector<double>& pivots, std::vector<double>& x, size_t n, size_t k, bool undo) {
  for (size_t step = 0; step < n; ++step) {
    const size_t at = undo ? n - 1 - step : step;
    const auto other = static_cast<size_t>(std::min(std::max(pivots[at], 1.0), static_cast<double>(n))) - 1;
    if (other != at) std::swap_ranges(x.data() + at * k, x.data() + (at + 1) * k, x.data() + other * k);
  }
}

// In place of x, n by k: what a triangle of `a` times it is x. `transposed`: of the transposed of that triangle.
void substitute(const std::vector<double>& a, size_t n, std::vector<double>& x, size_t k, bool upper, bool unit,
                bool transposed) {
  const bool from_the_end = upper != transposed;
  for (size_t step = 0; step < n; ++step) {
    const size_t row = from_the_end ? n - 1 - step : step;
    for (size_t done = 0; done < step; ++done) {
      const size_t other = from_the_end ? n - 1 - done : done;
      const double factor = transposed ? a[other * n + row] : a[row * n + other];
      if (factor == 0) continue;
      for (size_t column = 0; column < k; ++column) x[row * k + column] -= factor * x[other * k + column];
    }
    if (unit) continue;
    for (size_t column = 0; column < k; ++column) x[row * k + column] /= a[row * n + row];
  }
}

std::vector<double> turned(const std::vector<double>& x, size_t rows, size_t columns) {
  std::vector<double> result(x.size());
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column) result[column * rows + row] = x[row * columns + column];
  return result;
}

int64_t cost(int64_t rows, int64_t columns, int64_t depth) {
  return std::min<int64_t>(rows, 4096) * std::min<int64_t>(columns, 4096) * std::min<int64_t>(depth, 4096);
}

// Runs `solve` on B with what is solved as columns: those of B, or its rows where A stands on the right.
template <typename Solve>
void solve_each(const TensorBase& a, const TensorBase& b, bool left, const TensorBase& result, Solve&& solve) {
  const auto batch = batch_of(result, 2);
  const Entries factors(a, 2, batch), from(b, 2, batch), to(result, 2, batch);
  const auto rows = static_cast<size_t>(to.rows), columns = static_cast<size_t>(to.columns);
  for_each_entry(batch, cost(factors.rows, factors.rows, left ? to.columns : to.rows), [&](int64_t which) {
    std::vector<double> x = from.read(which);
    if (!left) x = turned(x, rows, columns);
    solve(which, factors.read(which), static_cast<size_t>(factors.rows), x, left ? columns : rows);
    if (!left) x = turned(x, columns, rows);
    to.write(which, x.data());
  });
}

}  // namespace

void lu_factor(const TensorBase& self, const TensorBase& lu, const TensorBase& pivots, const TensorBase& info) {
  const auto batch = batch_of(self, 2);
  const Entries from(self, 2, batch), to(lu, 2, batch), rows(pivots, 1, batch), zero(info, 0, batch);
  for_each_entry(batch, cost(from.rows, from.columns, from.columns), [&](int64_t which) {
    std::vector<double> a = from.read(which), order(rows.count());
    const int64_t found = eliminate(a, static_cast<size_t>(from.rows), static_cast<size_t>(from.columns), order);
    to.write(which, a.data());
    rows.write(which, order.data());
    zero.write(which, static_cast<double>(found));
  });
}

void lu_solve(const TensorBase& lu, const TensorBase& pivots, const TensorBase& b, bool left, bool transposed,
              const TensorBase& result) {
  const auto batch = batch_of(result, 2);
  const Entries order(pivots, 1, batch);
  // X A = B is Aᵀ Xᵀ = Bᵀ.
  const bool turn = left == transposed;
  solve_each(lu, b, left, result,
             [&](int64_t which, const std::vector<double>& a, size_t n, std::vector<double>& x, size_t k) {
               const std::vector<double> exchanged = order.read(which);
               if (!turn) exchange(exchanged, x, n, k, false);
               substitute(a, n, x, k, turn, !turn, turn);
               substitute(a, n, x, k, !turn, turn, turn);
               if (turn) exchange(exchanged, x, n, k, true);
             });
}

void solve_triangular(const TensorBase& a, const TensorBase& b, bool upper, bool left, bool unit, bool transposed,
                      const TensorBase& result) {
  solve_each(a, b, left, result,
             [&](int64_t, const std::vector<double>& triangle, size_t n, std::vector<double>& x, size_t k) {
               substitute(triangle, n, x, k, upper, unit, left == transposed);
             });
}

void lu_unpack(const TensorBase& lu, const TensorBase& pivots, const TensorBase& p, const TensorBase& l,
               const TensorBase& u) {
  const auto batch = batch_of(lu, 2);
  const Entries from(lu, 2, batch);
  const auto rows = static_cast<size_t>(from.rows), columns = static_cast<size_t>(from.columns);
  const size_t most = std::min(rows, columns);
  for_each_entry(batch, cost(from.rows, from.columns, 1), [&](int64_t which) {
    if (p.defined()) {
      // Row `at` of P is the unit vector of the row that came there.
      std::vector<double> order = Entries(pivots, 1, batch).read(which), matrix(rows * rows);
      std::vector<size_t> place(rows);
      for (size_t at = 0; at < rows; ++at) place[at] = at;
      for (size_t at = 0; at < most; ++at) {
        TENON_CHECK(order[at] >= 1 && order[at] <= static_cast<double>(rows),
                    "[lu_unpack] expected pivots from 1 to {}, got {}", rows, order[at]);
        std::swap(place[at], place[static_cast<size_t>(order[at]) - 1]);
      }
      for (size_t at = 0; at < rows; ++at) matrix[place[at] * rows + at] = 1;
      Entries(p, 2, batch).write(which, matrix.data());
    }
    if (!l.defined()) return;
    const std::vector<double> a = from.read(which);
    std::vector<double> lower(rows * most), upper(most * columns);
    for (size_t row = 0; row < rows; ++row)
      for (size_t column = 0; column < columns; ++column) {
        if (row > column) lower[row * most + column] = a[row * columns + column];
        if (row <= column) upper[row * columns + column] = a[row * columns + column];
        if (row == column) lower[row * most + column] = 1;
      }
    Entries(l, 2, batch).write(which, lower.data());
    Entries(u, 2, batch).write(which, upper.data());
  });
}

namespace {

// Sign and logarithm of one matrix; `product`: the determinant itself, which may overflow where the logarithm does not.
struct Determinant {
  double sign = 1, logarithm = 0, product = 1;
  Determinant(const std::vector<double>& lu, const std::vector<double>& pivots) {
    const size_t n = pivots.size();
    for (size_t at = 0; at < n; ++at) {
      const double each = lu[at * n + at];
      if (pivots[at] != static_cast<double>(at + 1)) sign = -sign, product = -product;
      if (each < 0) sign = -sign;
      if (each == 0 || std::isnan(each)) sign *= each;
      logarithm += std::log(std::fabs(each));
      product *= each;
    }
    if (sign == 0) sign = 0;  // not -0
  }
};

}  // namespace

void lu_determinant(const TensorBase& lu, const TensorBase& pivots, const TensorBase& sign,
                    const TensorBase& logarithm) {
  const auto batch = batch_of(lu, 2);
  const Entries from(lu, 2, batch), rows(pivots, 1, batch), signs(sign, 0, batch), logarithms(logarithm, 0, batch);
  for_each_entry(batch, from.rows, [&](int64_t which) {
    const Determinant found(from.read(which), rows.read(which));
    signs.write(which, found.sign);
    logarithms.write(which, found.logarithm);
  });
}

void lu_determinant(const TensorBase& lu, const TensorBase& pivots, const TensorBase& determinant) {
  const auto batch = batch_of(lu, 2);
  const Entries from(lu, 2, batch), rows(pivots, 1, batch), to(determinant, 0, batch);
  for_each_entry(batch, from.rows,
                 [&](int64_t which) { to.write(which, Determinant(from.read(which), rows.read(which)).product); });
}

}  // namespace tenon::kernels
