// Where rows once differed from PyTorch: dtypes of bools, gradients at corners, what is refused. Expected values were
// taken from PyTorch 2.13.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/autograd/engine.h>
#include <tenon/capture/compile.h>
#include <tenon/generated/ops.h>

#include <cmath>
#include <limits>

#include "error_of.h"

namespace tenon::test {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<double> values(const Tensor& tensor) {
  Tensor flat = tensor.detach().to(kFloat64).contiguous();
  return {flat.data<double>(), flat.data<double>() + flat.numel().plain()};
}

// The gradient of the sum of `function`, eager and compiled, which must be the same.
template <typename F>
std::vector<double> slope(F function, const Tensor& at) {
  Tensor eager = at.clone().set_requires_grad(), compiled = at.clone().set_requires_grad();
  function(eager).sum().backward();
  compile(function)(compiled).sum().backward();
  EXPECT_EQ(values(eager.grad()), values(compiled.grad()));
  return values(eager.grad());
}

TEST(Corners, AFactorDoesNotTakePartInPromotion) {
  Tensor bools = tensor({true, false});
  EXPECT_EQ(add(bools, true).dtype(), kBool);
  EXPECT_EQ(values(add(bools, true)), (std::vector<double>{1, 1}));
  EXPECT_EQ(add(bools, 1).dtype(), kInt64);
  EXPECT_EQ(compile([](Tensor x) { return add(x, true); })(bools).dtype(), kBool);
}

TEST(Corners, ThePowerOfABoolIsANumber) {
  Tensor bools = tensor({true, false});
  for (int exponent : {0, 1, 2, 3, 5}) {
    Tensor power = pow(bools, exponent);
    EXPECT_EQ(power.dtype(), kInt64) << exponent;
    EXPECT_EQ(values(power), (std::vector<double>{1, exponent == 0 ? 1.0 : 0.0})) << exponent;
  }
}

TEST(Corners, ANaNPassesTheGradientOn) {
  Tensor x = tensor({kNaN, 1.0, 2.0, 3.0}), y = tensor({0.0, kNaN, 2.0, 1.0});
  EXPECT_EQ(slope([y](Tensor t) { return maximum(t, y); }, x), (std::vector<double>{1, 1, 0.5, 1}));
  EXPECT_EQ(slope([y](Tensor t) { return minimum(t, y); }, x), (std::vector<double>{1, 1, 0.5, 0}));
  EXPECT_EQ(slope([x](Tensor t) { return maximum(x, t); }, y), (std::vector<double>{1, 1, 0.5, 0}));
  EXPECT_EQ(slope([x](Tensor t) { return minimum(x, t); }, y), (std::vector<double>{1, 1, 0.5, 1}));
  EXPECT_EQ(slope([](Tensor t) { return hardtanh(t); }, tensor({kNaN, -1.0, 0.5, 1.0})),
            (std::vector<double>{1, 0, 1, 0}));
}

TEST(Corners, AnAngleHasNoSlopeAtTheOrigin) {
  Tensor zero = tensor({0.0, 0.0}), x = tensor({0.0, 2.0});
  EXPECT_EQ(slope([x](Tensor y) { return atan2(y, x); }, zero), (std::vector<double>{0, 0.5}));
  EXPECT_EQ(slope([zero](Tensor t) { return atan2(zero, t); }, x), (std::vector<double>{0, 0}));
}

TEST(Corners, ARoundedQuotientIsFlat) {
  Tensor x = tensor({5.0, -5.0}), y = tensor({2.0, 2.0});
  for (const char* mode : {"floor", "trunc"}) {
    EXPECT_EQ(slope([=](Tensor t) { return div(t, y, mode); }, x), (std::vector<double>{0, 0})) << mode;
    EXPECT_EQ(slope([=](Tensor t) { return div(x, t, mode); }, y), (std::vector<double>{0, 0})) << mode;
  }
  EXPECT_EQ(slope([y](Tensor t) { return div(t, y, std::nullopt); }, x), (std::vector<double>{0.5, 0.5}));
  EXPECT_TRUE(floor_divide(x.clone().set_requires_grad(), 2).requires_grad());
}

TEST(Corners, IntegersHaveALogarithmOfTheirExponentialsSum) {
  Tensor result = logsumexp(tensor({0, 0}), 0);
  EXPECT_EQ(result.dtype(), kFloat32);
  EXPECT_NEAR(result.item<double>(), std::log(2.0), 1e-6);
}

TEST(Corners, AScatteredSliceIsConverted) {
  Tensor base = zeros({2, 2}, kFloat16), source = tensor({{1.0, 2.5}}, kFloat64);
  for (const Tensor& result : {slice_scatter(base, source, 0, 1, 2), select_scatter(base, source[0], 0, 1)}) {
    EXPECT_EQ(result.dtype(), kFloat16);
    EXPECT_EQ(values(result), (std::vector<double>{0, 0, 1, 2.5}));
  }
  Tensor integers = slice_scatter(zeros({2}, kInt64), tensor({2.75}), 0, 0, 1);
  EXPECT_EQ(values(integers), (std::vector<double>{2, 0}));
  Tensor leaf = tensor({1.5}, kFloat64).set_requires_grad();
  slice_scatter(zeros({2}), leaf, 0, 0, 1).sum().backward();
  EXPECT_EQ(leaf.grad().dtype(), kFloat64);
}

TEST(Corners, FlatteningOneDimensionIsTheTensorItself) {
  Tensor x = randn({2, 3}).set_requires_grad();
  EXPECT_TRUE(x.flatten(1, 1).is(x));
  EXPECT_TRUE(x.flatten(1, 1).is_leaf());
  EXPECT_FALSE(x.flatten(0, 1).is(x));
}

// A number is rounded like the halves that it is compared with, or divides; what adds or multiplies takes it as it is.
TEST(Corners, NumbersBesideHalves) {
  auto check = [](auto function, const std::vector<double>& expected) {
    Tensor x = tensor({0.2001953125f, 33.25f, -4.5f}).to(kBFloat16);
    EXPECT_EQ(values(function(x)), expected);
    EXPECT_EQ(values(compile(function)(x)), expected);
  };
  check([](Tensor x) { return x == 0.2; }, {1, 0, 0});
  check([](Tensor x) { return x > 0.2; }, {0, 1, 0});
  check([](Tensor x) { return x >= tensor(0.2); }, {1, 1, 0});
  check([](Tensor x) { return remainder(x, 0.3); }, {0.2001953125, 0.1640625, 0.01171875});
  check([](Tensor x) { return fmod(x, tensor(0.3f)); }, {0.2001953125, 0.1640625, -0.2890625});
  check([](Tensor x) { return pow(x.abs(), tensor(0.3f)); }, {0.6171875, 2.875, 1.5703125});
  check([](Tensor x) { return atan2(x, tensor(0.3f)); }, {0.5859375, 1.5625, -1.5078125});
  check([](Tensor x) { return x * 0.3; }, {0.06005859375, 10, -1.3515625});
}

TEST(Corners, BoolsAreNotSubtracted) {
  Tensor mask = tensor({true, false}), x = ones({2});
  EXPECT_THAT(error_of([&] { (void)(x - mask); }), HasSubstr("[sub] a bool cannot be subtracted"));
  EXPECT_THAT(error_of([&] { (void)(mask - x); }), HasSubstr("logical_not()"));
  EXPECT_THAT(error_of([&] { (void)(1 - mask); }), HasSubstr("[rsub] a bool cannot be subtracted"));
  EXPECT_THAT(error_of([&] { (void)(mask - mask); }), HasSubstr("two bools cannot be subtracted: use ^"));
  EXPECT_THAT(error_of([&] { x.sub_(mask); }), HasSubstr("[sub_]"));
  EXPECT_THAT(error_of([&] { (void)compile([](Tensor a, Tensor b) { return a - b; })(x, mask); }), HasSubstr("[sub]"));
}

TEST(Corners, RangesOfWholeNumbers) {
  EXPECT_EQ(values(arange(0, 3.1, 1, kInt64)), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(values(arange(0, 3.1, 1, kInt32)), (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ(values(arange(-2.5, 2.5, 1, kInt64)), (std::vector<double>{-2, -1, 0, 1}));
  EXPECT_EQ(values(arange(5, 0, -1.5, kInt64)), (std::vector<double>{5, 4, 3, 2, 1}));
  EXPECT_EQ(values(linspace(-2.5, 7.5, 6, kInt64)), (std::vector<double>{-2, 0, 1, 3, 5, 7}));
  EXPECT_EQ(values(linspace(0.9, 2.9, 3, kInt32)), (std::vector<double>{0, 1, 2}));
}

TEST(Corners, ANumberHasMoments) {
  Tensor number = tensor(3.0);
  EXPECT_EQ(number.mean(0).item<double>(), 3);
  auto [variance, mean] = var_mean(number, Ints{0}, Scalar(0), true);
  EXPECT_EQ(variance.item<double>(), 0);
  EXPECT_EQ(mean.item<double>(), 3);
  EXPECT_EQ(mean.dim(), 0);
}

TEST(Corners, WhatIsRefused) {
  Tensor x = randn({3}), wide = randn({3}, kFloat64), whole = tensor({1, 2, 3});
  EXPECT_THAT(error_of([&] { neg(tensor({true})); }), HasSubstr("[neg] bools have no opposite sign, got bool[1]"));
  EXPECT_THAT(error_of([&] { where(x, x, x); }), HasSubstr("[where] expected a condition of bools, got float32[3]"));
  EXPECT_THAT(error_of([&] { x.fill_(x); }), HasSubstr("[fill_] expected a value of no dimensions, got float32[3]"));
  EXPECT_THAT(error_of([&] { lerp(x, wide, 0.5); }),
              HasSubstr("[lerp] expected tensors of one dtype, got float32 and float64"));
  EXPECT_THAT(error_of([&] { addcdiv(x, whole, whole); }),
              HasSubstr("[addcdiv] expected floating point tensors to divide, got int64[3] and int64[3]"));
  for (const std::string& error : {error_of([] { relu(tensor({true})); }), error_of([] { relu6(tensor({true})); }),
                                   error_of([] { abs(tensor({true})); })})
    EXPECT_THAT(error, HasSubstr("expected a tensor of numbers, got bool[1]"));
  EXPECT_THAT(error_of<IndexError>([] { squeeze(tensor(1.0), 9); }),
              HasSubstr("[squeeze] expected a dimension from -1 to 0, got 9"));
  EXPECT_EQ(values(where(tensor({1, 0, 2}, kUInt8), whole, -whole)), (std::vector<double>{1, -2, 3}));
}

}  // namespace
}  // namespace tenon::test
