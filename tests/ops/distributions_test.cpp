// Numbers that are drawn: their means and shares against what the distributions say, and whole draws of classes.
#include <gtest/gtest.h>
#include <tenon/core/random.h>
#include <tenon/dispatch/packet.h>
#include <tenon/generated/ops.h>

#include <cmath>
#include <numbers>
#include <set>

namespace tenon::test {
namespace {

using dispatch::Value;

constexpr int64_t kCount = 40000;

// `kCount` numbers of an in-place form, called with these numbers.
Tensor drawn(const char* name, std::initializer_list<double> numbers, Dtype dtype = kFloat64) {
  manual_seed(5);
  Tensor into = zeros({kCount}, dtype);
  std::vector<Value> args{Value(into)};
  for (double number : numbers) args.emplace_back(number);
  dispatch::Results results = dispatch::call_by_name(name, args);
  EXPECT_TRUE(results[0].tensor().is(into)) << name << " gives self";
  return into.to(kFloat64);
}

// The share of numbers below a bound, and how far it may be off: five deviations.
void expect_share(const Tensor& numbers, double bound, double share, const char* name) {
  const double found = sum(numbers < bound).item<double>() / kCount;
  EXPECT_NEAR(found, share, 5 * std::sqrt(share * (1 - share) / kCount)) << name << " below " << bound;
}

double normal_share(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

TEST(Distributions, SharesBelowABound) {
  for (double bound : {-1.0, 0.5, 2.0})
    expect_share(drawn("aten::uniform_", {-2.0, 3.0}), bound, (bound + 2) / 5, "uniform_");
  for (double bound : {-1.0, 0.5, 2.0})
    expect_share(drawn("aten::normal_", {0.5, 2.0}), bound, normal_share((bound - 0.5) / 2), "normal_");
  for (double bound : {0.5, 2.0, 8.0})
    expect_share(drawn("aten::log_normal_", {0.5, 2.0}), bound, normal_share((std::log(bound) - 0.5) / 2),
                 "log_normal_");
  for (double bound : {-4.0, 1.0, 3.0})
    expect_share(drawn("aten::cauchy_", {1.0, 2.0}), bound, 0.5 + std::atan((bound - 1) / 2) / std::numbers::pi,
                 "cauchy_");
  for (double bound : {0.1, 0.5, 2.0})
    expect_share(drawn("aten::exponential_", {1.5}), bound, 1 - std::exp(-1.5 * bound), "exponential_");
  for (double bound : {1.5, 2.5, 4.5})
    expect_share(drawn("aten::geometric_", {0.3}), bound, 1 - std::pow(0.7, std::floor(bound)), "geometric_");
  expect_share(drawn("aten::geometric_", {0.3}, kInt64), 2.5, 1 - 0.49, "geometric_ of integers");
  expect_share(drawn("aten::uniform_", {0.0, 1.0}, kBFloat16), 0.25, 0.25, "uniform_ of halves");
}

TEST(Distributions, WithTensorsOfMeansAndDeviations) {
  manual_seed(6);
  Tensor mean = full({kCount}, 3.0), deviation = full({kCount}, 0.5);
  auto both = [](const char* name, std::vector<Value> args) {
    return dispatch::call_by_name(name, args)[0].tensor().to(kFloat64);
  };
  expect_share(both("aten::normal.Tensor_Tensor", {Value(mean), Value(deviation)}), 3.5, normal_share(1), "both");
  expect_share(both("aten::normal.Tensor_float", {Value(mean), Value(0.5)}), 3.5, normal_share(1), "mean");
  expect_share(both("aten::normal.float_Tensor", {Value(3.0), Value(deviation)}), 3.5, normal_share(1), "deviation");
  expect_share(both("aten::normal.float_float", {Value(3.0), Value(0.5), Value(Ints{kCount}).own()}), 3.5,
               normal_share(1), "numbers");
}

TEST(Distributions, ClassesByTheirWeights) {
  manual_seed(7);
  Tensor weights = tensor({1.f, 0.f, 3.f, 4.f});
  auto draw = [&](const Tensor& from, int64_t count, bool replacement) {
    const Value args[] = {Value(from), Value(count), Value(replacement)};
    return dispatch::call_by_name("aten::multinomial", args)[0].tensor();
  };
  Tensor many = draw(weights, kCount, true);
  const double shares[] = {0.125, 0, 0.375, 0.5};
  for (int64_t at = 0; at < 4; ++at) {
    const double found = sum(many == at).item<double>() / kCount, share = shares[at];
    EXPECT_NEAR(found, share, 5 * std::sqrt(share * (1 - share) / kCount) + 1e-12) << at;
  }
  // None twice, and those without a weight last.
  for (int round = 0; round < 20; ++round) {
    Tensor few = draw(weights, 3, false);
    std::set<int64_t> seen(few.data<int64_t>(), few.data<int64_t>() + 3);
    EXPECT_EQ(seen, (std::set<int64_t>{0, 2, 3}));
  }
  EXPECT_THROW(draw(weights, 5, false), Error);
}

}  // namespace
}  // namespace tenon::test
