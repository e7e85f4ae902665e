// Conjugate gradients: solves A · x = b where A is a function of a tensor and nobody writes the matrix down. A must be
// linear, symmetric and positive definite: a Laplacian with its sign turned, a Hessian in a valley, AᵀA + λ.
//
//   auto stretch = [](const Tensor& v) { return 4 * v; };
//   numerics::CGResult found = numerics::cg(stretch, ones({2, 3}, kFloat64));
//   Tensor quarters = found.x;
//   int64_t products = found.iterations;                                      // 1
//   numerics::CGOptions options{.start = quarters, .tolerance = 1e-10, .max_iterations = 100};
//   bool at_once = found.converged && numerics::cg(stretch, ones({2, 3}, kFloat64), options).iterations == 0;
//   numerics::LinearMap halved = [](const Tensor& residual) { return residual / 2; };
//   numerics::cg(stretch, ones({3}), {.preconditioner = halved});
//
// Sizes are the user's: x and b are tensors of any shape, seen as one vector. The result has no history.
#pragma once

#include <tenon/core/tensor.h>

#include <functional>

namespace tenon::numerics {

using LinearMap = std::function<Tensor(const Tensor& v)>;

struct CGOptions {
  Tensor start = {};              // zeros where it is undefined
  double tolerance = 1e-5;        // ends when |b - A · x| is at most this share of |b| …
  double absolute_tolerance = 0;  // … or at most this
  int64_t max_iterations = 0;     // 0: ten for each element
  LinearMap preconditioner = {};  // near to the inverse of A, and as symmetric and positive
};

struct CGResult {
  Tensor x;
  int64_t iterations = 0;  // products with A, but for the one of a start
  double residual = 0;     // |b - A · x|
  bool converged = false;
  bool indefinite = false;  // a direction had v · A · v ≤ 0: A is not positive, and x is what was found before
};

CGResult cg(const LinearMap& map, const Tensor& b, const CGOptions& options = {});

}  // namespace tenon::numerics
