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

// Roots that were lowered to see whether they fit together, for each operator. A bar without a clock: whatever a
// program looks like, it must not grow with it.
template <typename F>
double surveys_per_operator(F step, int operators) {
  auto f = compile(
      [&](Tensor x) {
        for (int at = 0; at < operators; ++at) x = step(x, at);
        return x;
      },
      {.fullgraph = true});
  int64_t before = counter("roots_surveyed").value();
  f(full({4, 4}, 0.01));
  return static_cast<double>(counter("roots_surveyed").value() - before) / operators;
}

TEST(LongPrograms, how_often_values_are_held_against_others_does_not_grow) {
  auto sums = [](Tensor x, int) { return x - x.sum(1, true); };
  auto scaled = [](Tensor x, int) { return x * 1.001 + 0.01; };
  EXPECT_LE(surveys_per_operator(sums, 100), 6);
  EXPECT_LE(surveys_per_operator(sums, 2'000), 6);
  EXPECT_LE(surveys_per_operator(scaled, 5'000), 1);
}

TEST(LongPrograms, nor_in_wide_ones) {
  // Each takes half of a kernel's work, so that no three of them fit together.
  auto wide = [](int count) {
    auto f = compile(
        [count](Tensor x) {
          std::vector<Tensor> results;
          for (int at = 0; at < count; ++at) {
            Tensor y = x + at;
            for (int times = 0; times < 10; ++times) y = y.sin();
            results.push_back(y);
          }
          return results;
        },
        {.fullgraph = true});
    int64_t before = counter("roots_surveyed").value();
    f(full({4, 4}, 0.01));
    return static_cast<double>(counter("roots_surveyed").value() - before) / count;
  };
  const double few = wide(60), many = wide(240);
  EXPECT_LE(many, 1.5 * few);
  EXPECT_LE(many, 64);
}

// As a tree it would have more parts than memory holds.
TEST(LongPrograms, numbers_whose_parts_are_shared) {
  auto function = [](Tensor x) {
    SymInt n = x.size(0);
    for (int at = 0; at < 60; ++at) n = (n + 1) / 2 + n % 3;
    return x + n;
  };
  auto f = compile(function, {.fullgraph = true, .dynamic = Dynamic::On});
  for (int64_t rows : {4, 7, 1000}) {
    Tensor x = randn({rows, 2});
    EXPECT_TRUE(same_bits(f(x), function(x))) << rows;
  }
}

// A list of tensors is joined in batches of 32, whose kernels are the same.
TEST(LongPrograms, lists_of_tensors_are_batches) {
  std::vector<Tensor> equal, different;
  for (int64_t at = 0; at < 300; ++at) {
    equal.push_back(randn({3, 2}));
    different.push_back(at % 50 == 7 ? randint(0, 9, {at % 7, 2}) : randn({at % 7, 2}));
  }
  different.push_back(zeros({0}));  // PyTorch allows it beside any
  auto join = [](std::vector<Tensor> list) { return cat(list, 0); };
  for (const std::vector<Tensor>& list : {equal, different}) {
    int64_t rows = 0;
    for (const Tensor& each : list) rows += each.size(0).plain();
    Tensor expected = empty({rows, 2});
    rows = 0;
    for (const Tensor& each : list) {
      if (each.dim() != 2) continue;
      expected.narrow(0, rows, each.size(0)).copy_(each);
      rows += each.size(0).plain();
    }
    EXPECT_TRUE(same_bits(join(list), expected));
    auto f = compile(join, {.fullgraph = true});
    EXPECT_TRUE(same_bits(f(list), expected));
    int64_t before = counter("kernels_launched").value();
    f(list);
    EXPECT_LE(counter("kernels_launched").value() - before, 16);  // ten batches, the whole, conversions
  }
}

}  // namespace
}  // namespace tenon
