// Numbers that 64 bits do not hold, and divisions by zero: plain ones raise at once, expressions where they are asked
// for their value; what only passes through such a number on its way has a value.
#include "error_of.h"

#include <gtest/gtest.h>
#include <tenon/sym/sym_int.h>

#include <random>

namespace tenon {
namespace {

using sym::Expr;
using sym::ExprPool;
using sym::ShapeEnv;
using testing::error_of;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max(), kMin = std::numeric_limits<int64_t>::min();

TEST(CheckedArithmetic, plain_numbers_raise_and_say_which) {
  EXPECT_EQ(error_of<OverflowError>([] { SymInt(kMax) + 1; }),
            "[+] expected a result that fits 64 bits, got 9223372036854775807 + 1");
  EXPECT_EQ(error_of<OverflowError>([] { SymInt(kMin) - 1; }),
            "[-] expected a result that fits 64 bits, got -9223372036854775808 - 1");
  EXPECT_EQ(error_of<OverflowError>([] { SymInt(int64_t{1} << 61) * 8; }),
            "[*] expected a result that fits 64 bits, got 2305843009213693952 * 8");
  EXPECT_EQ(error_of<OverflowError>([] { SymInt(kMin) / -1; }),
            "[/] expected a result that fits 64 bits, got -9223372036854775808 / -1");
  EXPECT_EQ(error_of<OverflowError>([] { -SymInt(kMin); }),
            "[-] expected a result that fits 64 bits, got 0 - -9223372036854775808");
  EXPECT_EQ(error_of<OverflowError>([] { abs(SymInt(kMin)); }),
            "[-] expected a result that fits 64 bits, got 0 - -9223372036854775808");
  EXPECT_EQ(error_of<OverflowError>([] { pow(SymInt(3), SymInt(41)); }),
            "[pow] expected a result that fits 64 bits, got 3 to the power of 41");
  EXPECT_EQ(error_of([] { SymInt(5) / 0; }), "[/] expected a divisor other than 0, got 5 / 0");
  EXPECT_EQ(error_of([] { SymInt(5) % 0; }), "[%] expected a divisor other than 0, got 5 % 0");
}

TEST(CheckedArithmetic, what_just_fits_is_a_number) {
  EXPECT_EQ((SymInt(kMax) - 1 + 1).plain(), kMax);
  EXPECT_EQ((SymInt(kMin) % -1).plain(), 0);
  EXPECT_EQ((SymInt(kMin) / 1).plain(), kMin);
  EXPECT_EQ((SymInt(kMin) / kMax).plain(), -2);
  EXPECT_EQ((SymInt(kMin) % kMax).plain(), kMax - 1);
  EXPECT_EQ((SymInt(-7) / 2).plain(), -4);
  EXPECT_EQ((SymInt(-7) % 2).plain(), 1);
  EXPECT_EQ((SymInt(7) % -2).plain(), -1);
  EXPECT_EQ(pow(SymInt(-2), SymInt(63)).plain(), kMin);
  EXPECT_EQ(pow(SymInt(-1), SymInt(kMax)).plain(), -1);
  EXPECT_EQ((SymInt(int64_t{1} << 31) * (int64_t{1} << 31)).plain(), int64_t{1} << 62);
}

struct Symbols : ::testing::Test {
  Ref<ShapeEnv> env = make_ref<ShapeEnv>();
  SymInt number(int64_t hint) { return env->create_number(hint, "argument n"); }
};

TEST_F(Symbols, a_product_that_does_not_fit_raises_with_the_expression) {
  SymInt n = env->create_size(8, "size 0 of argument x"), product = n * (int64_t{1} << 61);
  EXPECT_EQ(error_of<OverflowError>([&] { product.plain(); }),
            "[evaluate] expected a number that fits 64 bits, got 18446744073709551616\n"
            "  evaluating 2305843009213693952*s0\n"
            "  s0 = 8");
  // Divided again it fits, and compared it is what it is.
  EXPECT_EQ((product / (int64_t{1} << 60)).plain(), 16);
  EXPECT_TRUE(bool(number(8) * kMax > kMax));
  EXPECT_FALSE(bool(number(8) * kMin > kMax));
}

TEST_F(Symbols, the_smallest_number_over_minus_one) {
  SymInt n = number(-1);
  EXPECT_EQ((kMin % n).plain(), 0);
  EXPECT_EQ(error_of<OverflowError>([&] { (kMin / number(-1)).plain(); }),
            "[evaluate] expected a number that fits 64 bits, got 9223372036854775808\n"
            "  evaluating FloorDiv(-9223372036854775808, s1)\n"
            "  s1 = -1");
}

TEST_F(Symbols, a_divisor_that_is_zero_raises_even_where_nothing_is_left_of_it) {
  SymInt n = number(0);
  EXPECT_NE(error_of([&] { 0 / n; }).find("[/] 0 / s0 divides: expected s0 != 0"), std::string::npos);
  EXPECT_NE(error_of([&] { n / n; }).find("expected s0 != 0"), std::string::npos);
  EXPECT_NE(error_of([&] { n % n; }).find("expected s0 != 0"), std::string::npos);
  // One that is not is guarded, one that cannot be is not even asked.
  SymInt m = number(3), size = env->create_size(4, "size 0 of argument x");
  EXPECT_TRUE((0 / m).same(0));
  (void)(m / size);
  EXPECT_EQ(env->guards().size(), 1u) << env->str();
  // A value from data is checked when it is there.
  SymInt u = env->create_unbacked();
  (void)(5 / u);
  EXPECT_EQ(env->deferred_checks().size(), 1u);
}

// 128 bits are an oracle for sums and products of a few numbers.
TEST_F(Symbols, random_expressions_are_exact_or_raise) {
  __extension__ using Wide = __int128;
  std::mt19937_64 random(5);
  const int64_t choices[] = {kMin, kMin + 1,         -(int64_t{1} << 62), -(int64_t{1} << 31), -3,       -1,  0, 1,
                             2,    int64_t{1} << 31, int64_t{1} << 32,    int64_t{1} << 62,    kMax - 1, kMax};
  auto pick = [&] { return choices[random() % std::size(choices)]; };
  int fitted = 0, raised = 0;
  for (int round = 0; round < 3000; ++round) {
    ExprPool pool;
    Expr a = pool.symbol("a"), b = pool.symbol("b"), c = pool.symbol("c");
    const int64_t values[] = {pick(), pick(), pick()};
    const int64_t factor = pick() % (int64_t{1} << 20), shift = pick() % (int64_t{1} << 40);
    Wide x = values[0], y = values[1], z = values[2];
    struct Case {
      Expr expr;
      Wide exact;
    };
    const Case cases[] = {
        {a + b - c, x + y - z},
        {a * factor + b, x * factor + y},
        {(a + shift) * factor - b, (x + shift) * factor - y},
        {sym::max(a + b, c), std::max(x + y, z)},
        {sym::abs(a - b), x > y ? x - y : y - x},
        {sym::le(a + b, c), x + y <= z},
        {sym::eq(a * 2, b * 2), x == y},
    };
    for (const Case& each : cases) {
      bool fits = each.exact >= kMin && each.exact <= kMax;
      int64_t got = 0;
      const Expr results[] = {each.expr};
      SCOPED_TRACE(each.expr.str() + fmt::format(" at {}, {}, {}", values[0], values[1], values[2]));
      ASSERT_EQ(sym::ExprProgram(results).try_run(values, {&got, 1}), fits);
      if (fits) {
        ASSERT_EQ(got, static_cast<int64_t>(each.exact));
        ASSERT_EQ(sym::evaluate(each.expr, values), got);
        ++fitted;
      } else {
        ASSERT_THROW(sym::evaluate(each.expr, values), OverflowError);
        ++raised;
      }
    }
  }
  EXPECT_GT(fitted, 5000);
  EXPECT_GT(raised, 1000);
}

}  // namespace
}  // namespace tenon
