// `minimize`: where a function of one tensor is lowest near a start, found by its derivatives.
//
//   auto bowl = [](const Tensor& at) { return square(at - 3).sum(); };
//   optim::MinimizeResult found = optim::minimize(bowl, zeros({4}, kFloat64));
//   bool there = found.converged && found.x.allclose(3 * ones({4}, kFloat64));
//   std::string why = found.converged.why();                                  // "" here
//   optim::MinimizeOptions options{.method = optim::Method::NewtonCG, .max_iterations = 50, .tolerance = 1e-9};
//   options.on_step = [](const optim::MinimizeStep& step) {
//     fmt::print("{}: {:.6f}, slope {:.6f}\n", step.iteration, step.value, step.slope);
//   };
//   Tensor same = optim::minimize(compile(bowl), zeros({4}, kFloat64), options).x;
//
// For a handful of numbers or for millions, as long as the function is not noisy: networks over batches are for the
// optimizers and trainer::fit. A function that is compiled is compiled once for all steps; so are the products with its
// curvature.
#pragma once

#include <tenon/core/tensor.h>
#include <tenon/support/decision.h>

#include <functional>

namespace tenon::optim {

enum class Method : uint8_t {
  LBFGS,     // an estimate of the curvature from the last gradients: one gradient for a step
  NewtonCG,  // the curvature itself, times directions: fewer steps, each with several products
};

// A point: the start, and where each step ends.
struct MinimizeStep {
  int64_t iteration;
  double value;
  double slope;  // the length of the gradient
  const Tensor& x;
};

struct MinimizeOptions {
  Method method = Method::LBFGS;
  int64_t max_iterations = 200;
  double tolerance = 1e-6;    // ends when no element of the gradient is larger
  int64_t history_size = 20;  // gradients that LBFGS remembers
  int64_t max_products = 0;   // that NewtonCG computes in a step; 0: as many as help
  std::function<void(const MinimizeStep&)> on_step = {};
};

struct MinimizeResult {
  Tensor x;
  double value = 0;
  Tensor gradient;
  int64_t iterations = 0;
  int64_t evaluations = 0;                           // of the function
  Decision converged = Decision::forbid("not yet");  // or why it ended elsewhere
};

// The function takes a tensor like the start and gives one number. The start is not changed.
MinimizeResult minimize(const std::function<Tensor(const Tensor& x)>& function, const Tensor& start,
                        const MinimizeOptions& options = {});

}  // namespace tenon::optim
