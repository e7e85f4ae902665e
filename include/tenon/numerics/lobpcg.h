// A few eigenpairs of a symmetric matrix, the largest or the smallest, by the locally optimal block preconditioned
// conjugate gradient method (Knyazev, 2001): each step looks for the best vectors among those at hand, their residuals
// and the directions of the last step.
//
//   Tensor spread = randn({20, 20}, kFloat64), matrix = spread.matmul(spread.t());
//   numerics::Eigenpairs top = numerics::lobpcg(matrix, {.k = 2});            // values [2], vectors [20, 2]
//   Tensor guess = randn({20, 3}, kFloat64);
//   numerics::LobpcgOptions options{.k = 3, .largest = false, .start = guess, .tolerance = 1e-9, .max_iterations = 50};
//   Tensor least = numerics::lobpcg(matrix, options).values;
//
// Matrices may come in batches [..., n, n]. What is read is their symmetric part. The pairs are differentiable, twice,
// where the eigenvalues differ; the sign of an eigenvector means nothing.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon::numerics {

struct LobpcgOptions {
  int64_t k = 1;               // how many pairs: at most a third of the rows
  bool largest = true;         // the largest values, from the largest down; or the smallest, from the smallest up
  Tensor start = {};           // [..., n, k], of full rank; undefined: drawn from the generator
  double tolerance = 0;        // ends when |A·v - λ·v| is at most this share of |A|; 0: as small as it gets
  int64_t max_iterations = 0;  // 0: 1000
};

struct Eigenpairs {
  Tensor values;   // [..., k]
  Tensor vectors;  // [..., n, k], orthonormal columns
};

Eigenpairs lobpcg(const Tensor& matrix, const LobpcgOptions& options = {});

}  // namespace tenon::numerics
