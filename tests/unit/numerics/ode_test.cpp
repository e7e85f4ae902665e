#include <tenon/numerics/ode.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "error_of.h"
#include "values_of.h"

#include <tenon/tenon.h>

namespace tenon::testing {
namespace {

using numerics::odeint;
using numerics::OdeMethod;
using numerics::OdeOptions;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

Tensor decay(const Tensor& y) { return -y; }
Tensor swing(const Tensor& y) { return stack({y[1], -y[0]}); }

double error_at_one(OdeMethod method, int64_t substeps) {
  Tensor path = odeint(decay, ones({1}, kFloat64), {0, 1}, {.method = method, .substeps = substeps});
  return std::abs(path[-1][0].item<double>() - std::exp(-1));
}

// Half the step: an error of 2^-order.
TEST(Ode, MethodsHaveTheirOrder) {
  EXPECT_NEAR(error_at_one(OdeMethod::Euler, 40) / error_at_one(OdeMethod::Euler, 80), 2, 0.1);
  EXPECT_NEAR(error_at_one(OdeMethod::Midpoint, 20) / error_at_one(OdeMethod::Midpoint, 40), 4, 0.2);
  EXPECT_NEAR(error_at_one(OdeMethod::RK4, 5) / error_at_one(OdeMethod::RK4, 10), 16, 1.5);
}

// A step by hand: each method has its own.
TEST(Ode, OneStepOfEach) {
  auto one_step = [](OdeMethod method) {
    return odeint(decay, ones({}, kFloat64), {0, 0.5}, {.method = method})[-1].item<double>();
  };
  EXPECT_DOUBLE_EQ(one_step(OdeMethod::Euler), 0.5);
  EXPECT_DOUBLE_EQ(one_step(OdeMethod::Midpoint), 0.625);
  EXPECT_NEAR(one_step(OdeMethod::RK4), 1 - 0.5 + 0.125 - 0.125 / 6 + 0.0625 / 24, 1e-15);
}

TEST(Ode, AdaptiveStepsKeepTheTolerance) {
  for (double rtol : {1e-4, 1e-7, 1e-10}) {
    Tensor path = odeint(swing, tensor({1.0, 0.0}, kFloat64), {0, 1, 2.5}, {.rtol = rtol, .atol = rtol});
    EXPECT_THAT(values(path),
                Pointwise(DoubleNear(20 * rtol), {1.0, 0.0, std::cos(1), -std::sin(1), std::cos(2.5), -std::sin(2.5)}));
  }
}

TEST(Ode, TheTimeIsGivenAndMayRunBackwards) {
  auto rate = [](double t, const Tensor& y) { return ones_like(y) * (2 * t); };
  for (OdeMethod method : {OdeMethod::RK4, OdeMethod::Dopri5}) {
    Tensor path = odeint(rate, tensor({9.0}, kFloat64), {3, 2, -1}, {.method = method});
    EXPECT_THAT(values(path), Pointwise(DoubleNear(1e-9), {9.0, 4.0, 1.0}));
  }
}

TEST(Ode, GradientsFlowToTheStartAndToTheRate) {
  for (OdeMethod method : {OdeMethod::RK4, OdeMethod::Dopri5}) {
    Tensor start = tensor({2.0}, kFloat64).set_requires_grad(), speed = tensor({0.5}, kFloat64).set_requires_grad();
    OdeOptions options{.method = method, .substeps = 20, .rtol = 1e-9, .atol = 1e-9};
    Tensor end = odeint([&](const Tensor& y) { return -speed * y; }, start, {0, 2}, options)[-1];
    end.sum().backward();
    EXPECT_NEAR(start.grad()[0].item<double>(), std::exp(-1), 1e-6);  // y(2) = y(0) · e^(-2·speed)
    EXPECT_NEAR(speed.grad()[0].item<double>(), -4 * std::exp(-1), 1e-6);
  }
}

TEST(Ode, FixedStepsAreOneGraph) {
  auto end = compile([](Tensor y) { return odeint(swing, y, {0, 0.5, 1}, {.method = OdeMethod::RK4, .substeps = 2}); },
                     {.fullgraph = true});
  Tensor start = tensor({1.0, 0.0}, kFloat64);
  OdeOptions options{.method = OdeMethod::RK4, .substeps = 2};
  EXPECT_TRUE(end(start).allclose(odeint(swing, start, {0, 0.5, 1}, options), 1e-12, 1e-12));
}

TEST(Ode, Refusals) {
  Tensor start = ones({1}, kFloat64);
  EXPECT_EQ(error_of([&] { (void)odeint(decay, start, {0}); }),
            "[odeint] expected at least two times, the first that of the start, got 1");
  EXPECT_EQ(error_of([&] { (void)odeint(decay, start, {0, 1, 1}); }),
            "[odeint] expected times that go up, or down, got 1 behind 1");
  EXPECT_EQ(error_of([&] { (void)odeint(decay, ones({1}, kInt64), {0, 1}); }),
            "[odeint] expected a start of floating point numbers, got int64[1]");
  EXPECT_EQ(error_of([&] { (void)odeint([](const Tensor& y) { return y.sum(); }, start, {0, 1}); }),
            "[odeint] expected a rate like y, float64[1], got float64[]");
  EXPECT_EQ(error_of([&] { (void)odeint(decay, start, {0, 1}, {.max_steps = 2}); }).substr(0, 28),
            "[odeint] 2 steps lead to t =");
}

// 1 / (1 - t) has a pole at 1.
TEST(Ode, APoleIsNamed) {
  auto rate = [](const Tensor& y) { return y * y; };
  std::string error = error_of([&] { (void)odeint(rate, ones({1}, kFloat64), {0, 2}); });
  EXPECT_THAT(error, HasSubstr("[odeint] steps became too short at t = "));
  EXPECT_THAT(error, HasSubstr("the solution has a pole there"));
}

}  // namespace
}  // namespace tenon::testing
