// A step over all parameters at once gives what the operators give, bit for bit, and is one launch.
#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "making.h"
#include "values_of.h"

namespace tenon::optim {
namespace {

using testing::values;
// Every rule, and every way through it.
std::map<std::string, Make> optimizers() {
  using Adam_ = AdamOptions;
  using SGD_ = SGDOptions;
  using RMSprop_ = RMSpropOptions;
  return {
      {"Adam", making<Adam>(Adam_{})},
      {"Adam decay", making<Adam>(Adam_{.lr = 0.01, .weight_decay = 0.1})},
      {"Adam decoupled", making<Adam>(Adam_{.lr = 0.01, .weight_decay = 0.1, .decoupled_weight_decay = true})},
      {"Adam amsgrad", making<Adam>(Adam_{.lr = 0.01, .betas = {0.3, 0.9}, .amsgrad = true})},
      {"Adam maximize", making<Adam>(Adam_{.lr = 0.01, .weight_decay = 0.2, .amsgrad = true, .maximize = true})},
      {"AdamW", making<AdamW>(AdamWOptions{.lr = 0.01})},
      {"SGD", making<SGD>(SGD_{.lr = 0.05})},
      {"SGD decay", making<SGD>(SGD_{.lr = 0.05, .weight_decay = 0.1, .maximize = true})},
      {"SGD momentum", making<SGD>(SGD_{.lr = 0.05, .momentum = 0.9, .weight_decay = 0.1, .dampening = 0.3})},
      {"SGD nesterov", making<SGD>(SGD_{.lr = 0.05, .momentum = 0.9, .nesterov = true})},
      {"RMSprop", making<RMSprop>(RMSprop_{.lr = 0.05})},
      {"RMSprop centered", making<RMSprop>(RMSprop_{.lr = 0.05, .weight_decay = 0.1, .centered = true})},
      {"RMSprop momentum", making<RMSprop>(RMSprop_{.lr = 0.05, .momentum = 0.8})},
      {"RMSprop both", making<RMSprop>(RMSprop_{.lr = 0.05, .alpha = 0.4, .momentum = 0.8, .centered = true})},
      {"Adagrad", making<Adagrad>(AdagradOptions{.lr = 0.05, .lr_decay = 0.1, .initial_accumulator_value = 0.5})},
      {"Adadelta", making<Adadelta>(AdadeltaOptions{.lr = 0.5, .rho = 0.7, .weight_decay = 0.1})},
      {"Adamax", making<Adamax>(AdamaxOptions{.lr = 0.05, .betas = {0.8, 0.95}, .weight_decay = 0.1})},
      {"NAdam", making<NAdam>(NAdamOptions{.lr = 0.05, .weight_decay = 0.1, .decoupled_weight_decay = true})},
      {"RAdam", making<RAdam>(RAdamOptions{.lr = 0.05, .betas = {0.8, 0.9}, .weight_decay = 0.1})},
      {"Lion", making<Lion>(LionOptions{.lr = 0.01, .weight_decay = 0.1})},
  };
}

// The same numbers, laid out so that operators have to do the step.
Tensor other_layout(const Tensor& x) { return x.detach().t().contiguous().t(); }

void expect_same_steps(const Make& make, const std::vector<Ints>& sizes, int steps, Dtype dtype) {
  std::vector<Tensor> fused, plain;
  for (const Ints& each : sizes) {
    Tensor x = randn(SymInts(each.span()), dtype);
    fused.push_back(x.clone().set_requires_grad());
    plain.push_back(other_layout(x).set_requires_grad());
  }
  auto a = make(fused), b = make(plain);
  for (int step = 0; step < steps; ++step) {
    for (size_t at = 0; at < sizes.size(); ++at) {
      Tensor gradient = randn(SymInts(sizes[at].span()), dtype) * (step == 2 ? 1e-3 : 1.0);
      fused[at].set_grad(gradient);
      plain[at].set_grad(other_layout(gradient));
    }
    a->step();
    b->step();
    for (size_t at = 0; at < sizes.size(); ++at)
      ASSERT_EQ(values(fused[at]), values(plain[at])) << "parameter " << at << " at step " << step;
  }
  io::NamedTensors left = a->state_dict(), right = b->state_dict();
  ASSERT_EQ(left.size(), right.size());
  for (size_t at = 0; at < left.size(); ++at)
    EXPECT_EQ(values(left[at].second), values(right[at].second)) << left[at].first;
}

// Eight: RAdam trusts its mean square from the sixth step on.
TEST(FusedStep, IsTheOperators) {
  for (const auto& [name, make] : optimizers())
    for (Dtype dtype : {kFloat32, kFloat64}) {
      SCOPED_TRACE(name);
      expect_same_steps(make, {{3, 5}, {17, 9}, {2, 1}, {0, 4}}, 8, dtype);
    }
}

// A parameter of some blocks and a piece, between others.
TEST(FusedStep, BlocksAreTheOperators) {
  for (const char* name : {"Adam amsgrad", "SGD nesterov", "SGD"}) {
    SCOPED_TRACE(name);
    expect_same_steps(optimizers().at(name), {{3, 5}, {131, 150}, {2, 1}, {91, 91}}, 2, kFloat32);
  }
}

// What is no number stays none, as the operators have it.
TEST(FusedStep, ExtremeGradientsAreTheOperators) {
  const double kNan = std::nan(""), kInfinite = HUGE_VAL;
  const Tensor gradient = tensor({kNan, kInfinite, -kInfinite, 0.0, -0.0, 1e-45}).to(kFloat32).view({2, 3});
  for (const auto& [name, make] : optimizers()) {
    SCOPED_TRACE(name);
    Tensor fused = ones({2, 3}).set_requires_grad(), plain = other_layout(ones({2, 3})).set_requires_grad();
    auto a = make({fused}), b = make({plain});
    for (int step = 0; step < 3; ++step) {
      fused.set_grad(gradient.clone());
      plain.set_grad(other_layout(gradient));
      a->step();
      b->step();
    }
    for (size_t at = 0; at < 6; ++at) {
      const double left = values(fused)[at], right = values(plain)[at];
      EXPECT_TRUE(left == right || (std::isnan(left) && std::isnan(right))) << at << ": " << left << ", " << right;
    }
  }
}

TEST(FusedStep, IsOneLaunch) {
  for (const auto& [name, make] : optimizers()) {
    SCOPED_TRACE(name);
    std::vector<Tensor> parameters;
    for (int64_t size : {3, 20000, 7, 9000}) {
      parameters.push_back(randn({size}).set_requires_grad());
      parameters.back().set_grad(randn({size}));
    }
    auto optimizer = make(parameters);
    optimizer->step();
    Counter& launches = counter("kernels_launched");
    int64_t before = launches.value(), version = parameters[1].version();
    optimizer->set_lr(0.5);
    for (int step = 1; step < 8; ++step) optimizer->step();
    EXPECT_EQ(launches.value() - before, 7);
    EXPECT_GT(parameters[1].version(), version) << "backward is told that a parameter changed";
  }
}

// Groups have rates of their own, and are still one launch.
TEST(FusedStep, GroupsAreOneLaunch) {
  Tensor a = ones({3}).set_requires_grad(), b = ones({3}).set_requires_grad();
  a.set_grad(ones({3}));
  b.set_grad(ones({3}));
  SGD sgd({a}, {.lr = 0.5});
  sgd.add_group({b}, {.lr = 0.25, .momentum = 0.5});
  sgd.step();
  Counter& launches = counter("kernels_launched");
  const int64_t before = launches.value();
  sgd.step();
  EXPECT_EQ(launches.value() - before, 1);
  EXPECT_EQ(values(a), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(values(b), (std::vector<double>{0.375, 0.375, 0.375}));
}

// Parameters that cannot take part do their steps beside the others.
TEST(FusedStep, OthersStepOneByOne) {
  Tensor whole = randn({8});
  std::vector<Tensor> parameters = {whole.slice(0, 0, 4).detach().set_requires_grad(),
                                    whole.slice(0, 4).detach().set_requires_grad(),
                                    randn({3}).to(kFloat16).set_requires_grad(), randn({3}).set_requires_grad()};
  Tensor before = whole.clone(), halves = parameters[2].detach().clone();
  for (const Tensor& each : parameters) each.set_grad(ones_like(each.detach()));
  Adam adam(parameters, {.lr = 0.25});
  adam.step();
  EXPECT_TRUE(whole.allclose(before - 0.25, 1e-5, 1e-6));
  EXPECT_TRUE(parameters[2].detach().allclose(halves - 0.25, 1e-2, 1e-2));
}

// The same memory twice: the second step begins where the first has ended.
TEST(FusedStep, WhatIsSharedStepsInOrder) {
  Tensor whole = ones({2}), other = ones({2});
  std::vector<Tensor> parameters = {whole.detach().set_requires_grad(), other.detach().set_requires_grad(),
                                    whole.detach().set_requires_grad()};
  for (size_t at = 0; at < 3; ++at) parameters[at].set_grad(full({2}, static_cast<double>(at + 1)));
  SGD sgd(parameters, {.lr = 0.5, .weight_decay = 1});
  sgd.step();
  EXPECT_EQ(values(whole), (std::vector<double>{-1.5, -1.5}));  // 1 - 0.5 * (1 + 1) = 0, 0 - 0.5 * (3 + 0)
  EXPECT_EQ(values(other), (std::vector<double>{-0.5, -0.5}));
}

// A velocity that began as the gradient is not the gradient's memory.
TEST(FusedStep, WhatIsRememberedIsNotTheGradient) {
  for (bool fused : {true, false}) {
    Tensor p = fused ? ones({2, 3}) : other_layout(ones({2, 3}));
    p.set_requires_grad();
    Tensor gradient = fused ? ones({2, 3}) : other_layout(ones({2, 3}));
    p.set_grad(gradient);
    SGD sgd({p}, {.lr = 1, .momentum = 0.5});
    sgd.step();
    gradient.zero_();
    sgd.step();
    EXPECT_EQ(values(p), std::vector<double>(6, -0.5)) << fused;
  }
}

}  // namespace
}  // namespace tenon::optim
