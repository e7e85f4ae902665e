// What tests of single operators compare: gradients of any order, and tensors with what is exact.
#pragma once

#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tenon::test {

using Tensors = std::vector<Tensor>;

inline Tensors gradients(const Tensor& of, const Tensors& inputs, const Tensor& by = {}, bool create_graph = false) {
  autograd::GradOptions options{.retain_graph = true, .create_graph = create_graph};
  if (by.defined()) options.grad_outputs = {by};
  return autograd::grad_with({of}, std::vector<autograd::GradInput>(inputs.begin(), inputs.end()), options);
}

// The largest difference, over the largest element (or 1).
inline double relative_difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(str(a.sym_sizes()), str(b.sym_sizes()));
  Tensor exact = b.to(kFloat64);
  return (a.to(kFloat64) - exact).abs().max().item<double>() / std::max(1.0, exact.abs().max().item<double>());
}

}  // namespace tenon::test
