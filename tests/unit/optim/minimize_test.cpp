#include <tenon/optim/minimize.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "error_of.h"
#include "values_of.h"

#include <tenon/tenon.h>

namespace tenon::testing {
namespace {

using optim::Method;
using optim::minimize;
using optim::MinimizeOptions;
using optim::MinimizeResult;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// Rosenbrock's valley: a minimum of 0 at ones, and curved on the way there.
Tensor valley(const Tensor& x) {
  Tensor first = x.slice(0, 0, -1), rest = x.slice(0, 1);
  return (100 * square(rest - square(first)) + square(1 - first)).sum();
}
Tensor far() { return tensor({-1.2, 1.0, -0.5}, kFloat64); }

TEST(Minimize, BothMethodsFindTheEndOfAValley) {
  for (Method method : {Method::LBFGS, Method::NewtonCG}) {
    MinimizeResult found = minimize(valley, far(), {.method = method, .tolerance = 1e-8});
    EXPECT_TRUE(found.converged) << found.converged.why();
    EXPECT_EQ(found.converged.why(), "");
    EXPECT_THAT(values(found.x), Pointwise(DoubleNear(1e-7), {1.0, 1.0, 1.0}));
    EXPECT_NEAR(found.value, 0, 1e-14);
    EXPECT_LE(found.gradient.abs().max().item<double>(), 1e-8);
    EXPECT_LT(found.iterations, 100);
    EXPECT_GE(found.evaluations, found.iterations);
    EXPECT_FALSE(found.x.requires_grad());
  }
}

TEST(Minimize, NewtonNeedsOneStepForAParabola) {
  Tensor scale = tensor({1.0, 50.0, 1000.0}, kFloat64), bottom = tensor({3.0, -2.0, 0.5}, kFloat64);
  auto parabola = [&](const Tensor& x) { return (scale * square(x - bottom)).sum(); };
  MinimizeOptions options{.method = Method::NewtonCG, .tolerance = 1e-6};
  MinimizeResult found = minimize(parabola, zeros({3}, kFloat64), options);
  EXPECT_TRUE(found.converged) << found.converged.why();
  EXPECT_LE(found.iterations, 4);  // the first ones are not exact
  EXPECT_THAT(values(found.x), Pointwise(DoubleNear(1e-6), {3.0, -2.0, 0.5}));
}

// At the start the curvature is negative: a Newton step would climb to the maximum at 0.
TEST(Minimize, NewtonGoesDownWhereTheFunctionIsNoValley) {
  auto hills = [](const Tensor& x) { return cos(x).sum(); };
  MinimizeResult found = minimize(hills, tensor({0.3, -0.2}, kFloat64), {.method = Method::NewtonCG});
  EXPECT_TRUE(found.converged) << found.converged.why();
  EXPECT_NEAR(found.value, -2, 1e-9);
}

TEST(Minimize, EveryPointIsShown) {
  std::vector<double> seen;
  MinimizeOptions options;
  for (Method method : {Method::LBFGS, Method::NewtonCG}) {
    seen.clear();
    options.method = method;
    options.on_step = [&](const optim::MinimizeStep& step) {
      EXPECT_EQ(step.iteration, static_cast<int64_t>(seen.size()));
      EXPECT_NEAR(step.value, valley(step.x).item<double>(), 1e-12);
      seen.push_back(step.value);
    };
    MinimizeResult found = minimize(valley, far(), options);
    EXPECT_EQ(static_cast<int64_t>(seen.size()), found.iterations + 1);
    EXPECT_EQ(seen.back(), found.value);
    for (size_t at = 1; at < seen.size(); ++at) EXPECT_LT(seen[at], seen[at - 1]);
  }
}

TEST(Minimize, TensorsOfAnyShapeAndDtypeAndTheStartStays) {
  Tensor start = zeros({2, 3});
  for (Method method : {Method::LBFGS, Method::NewtonCG}) {
    MinimizeResult found =
        minimize([](const Tensor& x) { return square(x - 2).mean(); }, start, {.method = method, .tolerance = 1e-4});
    EXPECT_TRUE(found.converged) << found.converged.why();
    EXPECT_TRUE(found.x.allclose(2 * ones({2, 3}), 1e-3));
    EXPECT_EQ(found.x.dtype(), kFloat32);
    EXPECT_EQ(values(start), std::vector<double>(6, 0));
  }
}

TEST(Minimize, ACompiledFunctionIsCompiledForTheFirstStepsAlone) {
  auto compiled = compile(valley);
  MinimizeOptions options{.method = Method::NewtonCG, .max_iterations = 2};
  (void)minimize(compiled, far(), options);
  int64_t graphs = compiled.compile_count();
  options.max_iterations = 50;
  MinimizeResult found = minimize(compiled, far() + 0.1, options);
  EXPECT_TRUE(found.converged) << found.converged.why();
  EXPECT_EQ(compiled.compile_count(), graphs);
  EXPECT_GT(found.iterations, 3);
}

TEST(Minimize, SaysWhyItEnded) {
  for (Method method : {Method::LBFGS, Method::NewtonCG}) {
    MinimizeResult few = minimize(valley, far(), {.method = method, .max_iterations = 2});
    EXPECT_FALSE(few.converged);
    EXPECT_EQ(few.iterations, 2);
    EXPECT_THAT(few.converged.why(), HasSubstr("2 steps were not enough: the largest element of the gradient is "));
    MinimizeResult none =
        minimize([](const Tensor& x) { return log(x).sum(); }, -ones({2}, kFloat64), {.method = method});
    EXPECT_THAT(none.converged.why(), HasSubstr("the value is nan"));
    // A constant is lowest everywhere.
    EXPECT_TRUE(minimize([](const Tensor&) { return ones({}, kFloat64); }, far(), {.method = method}).converged);
  }
  // A value that says something else than its gradient.
  auto wrong = [](const Tensor& x) { return (x - 2 * x.detach()).sum(); };
  EXPECT_THAT(minimize(wrong, ones({1}, kFloat64), {.method = Method::NewtonCG}).converged.why(),
              HasSubstr("no lower point was found along the direction"));
}

TEST(Minimize, Refusals) {
  EXPECT_EQ(error_of([] { (void)minimize([](const Tensor& x) { return x * 2; }, far()); }),
            "[minimize] expected a function that gives one number, got float64[3]; end it with .sum() or .mean()");
  EXPECT_EQ(error_of([] { (void)minimize(valley, ones({2}, kInt64)); }),
            "[minimize] expected a start of floating point numbers, got int64[2]");
  EXPECT_EQ(error_of([] { (void)minimize(valley, far(), {.tolerance = -1}); }),
            "[minimize] expected a tolerance that is not negative, got -1");
  EXPECT_EQ(error_of([] { (void)minimize(nullptr, far()); }), "[minimize] expected a function, got none");
}

}  // namespace
}  // namespace tenon::testing
