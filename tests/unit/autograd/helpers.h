// Small helpers of the autograd tests.
#pragma once

#include <tenon/autograd/engine.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/autograd/saved_tensor.h>
#include <tenon/generated/ops.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "error_of.h"

namespace tenon::testing {

inline std::vector<double> values(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  NoGrad off;
  Tensor plain = tensor.detach().to(kFloat64).contiguous();
  const double* data = plain.data<double>();
  return {data, data + plain.numel().plain()};
}

inline Tensor real(const std::vector<double>& list, const SymInts& sizes = {}) {
  NoGrad off;
  Tensor flat = tensor(list, TensorOptions(kFloat64));
  return sizes.empty() ? flat : flat.view(sizes).clone();
}

inline Tensor leaf(const std::vector<double>& list, const SymInts& sizes = {}) {
  return real(list, sizes).set_requires_grad();
}

inline void expect_near(const Tensor& tensor, const std::vector<double>& expected, double tolerance = 1e-12) {
  std::vector<double> got = values(tensor);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], tolerance) << "element " << i;
}

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

// Weights that make every output element count differently.
inline Tensor weigh(const Tensor& output) {
  std::vector<double> weights;
  for (int64_t i = 0; i < output.numel().plain(); ++i)
    weights.push_back(0.7 + 0.31 * static_cast<double>(i % 5) - 0.013 * static_cast<double>(i));
  return (output * real(weights).view(output.sym_sizes())).sum();
}

// Compares the gradients of a weighted sum of `f` with central differences.
inline void check_gradients(const Function& f, const std::vector<Tensor>& inputs, double tolerance = 1e-6) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) leaves.push_back(leaf(values(input), input.sym_sizes()));
  Tensor loss = weigh(f(leaves));
  std::vector<Tensor> gradients = autograd::grad(std::vector{loss}, leaves, {}, false, false, true);
  NoGrad off;
  for (size_t which = 0; which < inputs.size(); ++which) {
    if (!gradients[which].defined()) gradients[which] = zeros_like(inputs[which]);
    std::vector<double> analytic = values(gradients[which]), point = values(inputs[which]);
    EXPECT_EQ(str(gradients[which].sym_sizes()), str(inputs[which].sym_sizes()));
    for (size_t at = 0; at < point.size(); ++at) {
      auto loss_at = [&](double value) {
        std::vector<double> moved = point;
        moved[at] = value;
        std::vector<Tensor> arguments = inputs;
        arguments[which] = real(moved, inputs[which].sym_sizes());
        return values(weigh(f(arguments)))[0];
      };
      constexpr double kStep = 1e-5;
      double numeric = (loss_at(point[at] + kStep) - loss_at(point[at] - kStep)) / (2 * kStep);
      EXPECT_NEAR(analytic[at], numeric, tolerance * std::max(1.0, std::abs(numeric)))
          << "input " << which << " element " << at;
    }
  }
}

// The same for the gradients themselves: each is a function that is differentiated again.
inline void check_second_gradients(const Function& f, const std::vector<Tensor>& inputs, double tolerance = 1e-5) {
  for (size_t which = 0; which < inputs.size(); ++which)
    check_gradients(
        [&](const std::vector<Tensor>& arguments) {
          EnableGrad on;
          std::vector<Tensor> watched;
          for (const Tensor& argument : arguments)
            watched.push_back(argument.requires_grad() ? argument : argument.clone().set_requires_grad());
          return autograd::grad(std::vector{weigh(f(watched))}, std::vector{watched[which]}, {}, true, true)[0];
        },
        inputs, tolerance);
}

}  // namespace tenon::testing
