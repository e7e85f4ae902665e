// Programs as long as loops can make them: compiled in kernels of bounded size, without recursion that grows with them.
#include "testing.h"

#include <tenon/support/counters.h>

namespace tenon {
namespace {

using testing::same_bits;

// The kernels that one call launches.
template <typename F>
int64_t launches(F& f, const Tensor& x) {
  f(x);
  int64_t before = counter("kernels_launched").value();
  f(x);
  return counter("kernels_launched").value() - before;
}

TEST(LongPrograms, a_chain_is_cut_into_kernels_of_bounded_size) {
  auto sines = [](Tensor x) {
    for (int at = 0; at < 100; ++at) x = x.sin();
    return x;
  };
  auto sums = [](Tensor x) {
    for (int at = 0; at < 500; ++at) x = x * 1.001 + 0.01;
    return x;
  };
  Tensor x = randn({4, 8});
  auto compiled_sines = compile(sines, {.fullgraph = true});
  auto compiled_sums = compile(sums, {.fullgraph = true});
  EXPECT_TRUE(same_bits(compiled_sines(x), sines(x)));
  EXPECT_TRUE(same_bits(compiled_sums(x), sums(x)));
  // 320 instructions each at most; a sine counts as 14.
  EXPECT_EQ(launches(compiled_sines, x), 5);
  EXPECT_LE(launches(compiled_sums, x), 5);
}

TEST(LongPrograms, what_others_read_on_the_way_does_not_keep_a_chain_together) {
  auto function = [](Tensor x) {
    Tensor total = zeros_like(x);
    for (int at = 0; at < 60; ++at) {
      x = x.sin();
      total = total + x;
    }
    return total;
  };
  auto f = compile(function, {.fullgraph = true});
  Tensor x = randn({4, 8});
  EXPECT_TRUE(same_bits(f(x), function(x)));
  EXPECT_LE(launches(f, x), 4);
}

TEST(LongPrograms, twenty_thousand_operators) {
  auto check = [](auto step) {
    auto function = [step](Tensor x) {
      for (int at = 0; at < 20'000; ++at) x = step(x);
      return x;
    };
    auto f = compile(function, {.fullgraph = true});
    Tensor x = full({4, 4}, 0.01);
    EXPECT_TRUE(same_bits(f(x), function(x)));
  };
  check([](Tensor x) { return x + 0.5; });
  check([](Tensor x) { return x.t(); });
  check([](Tensor x) { return mm(x, x); });
}

}  // namespace
}  // namespace tenon
