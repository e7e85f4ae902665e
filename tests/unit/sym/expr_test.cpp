#include <tenon/sym/expr.h>

#include <gtest/gtest.h>

namespace tenon::sym {
namespace {

struct ExprTest : testing::Test {
  ExprPool pool;
  Expr number(int64_t value) { return pool.constant(value); }
};

TEST_F(ExprTest, EqualExpressionsAreOneNode) {
  Expr a = pool.symbol("a"), b = pool.symbol("b");
  EXPECT_EQ(a + b, b + a);
  EXPECT_EQ((a + b) * 2 - b, a * 2 + b);
  EXPECT_EQ((a + 1) * (a - 1), a * a - 1);
  EXPECT_EQ(a - a, number(0));
  EXPECT_NE(a * b, a + b);
}

TEST_F(ExprTest, PrintsNaturally) {
  Expr s0 = pool.symbol("s0"), s1 = pool.symbol("s1");
  EXPECT_EQ((s0 * 2 + 1).str(), "2*s0 + 1");
  EXPECT_EQ((s0 - 3).str(), "s0 - 3");
  EXPECT_EQ((number(3) - s0).str(), "3 - s0");
  EXPECT_EQ((-s0).str(), "-s0");
  EXPECT_EQ(mod(s0, number(8)).str(), "Mod(s0, 8)");
  EXPECT_EQ(floor_div(s0, number(2)).str(), "FloorDiv(s0, 2)");
  EXPECT_EQ(min(s0, s1).str(), "Min(s0, s1)");
  EXPECT_EQ(le(s0, number(5)).str(), "s0 <= 5");
  EXPECT_EQ(ge(s0, number(5)).str(), "s0 >= 5");
  EXPECT_EQ(eq(s0, s1).str(), "s0 == s1");
  EXPECT_EQ(lt(s0, s1).str(), "s0 < s1");
  EXPECT_EQ(ne(s0, s1 * 2 + 3).str(), "s0 != 2*s1 + 3");
  EXPECT_EQ(logical_and(le(s0, s1), eq(s0, number(2))).str(), "s0 == 2 && s0 <= s1");
}

TEST_F(ExprTest, LoopIndices) {
  Expr a = pool.symbol("a", {0, Range::kMax}), b = pool.symbol("b", {0, Range::kMax});
  Expr i = pool.symbol("i", {0, Range::kMax}), j = pool.symbol("j", {0, Range::kMax});
  pool.assume(lt(i, a));
  pool.assume(lt(j, b));
  Expr flat = i * b + j;
  EXPECT_EQ(floor_div(flat, b), i);
  EXPECT_EQ(mod(flat, b), j);
  EXPECT_EQ(floor_div(flat, a * b), number(0));
  EXPECT_EQ(mod(flat, a * b), flat);
  EXPECT_EQ(lt(flat, a * b), number(1));
}

}  // namespace
}  // namespace tenon::sym
