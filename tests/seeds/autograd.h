// What the cases of the autograd suite share. Each runs twice: node by node, and with its walks captured.
#pragma once

#include "compiled_autograd.h"

namespace tenon::testing {

using autograd::AutogradContext;
using autograd::Function;

class TestAutograd : public ::testing::TestWithParam<bool> {
 protected:
  TestAutograd() {
    compiled_autograd::reset();
    manual_seed(0);
    if (GetParam()) on_.emplace();
  }

 private:
  std::optional<compiled_autograd::Enable> on_;
};

inline std::string walk_name(const ::testing::TestParamInfo<bool>& info) { return info.param ? "captured" : "eager"; }

// What any exception says; empty: there was none.
template <typename F>
std::string thrown_by(F&& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

// Forgets the gradients of these in the end: one that has a history (`create_graph`) makes a ring with its tensor.
class ForgetsGradients {
 public:
  explicit ForgetsGradients(std::vector<Tensor> of) : of_(std::move(of)) {}
  ~ForgetsGradients() {
    for (const Tensor& tensor : of_) tensor.set_grad(Tensor());
  }
  ForgetsGradients(const ForgetsGradients&) = delete;

 private:
  std::vector<Tensor> of_;
};

inline Tensor doubles(const Ints& sizes, bool requires_grad = true) {
  return randn(SymInts(sizes.span()), kFloat64).set_requires_grad(requires_grad);
}

inline void expect_near(const Tensor& found, const Tensor& expected, double tolerance = 1e-6) {
  ASSERT_TRUE(found.defined());
  EXPECT_LE(difference(found.detach(), expected.detach()), tolerance);
}
inline void expect_filled(const Tensor& found, double value) {
  ASSERT_TRUE(found.defined());
  expect_near(found, full_like(found.detach(), value));
}

}  // namespace tenon::testing
