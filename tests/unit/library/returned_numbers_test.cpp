// Custom operators that return numbers are captured.
#include <gtest/gtest.h>
#include <tenon/library/custom_op.h>
#include <tenon/support/counters.h>
#include <tenon/tenon.h>

#include "unit/capture/testing.h"

namespace tenon {
namespace {

using library::custom_op;
using testing::same_bits;

template <typename R>
R call(const char* name, const Tensor& x) {
  const dispatch::Value args[] = {dispatch::Value(x)};
  return dispatch::call<R>(dispatch::find_operator(name), args);
}

int64_t above_two(const Tensor& x) {
  int64_t count = 0;
  Tensor flat = x.contiguous();
  for (int64_t at = 0; at < flat.numel().plain(); ++at) count += flat.data<float>()[at] > 2 ? 1 : 0;
  return count;
}

// Eager's results on every backend, with the numbers captured (`whole`: in one graph) and read between segments.
void expect_as_eager(const std::function<Tensor(Tensor)>& f, bool always_whole = false) {
  for (const char* backend : {"eager", "aot_eager", "inductor"})
    for (bool captured : {true, false}) {
      auto compiled = compile(f, {.fullgraph = captured || always_whole,
                                  .dynamic = Dynamic::On,
                                  .backend = backend,
                                  .capture_scalar_outputs = captured});
      for (int64_t size : {4, 5, 7, 3, 5}) {
        SCOPED_TRACE(fmt::format("{}, captured {}, {} elements", backend, captured, size));
        Tensor x = arange(size, kFloat32);
        EXPECT_TRUE(same_bits(compiled(x), f(x)));
      }
    }
}

TEST(ReturnedNumbers, WithoutAFakeTheyAreSymbols) {
  auto count = custom_op("numbers::count", above_two);
  auto mean = custom_op("numbers::mean", [](const Tensor& x) -> double { return x.mean().item<double>(); });
  auto many = custom_op("numbers::many", [](const Tensor& x) -> bool { return above_two(x) > 1; });
  expect_as_eager([](Tensor x) { return x * Scalar(call<SymInt>("numbers::count", x)) + 1; });
  expect_as_eager([](Tensor x) { return x * Scalar(call<SymFloat>("numbers::mean", x)) + 1; });
  expect_as_eager([](Tensor x) { return x * Scalar(to_int(call<SymBool>("numbers::many", x))) + 1; });
}

TEST(ReturnedNumbers, SeveralAreToldApart) {
  auto three = custom_op("numbers::three", [](const Tensor& x) -> std::tuple<int64_t, double, int64_t> {
    return {above_two(x), 0.5 * x.sum().item<double>(), x.numel().plain()};
  });
  expect_as_eager([](Tensor x) {
    auto [above, half, all] = call<std::tuple<SymInt, SymFloat, SymInt>>("numbers::three", x * 1);
    return (x * Scalar(above) + Scalar(half)) * Scalar(all);
  });
}

TEST(ReturnedNumbers, AFakeTellsThem) {
  auto sized = custom_op("numbers::sized", [](const Tensor& x) -> std::tuple<Tensor, int64_t, bool> {
    return {x * 2, x.numel().plain() + 1, true};
  });
  sized.register_fake([](const Tensor& x) -> std::tuple<Tensor, SymInt, SymBool> {
    return {empty_like(x), x.size(0) + 1, SymBool(true)};
  });
  // Nothing has to be run for them, so there is one graph whatever the options say.
  expect_as_eager(
      [](Tensor x) {
        auto [twice, more, yes] = call<std::tuple<Tensor, SymInt, SymBool>>("numbers::sized", x);
        return twice * Scalar(more) + Scalar(to_int(yes));
      },
      true);
}

// After a call like that the thread is outside again: a function compiled later is compiled.
TEST(ReturnedNumbers, NothingRunsEagerInTheirPlace) {
  auto count = custom_op("numbers::count", above_two);
  auto f = compile([](Tensor x) { return x + call<int64_t>("numbers::count", x); });
  EXPECT_TRUE(same_bits(f(arange(5, kFloat32)), arange(5, kFloat32) + 2));
  EXPECT_TRUE(same_bits(f(arange(5, kFloat32)), arange(5, kFloat32) + 2));
  EXPECT_TRUE(same_bits(f(arange(6, kFloat32)), arange(6, kFloat32) + 3));
  EXPECT_FALSE(capture::is_capturing());
}

}  // namespace
}  // namespace tenon
