// A step of Adam over all parameters at once gives what the operators give, bit for bit.
#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include "values_of.h"

namespace tenon::optim {
namespace {

using testing::values;

// The same numbers, laid out so that operators have to do the step.
Tensor other_layout(const Tensor& x) { return x.detach().t().contiguous().t(); }

void expect_same_steps(const AdamOptions& options, Dtype dtype) {
  // Less than a block, some blocks and a piece, one row, nothing.
  const std::vector<Ints> sizes = {{3, 5}, {131, 150}, {2, 1}, {0, 4}};
  std::vector<Tensor> fused, plain;
  for (const Ints& each : sizes) {
    Tensor x = randn(SymInts(each.span()), dtype);
    fused.push_back(x.clone().set_requires_grad());
    plain.push_back(other_layout(x).set_requires_grad());
  }
  Adam a(fused, options), b(plain, options);
  for (int step = 0; step < 4; ++step) {
    for (size_t at = 0; at < sizes.size(); ++at) {
      Tensor gradient = randn(SymInts(sizes[at].span()), dtype) * (step == 2 ? 1e-3 : 1.0);
      fused[at].set_grad(gradient);
      plain[at].set_grad(other_layout(gradient));
    }
    a.step();
    b.step();
    for (size_t at = 0; at < sizes.size(); ++at)
      EXPECT_EQ(values(fused[at]), values(plain[at])) << "parameter " << at << " at step " << step;
  }
  io::NamedTensors left = a.state_dict(), right = b.state_dict();
  ASSERT_EQ(left.size(), right.size());
  for (size_t at = 0; at < left.size(); ++at) EXPECT_EQ(values(left[at].second), values(right[at].second));
}

TEST(FusedAdam, IsTheOperators) {
  for (Dtype dtype : {kFloat32, kFloat64}) {
    expect_same_steps({}, dtype);
    expect_same_steps({.lr = 0.01, .weight_decay = 0.1}, dtype);
    expect_same_steps({.lr = 0.01, .weight_decay = 0.1, .decoupled_weight_decay = true}, dtype);
    expect_same_steps({.lr = 0.01, .betas = {0.3, 0.9}, .amsgrad = true}, dtype);
    expect_same_steps({.lr = 0.01, .weight_decay = 0.2, .amsgrad = true, .maximize = true}, dtype);
  }
}

TEST(FusedAdam, IsOneLaunch) {
  std::vector<Tensor> parameters;
  for (int64_t size : {3, 20000, 7, 9000}) {
    parameters.push_back(randn({size}).set_requires_grad());
    parameters.back().set_grad(randn({size}));
  }
  Adam adam(parameters);
  adam.step();
  Counter& launches = counter("kernels_launched");
  int64_t before = launches.value(), version = parameters[1].version();
  adam.set_lr(0.5);
  adam.step();
  EXPECT_EQ(launches.value() - before, 1);
  EXPECT_GT(parameters[1].version(), version) << "backward is told that a parameter changed";
}

// Parameters that cannot take part do their steps beside the others.
TEST(FusedAdam, OthersStepOneByOne) {
  Tensor whole = randn({8});
  std::vector<Tensor> parameters = {whole.slice(0, 0, 4).detach().set_requires_grad(),
                                    whole.slice(0, 4).detach().set_requires_grad(),
                                    randn({3}).to(kFloat16).set_requires_grad(), randn({3}).set_requires_grad()};
  Tensor before = whole.clone();
  for (const Tensor& each : parameters) each.set_grad(ones_like(each.detach()));
  Adam adam(parameters, {.lr = 0.25});
  adam.step();
  EXPECT_TRUE(whole.allclose(before - 0.25, 1e-5, 1e-6));
  EXPECT_FALSE(parameters[2].grad().dtype() == kFloat32);
}

}  // namespace
}  // namespace tenon::optim
