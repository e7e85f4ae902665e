// What was seen to change becomes dynamic; what is said of a recompile is said of the graph that comes nearest.
#include "testing.h"

#include <tenon/support/log.h>

namespace tenon {
namespace {

using testing::same_bits;
using testing::without_lines;

std::string last_reason(const Explanation& explanation) {
  return explanation.recompiles.empty() ? "" : without_lines(explanation.recompiles.back());
}

class FewRecompiles : public ::testing::TestWithParam<const char*> {
 protected:
  CompileOptions options() const { return {.backend = GetParam()}; }
};

INSTANTIATE_TEST_SUITE_P(Backends, FewRecompiles, ::testing::Values("inductor", "aot_eager", "eager"));

TEST_P(FewRecompiles, a_stride_that_changes_becomes_a_symbol) {
  auto f = compile([](Tensor x) { return x.sin() * 2; }, options());
  for (int64_t length = 4; length < 16; ++length) {
    Tensor part = randn({3, length, 5}).select(1, 2);
    EXPECT_TRUE(same_bits(f(part), part.sin() * 2));
  }
  EXPECT_EQ(f.compile_count(), 2);
}

// How a result lies in memory depends on strides of 0: one that is a symbol never comes to that.
TEST_P(FewRecompiles, a_stride_of_0_is_no_value_of_a_symbol) {
  CompileOptions dynamic = options();
  dynamic.dynamic = Dynamic::On;
  auto f = compile([](Tensor x) { return pow(x, 3) + 1; }, dynamic);
  Tensor memory = randn({200});
  for (const auto& [rows, columns] : {std::pair{2, 11}, {0, 1}, {11, 2}, {1, 0}, {0, 0}, {9, 1}, {2, 11}}) {
    Tensor x = memory.as_strided({5, 9}, {rows, columns}), fresh = x * x * x + 1;
    EXPECT_TRUE(same_bits(f(x), fresh));
    std::vector<int64_t> expected(fresh.strides().begin(), fresh.strides().end());
    for (const Tensor& found : {f(x), pow(x, 3) + 1})
      EXPECT_EQ(std::vector<int64_t>(found.strides().begin(), found.strides().end()), expected)
          << rows << " " << columns;
  }
}

TEST_P(FewRecompiles, storage_offsets_are_not_asked_for) {
  auto f = compile([](Tensor x) { return x + 1; }, options());
  Tensor memory = randn({40});
  for (int64_t at = 0; at < 20; ++at)
    EXPECT_TRUE(same_bits(f(memory.slice(0, at, at + 8)), memory.slice(0, at, at + 8) + 1));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST_P(FewRecompiles, the_reason_is_that_of_the_nearest_graph) {
  auto f = compile([](Tensor x, bool twice) { return twice ? x * 2 : x; }, options());
  f(ones({3}), true);
  f(ones({3}).to(kInt64), true);
  EXPECT_EQ(last_reason(f.explain()), "tensor 'arg0' dtype mismatch. expected float32, actual int64");
  f(ones({3, 4}), true);
  EXPECT_EQ(last_reason(f.explain()), "tensor 'arg0' rank mismatch. expected 1, actual 2");
  f(ones({4, 3}).t(), true);
  EXPECT_EQ(last_reason(f.explain()), "stride of arg0 at dim 1: expected 1, got 3");
  f(ones({3}).set_requires_grad(), true);
  EXPECT_EQ(last_reason(f.explain()), "tensor 'arg0' requires_grad mismatch. expected requires_grad=0");
  f(ones({3}), false);
  EXPECT_EQ(last_reason(f.explain()), "number 0: expected true, got false");
}

TEST_P(FewRecompiles, a_number_in_a_cell_that_changes_becomes_a_symbol) {
  Cell<double> rate(0.5, "learning rate");
  Cell<int64_t> power(1, "power");
  auto f = compile([&](Tensor x) { return x * rate.get() + power.get(); }, options());
  for (int step = 1; step < 8; ++step) {
    EXPECT_TRUE(same_bits(f(ones({3})), ones({3}) * rate.get() + power.get())) << step;
    rate = 0.5 / step;
  }
  EXPECT_EQ(f.compile_count(), 2);
  EXPECT_EQ(last_reason(f.explain()), "cell 'learning_rate': expected 0.5, got 0.25");
  for (int64_t now : {2, 5, 0, -3}) {
    power = now;
    EXPECT_TRUE(same_bits(f(ones({3})), ones({3}) * rate.get() + now));
  }
  EXPECT_EQ(f.compile_count(), 3);
}

TEST_P(FewRecompiles, a_cell_read_after_a_break) {
  Cell<double> rate(0.5);
  auto f = compile(
      [&](Tensor x) {
        SymFloat total = x.sum().item<SymFloat>();
        if (bool(total > 100.0)) return x * rate.get();
        return x * rate.get() * total + rate.get();
      },
      options());
  for (double now : {0.5, 0.25, 3.0, 0.5, 8.0})
    for (double value : {1.0, 2.0, 200.0}) {
      rate = now;
      Tensor x = full({2}, value);
      EXPECT_TRUE(same_bits(f(x), value > 100 ? x * now : x * now * (2 * value) + now)) << now << " " << value;
    }
}

TEST_P(FewRecompiles, the_signs_of_zeros_in_cells_and_constants_count) {
  Cell<double> zero(0.0);
  auto f =
      compile([&](Tensor x, double constant) { return x / (zeros({1}) + zero.get()) + x / (zeros({1}) * constant); },
              options());
  Tensor x = ones({1});
  for (double now : {0.0, -0.0})
    for (double constant : {1.0, -1.0}) {
      zero = now;
      EXPECT_TRUE(same_bits(f(x, constant), x / (zeros({1}) + now) + x / (zeros({1}) * constant)));
    }
}

TEST_P(FewRecompiles, a_plain_number_read_again_and_again_is_said_once_with_its_line) {
  auto f = compile([](Tensor x) { return x * x.sum().item<double>(); }, options());
  int64_t warnings = warning_count();
  for (int value = 1; value < 15; ++value)
    EXPECT_TRUE(same_bits(f(full({2}, double(value))), full({2}, 2.0 * value * value)));
  EXPECT_EQ(warning_count(), warnings + 1);
}

// Strides of a result are products of sizes, and one of them may come to 0.
TEST(FewRecompiles, a_size_from_data_that_comes_to_0_is_written_in_place) {
  auto f = [](Tensor count, Tensor x) {
    Tensor part = x.slice(0, 0, (count > 0).sum().item<SymInt>()) * 2;
    return relu_(part);
  };
  for (const char* backend : {"inductor", "aot_eager", "eager"}) {
    auto compiled = compile(f, {.backend = backend});
    Tensor x = arange(45, kInt32).view({9, 5}).t();
    for (const Tensor& count : {ones({2}), zeros({2}), ones({3}), zeros({4}), ones({1})})
      EXPECT_TRUE(testing::same_bits(compiled(count, x), f(count, x))) << backend;
  }
}

}  // namespace
}  // namespace tenon
