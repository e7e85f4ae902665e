#include <tenon/kernels/factorizations.h>

#include <cmath>

#include "kernels/matrices.h"

namespace tenon::kernels {
namespace {

// The length of a column from `row` on, scaled so that no square overflows or vanishes.
double length(const std::vector<double>& a, size_t rows, size_t columns, size_t column, size_t row) {
  double most = 0;
  for (size_t at = row; at < rows; ++at) most = std::max(most, std::fabs(a[at * columns + column]));
  if (most == 0 || !std::isfinite(most)) return most;
  double sum = 0;
  for (size_t at = row; at < rows; ++at) {
    const double part = a[at * columns + column] / most;
    sum += part * part;
  }
  return most * std::sqrt(sum);
}

// Reflection `at` of those in `v`, on rows [at, rows) of some columns of x: x - tau v (vᵀ x).
struct Reflection {
  const std::vector<double>& v;
  size_t columns, at;
  double tau;

  double element(size_t row) const { return row == at ? 1 : v[row * columns + at]; }
  void on_columns(std::vector<double>& x, size_t rows, size_t width, size_t first) const {
    if (tau == 0) return;
    for (size_t column = first; column < width; ++column) {
      double dot = 0;
      for (size_t row = at; row < rows; ++row) dot += element(row) * x[row * width + column];
      dot *= tau;
      for (size_t row = at; row < rows; ++row) x[row * width + column] -= dot * element(row);
    }
  }
  void on_rows(std::vector<double>& x, size_t height, size_t width) const {
    if (tau == 0) return;
    for (size_t row = 0; row < height; ++row) {
      double dot = 0;
      for (size_t column = at; column < width; ++column) dot += element(column) * x[row * width + column];
      dot *= tau;
      for (size_t column = at; column < width; ++column) x[row * width + column] -= dot * element(column);
    }
  }
};

void factor(std::vector<double>& a, size_t rows, size_t columns, std::vector<double>& tau) {
  for (size_t at = 0; at < tau.size(); ++at) {
    const double alpha = a[at * columns + at], rest = length(a, rows, columns, at, at + 1);
    if (rest == 0) {
      tau[at] = 0;
      continue;
    }
    const double beta = -std::copysign(std::hypot(alpha, rest), alpha);
    tau[at] = (beta - alpha) / beta;
    for (size_t row = at + 1; row < rows; ++row) a[row * columns + at] /= alpha - beta;
    Reflection{a, columns, at, tau[at]}.on_columns(a, rows, columns, at + 1);
    a[at * columns + at] = beta;
  }
}

int64_t cost(const Entries& matrices) {
  return std::min<int64_t>(matrices.rows, 65536) * std::min<int64_t>(matrices.columns, 65536);
}

}  // namespace

void householder_factor(const TensorBase& self, const TensorBase& reflections, const TensorBase& tau) {
  const auto batch = batch_of(self, 2);
  const Entries from(self, 2, batch), to(reflections, 2, batch), factors(tau, 1, batch);
  for_each_entry(batch, cost(from), [&](int64_t which) {
    std::vector<double> a = from.read(which), found(factors.count());
    factor(a, static_cast<size_t>(from.rows), static_cast<size_t>(from.columns), found);
    to.write(which, a.data());
    factors.write(which, found.data());
  });
}

void identity(const TensorBase& result) {
  const auto batch = batch_of(result, 2);
  const Entries to(result, 2, batch);
  for_each_entry(batch, cost(to), [&](int64_t which) {
    std::vector<double> unit(to.count());
    for (int64_t at = 0; at < std::min(to.rows, to.columns); ++at) unit[static_cast<size_t>(at * to.columns + at)] = 1;
    to.write(which, unit.data());
  });
}

void upper_triangle(const TensorBase& self, const TensorBase& result) {
  const auto batch = batch_of(result, 2);
  const Entries from(self, 2, batch), to(result, 2, batch);
  for_each_entry(batch, cost(to), [&](int64_t which) {
    std::vector<double> a = from.read(which);
    for (int64_t row = 1; row < to.rows; ++row)
      std::fill_n(a.begin() + row * from.columns, std::min(row, from.columns), 0);
    to.write(which, a.data());
  });
}

void householder_product(const TensorBase& reflections, const TensorBase& tau, const TensorBase& result) {
  const auto batch = batch_of(result, 2);
  const Entries from(reflections, 2, batch), factors(tau, 1, batch), to(result, 2, batch);
  const auto rows = static_cast<size_t>(to.rows), columns = static_cast<size_t>(to.columns);
  for_each_entry(batch, cost(to), [&](int64_t which) {
    const std::vector<double> v = from.read(which), each = factors.read(which);
    std::vector<double> q(to.count());
    for (size_t at = 0; at < columns; ++at) q[at * columns + at] = 1;
    for (size_t at = each.size(); at-- > 0;)
      Reflection{v, static_cast<size_t>(from.columns), at, each[at]}.on_columns(q, rows, columns, at);
    to.write(which, q.data());
  });
}

void householder_apply(const TensorBase& reflections, const TensorBase& tau, const TensorBase& other, bool left,
                       bool transposed, const TensorBase& result) {
  const auto batch = batch_of(result, 2);
  const Entries vectors(reflections, 2, batch), factors(tau, 1, batch), from(other, 2, batch), to(result, 2, batch);
  for_each_entry(batch, cost(to), [&](int64_t which) {
    const std::vector<double> v = vectors.read(which), each = factors.read(which);
    std::vector<double> x = from.read(which);
    for (size_t step = 0; step < each.size(); ++step) {
      const size_t at = left == transposed ? step : each.size() - 1 - step;
      const Reflection reflection{v, static_cast<size_t>(vectors.columns), at, each[at]};
      left ? reflection.on_columns(x, static_cast<size_t>(to.rows), static_cast<size_t>(to.columns), 0)
           : reflection.on_rows(x, static_cast<size_t>(to.rows), static_cast<size_t>(to.columns));
    }
    to.write(which, x.data());
  });
}

}  // namespace tenon::kernels
