// Seed 000's operator cases: round() of numbers that are symbols.
#include "operators.h"

#include <tenon/sym/round.h>

namespace tenon::operators {
namespace {

// One graph that rounds a symbol serves every number.
template <typename F>
auto compiled_for_all(F function) {
  return compile(function, {.fullgraph = true, .dynamic = Dynamic::On});
}

TEST(CommonTemplate, builtins_round) {
  auto f = compiled_for_all([](Tensor x, auto i) {
    SymFloat half = true_div(SymInt(i), 2);
    return x.slice(0, 0, round(half + 1)) + Scalar(round(half));
  });
  Tensor x = zeros({5}, kInt32);
  const int64_t halves[] = {0, 1, 2, 2, 2}, ends[] = {2, 2, 2, 3, 4};  // of i / 2 and i / 2 + 1, halves to even
  for (int64_t i = 1; i <= 5; ++i)
    EXPECT_TRUE(same_bits(f(x, SymInt(i)), full({ends[i - 1]}, halves[i - 1], kInt32))) << i;
}

// x + round(i / 2 * 123.4567, digits), for i = 2.
void check_digits(int64_t digits, double expected) {
  auto f = compiled_for_all(
      [digits](Tensor x, auto i) { return x + Scalar(round(true_div(SymInt(i), 2) * 123.4567, digits)); });
  Tensor x = randn({2});
  EXPECT_TRUE(same_bits(f(x, SymInt(2)), x + expected));
  EXPECT_EQ(f(x, SymInt(2)).dtype(), kFloat32);
}
TEST(CommonTemplate, builtins_round_float_ndigits_pos) { check_digits(1, 123.5); }
TEST(CommonTemplate, builtins_round_float_ndigits_zero) { check_digits(0, 123.0); }
TEST(CommonTemplate, builtins_round_float_ndigits_neg) { check_digits(-1, 120.0); }

// x + round(i, digits), for i = 123: an integer has no digits behind the point.
void check_integer(int64_t digits) {
  auto f = compiled_for_all([digits](Tensor x, auto i) { return x + Scalar(round(SymInt(i), digits)); });
  Tensor x = randn({2});
  EXPECT_TRUE(same_bits(f(x, SymInt(123)), x + 123));
}
TEST(CommonTemplate, builtins_round_int_ndigits_pos) { check_integer(1); }
TEST(CommonTemplate, builtins_round_int_ndigits_zero) { check_integer(0); }

}  // namespace
}  // namespace tenon::operators
