// A variable that a compiled function reads by itself is given another tensor while the old one lives on elsewhere.
#include "testing.h"

#include <tenon/support/log.h>

namespace tenon {
namespace {

using testing::same_bits;

class WatchedClosures : public ::testing::TestWithParam<const char*> {
 protected:
  CompileOptions options() const { return {.backend = GetParam()}; }
};

INSTANTIATE_TEST_SUITE_P(Backends, WatchedClosures, ::testing::Values("inductor", "aot_eager", "eager"));

TEST_P(WatchedClosures, the_new_tensor_is_used) {
  Tensor w = ones({2}), old = w;
  auto f = compile([&](Tensor x) { return x * w; }, options());
  Tensor x = full({2}, 3.0);
  EXPECT_TRUE(same_bits(f(x), full({2}, 3.0)));
  w = ones({2}) * 5;
  EXPECT_TRUE(same_bits(f(x), full({2}, 15.0)));
  w = std::move(old);
  EXPECT_TRUE(same_bits(f(x), full({2}, 3.0)));
  EXPECT_TRUE(same_bits(f(x), full({2}, 3.0)));
  EXPECT_EQ(f.compile_count(), 1) << "the graph is the same";
}

// At the capture the variable held the very argument.
TEST_P(WatchedClosures, the_argument_was_held_too) {
  Tensor base = ones({2}), w = base;
  auto f = compile([&](Tensor x) { return x + w * 2; }, options());
  for (int call = 0; call < 2; ++call) EXPECT_TRUE(same_bits(f(base), full({2}, 3.0)));
  w = ones({2}) * 5;
  for (int call = 0; call < 2; ++call) EXPECT_TRUE(same_bits(f(base), full({2}, 11.0)));
  w = base;
  for (int call = 0; call < 2; ++call) EXPECT_TRUE(same_bits(f(base), full({2}, 3.0)));
  for (int call = 0; call < 2; ++call) EXPECT_TRUE(same_bits(f(full({2}, 4.0)), full({2}, 6.0)));
}

TEST_P(WatchedClosures, a_result_of_a_segment_before_was_held_too) {
  Tensor base = ones({2}), w = base;
  auto f = compile([&](Tensor x) { return x * x.sum().item<SymFloat>() + w; }, options());
  for (int call = 0; call < 2; ++call) EXPECT_TRUE(same_bits(f(base), full({2}, 3.0)));
  w = ones({2}) * 5;
  for (int call = 0; call < 2; ++call) EXPECT_TRUE(same_bits(f(base), full({2}, 7.0)));
}

TEST_P(WatchedClosures, after_a_break) {
  Tensor w = ones({2}), old = w;
  auto f = compile([&](Tensor x) { return x * x.sum().item<SymFloat>() * w; }, options());
  Tensor x = ones({2});
  for (double factor : {1.0, 5.0, 5.0, 7.0}) {
    if (factor > 1) w = ones({2}) * factor;
    EXPECT_TRUE(same_bits(f(x), full({2}, 2 * factor)));
    EXPECT_TRUE(same_bits(f(x), full({2}, 2 * factor)));
  }
}

TEST_P(WatchedClosures, training_with_a_closure_tensor_traces_once) {
  Tensor w = ones({3}).set_requires_grad();
  int traces = 0;
  auto f = compile(
      [&](Tensor x) {
        ++traces;
        return (x * w).sum();
      },
      options());
  for (int step = 0; step < 5; ++step) {
    w.set_grad(Tensor());
    f(ones({3})).backward();
    NoGrad off;
    w.sub_(w.grad());
  }
  EXPECT_EQ(traces, 1) << "what the library does with its own variables is no rebinding";
  EXPECT_TRUE(same_bits(w.detach(), full({3}, -4.0)));
}

TEST_P(WatchedClosures, false_alarms_cost_a_trace_each_and_end) {
  Tensor w = full({2}, 2.0);
  int traces = 0;
  auto f = compile(
      [&](Tensor x) {
        ++traces;
        return x + w;
      },
      options());
  size_t warnings = static_cast<size_t>(warning_count());
  for (int call = 0; call < 20; ++call) {
    EXPECT_TRUE(same_bits(f(ones({2})), full({2}, 3.0)));
    Tensor copy = w;
    copy = ones({1});
  }
  EXPECT_EQ(f.compile_count(), 1);
  EXPECT_EQ(traces, 9);
  EXPECT_EQ(static_cast<size_t>(warning_count()), warnings + 1) << "once, with the line and what to do";
}

TEST_P(WatchedClosures, a_literal_is_no_closure_variable) {
  int traces = 0;
  auto f = compile(
      [&](Tensor x) {
        ++traces;
        Tensor scale = tensor({2.f, 3.f});
        Tensor y = x * scale;
        scale = ones({1});
        return y;
      },
      options());
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same_bits(f(ones({2})), tensor({2.f, 3.f})));
  EXPECT_EQ(traces, 1);
}

// Of which the function reads nothing but its sizes (fuzz 77000741).
TEST_P(WatchedClosures, sizes_alone) {
  for (Dynamic dynamic : {Dynamic::Auto, Dynamic::On, Dynamic::Off}) {
    Tensor cache = ones({3, 4}), old = cache;
    CompileOptions with = options();
    with.dynamic = dynamic;
    int traces = 0;
    auto f = compile(
        [&](Tensor x) {
          ++traces;
          Tensor made = full(cache.sym_sizes(), 2.0) * x;
          return std::tuple(made, x * cache.size(0), x + cache.dim(), x + cache.numel());
        },
        with);
    auto expect_of_cache = [&] {
      auto [made, by_size, by_rank, by_count] = f(ones({1}));
      EXPECT_TRUE(same_bits(made, full(cache.sym_sizes(), 2.0)));
      EXPECT_EQ(by_size.item<double>(), static_cast<double>(cache.sizes()[0]));
      EXPECT_EQ(by_rank.item<double>(), 1.0 + static_cast<double>(cache.dim()));
      EXPECT_EQ(by_count.item<double>(), 1.0 + static_cast<double>(cache.numel().plain()));
    };
    for (int call = 0; call < 3; ++call) expect_of_cache();
    EXPECT_EQ(traces, 1);
    for (const SymInts& sizes : {SymInts{5, 4}, SymInts{7, 2}, SymInts{6}, SymInts{3, 4}}) {
      cache = ones(sizes);
      expect_of_cache();
      expect_of_cache();
    }
    cache = old;
    expect_of_cache();
  }
}

TEST_P(WatchedClosures, sizes_that_a_branch_asks_for) {
  Tensor cache = ones({3});
  auto f = compile([&](Tensor x) { return cache.size(0) > 3 ? x * 2 : x; }, options());
  for (int64_t size : {3, 4, 2, 9}) {
    cache = ones({size});
    EXPECT_EQ(f(ones({1})).item<double>(), size > 3 ? 2.0 : 1.0) << size;
  }
}

}  // namespace
}  // namespace tenon
