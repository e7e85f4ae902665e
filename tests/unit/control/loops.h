// What tests of loops and branches have in common.
#pragma once

#include "unit/capture/testing.h"

namespace tenon::loops {

inline constexpr const char* kBackends[] = {"inductor", "aot_eager", "eager"};

struct Made {
  std::vector<Tensor> results, gradients;
  bool grad_mode = true;  // that the function left behind
};

// The gradients of the sum of squares of all results.
inline Made with_gradients(const std::function<std::vector<Tensor>()>& run, std::span<const Tensor> leaves) {
  Made made{run(), {}};
  made.grad_mode = autograd::grad_enabled();
  autograd::set_grad_enabled(true);
  Tensor sum = zeros({}, kFloat64);
  for (const Tensor& result : made.results)
    if (result.requires_grad()) sum = sum + (result * result).sum().to(kFloat64);
  if (!sum.requires_grad()) return made;
  std::vector<Tensor> roots{sum}, wanted(leaves.begin(), leaves.end());
  made.gradients = autograd::grad(roots, wanted);
  return made;
}

inline Tensor leaf(const SymInts& sizes, uint64_t seed, Dtype dtype = kFloat64) {
  manual_seed(seed);
  return (randn(sizes, TensorOptions(dtype)) * 0.5).set_requires_grad();
}

}  // namespace tenon::loops
