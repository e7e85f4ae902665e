#include <tenon/sym/sym_int.h>

#include <gtest/gtest.h>

#include "error_of.h"

namespace tenon::sym {
namespace {

using tenon::testing::error_of;
using tenon::testing::without_lines;

struct ShapeEnvTest : ::testing::Test {
  Ref<ShapeEnv> env = make_ref<ShapeEnv>();
  ~ShapeEnvTest() override { ShapeEnv::set_place(""); }
};

TEST_F(ShapeEnvTest, PlainNumbersStayPlain) {
  SymInt a = 7, b = -2;
  EXPECT_FALSE((a + b).is_symbolic());
  EXPECT_EQ((a + b).plain(), 5);
  EXPECT_EQ((a - b).plain(), 9);
  EXPECT_EQ((a * b).plain(), -14);
  EXPECT_EQ((a / b).plain(), -4);
  EXPECT_EQ((a % b).plain(), -1);
  EXPECT_EQ((-a).plain(), -7);
  EXPECT_EQ(min(a, b).plain(), -2);
  EXPECT_EQ(max(a, 9).plain(), 9);
  EXPECT_TRUE(bool(a > b && b != 3 && !(a <= b) && a >= 7 && b < 0 && a == 7));
  EXPECT_EQ(int64_t(a), 7);
  a += 3;
  a *= 2;
  a -= 1;
  EXPECT_EQ(a.plain(), 19);
  EXPECT_EQ(a.str(), "19");
  EXPECT_EQ(error_of([&] { a / 0; }), "[/] expected a divisor other than 0, got 19 / 0");
  EXPECT_EQ(error_of([&] { a % SymInt(0); }), "[%] expected a divisor other than 0, got 19 % 0");
}

TEST_F(ShapeEnvTest, SymbolsHaveNamesHintsAndSources) {
  SymInt n = env->create_size(8, "size 0 of argument x"), m = env->create_number(-3, "argument k");
  SymInt u = env->create_unbacked({0, 10});
  EXPECT_EQ(n.str(), "s0");
  EXPECT_EQ(m.str(), "s1");
  EXPECT_EQ(u.str(), "u0");
  EXPECT_EQ(n.hint(), 8);
  EXPECT_EQ((n * 2 + m).hint(), 13);
  EXPECT_EQ((n + u).hint(), std::nullopt);
  EXPECT_EQ(env->source(n.expr().symbol_id()), "size 0 of argument x");
  EXPECT_EQ(env->source(u.expr().symbol_id()), "");
  EXPECT_FALSE(env->is_backed(u.expr().symbol_id()));
  EXPECT_EQ((n / 2).str(), "FloorDiv(s0, 2)");
  EXPECT_EQ((4 % n).str(), "Mod(4, s0)");
  EXPECT_EQ((n - n).plain(), 0);
  EXPECT_TRUE((n + m).same(m + n));
  EXPECT_EQ(str(SymInts{2, n, 3}), "[2, s0, 3]");
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(ShapeEnvTest, DecisionsAreGuardedOnce) {
  SymInt n = env->create_size(8, "size 0 of argument x");
  ShapeEnv::set_place("slice");
  EXPECT_TRUE(bool(n >= 2));  // from the range
  EXPECT_TRUE(env->guards().empty());
  EXPECT_TRUE(bool(n <= 16));
  EXPECT_FALSE(bool(n > 16));
  EXPECT_TRUE(bool(n < 20));
  ShapeEnv::set_place("cat");
  EXPECT_FALSE(bool(n == 5));
  EXPECT_TRUE(bool(n != 5));
  EXPECT_EQ(without_lines(env->str()), "s0 <= 16  (from: slice)\ns0 != 5  (from: cat)\n");
}

TEST_F(ShapeEnvTest, RelationsBetweenSymbols) {
  SymInt n = env->create_size(8, "x"), m = env->create_size(8, "y"), k = env->create_size(3, "z");
  EXPECT_TRUE(bool(n == m));
  EXPECT_FALSE(bool(n * 2 != m * 2));
  EXPECT_TRUE(bool(k < n));
  EXPECT_TRUE(bool(k <= m));  // follows
  EXPECT_EQ(without_lines(env->str()), "s0 == s1\ns2 < s0\n");
  EXPECT_TRUE(statically_true(n + k == m + k));
}

TEST_F(ShapeEnvTest, PinningGuardsTheValue) {
  SymInt n = env->create_size(8, "x");
  ShapeEnv::set_place("view");
  EXPECT_EQ(int64_t(n * 2 + 1), 17);
  EXPECT_EQ(int64_t(n), 8);
  EXPECT_EQ(without_lines(env->str()), "s0 == 8  (from: view)\n");
  EXPECT_EQ(n.maybe_constant(), 8);
  EXPECT_EQ(statically_known_int(n + 1), 9);
  EXPECT_EQ(n.hint(), 8);
  EXPECT_EQ(n.plain(), 8);
}

TEST_F(ShapeEnvTest, NothingIsAskedWithoutNeed) {
  SymInt n = env->create_size(8, "x");
  EXPECT_FALSE(statically_true(n == 8));
  EXPECT_EQ((n == 8).maybe_constant(), std::nullopt);
  EXPECT_EQ(n.maybe_constant(), std::nullopt);
  EXPECT_FALSE(n.same(8));
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(ShapeEnvTest, SuppressedGuardsAreDecidedAndNotBelieved) {
  SymInt n = env->create_size(8, "x");
  {
    ShapeEnv::SuppressGuards suppress(*env);
    EXPECT_TRUE(bool(n <= 16));
    EXPECT_EQ(int64_t(n), 8);
  }
  EXPECT_TRUE(env->guards().empty());
  EXPECT_TRUE(bool(n <= 16));
  EXPECT_EQ(env->guards().size(), 1u);
}

TEST_F(ShapeEnvTest, UnbackedConditionsAreDataDependent) {
  SymInt n = env->create_size(8, "size 0 of argument x"), u = env->create_unbacked({0, Range::kMax});
  ShapeEnv::set_place("narrow");
  EXPECT_TRUE(bool(u >= 0));
  EXPECT_EQ(without_lines(error_of<DataDependentError>([&] { (void)bool(u <= n); })),
            "[narrow] expected a condition that sizes decide, got u0 <= s0, which depends on data\n"
            "  s0 in [2, inf): size 0 of argument x, 8 at capture\n"
            "  u0 in [0, inf): a value from data\n"
            "  to settle it, write check(u0 <= s0) or check(s0 < u0) before this place");
  EXPECT_EQ(without_lines(error_of<DataDependentError>([&] { (void)int64_t(u); })),
            "[narrow] expected a number that is known at capture, got u0, which depends on data\n"
            "  u0 in [0, inf): a value from data\n"
            "  to settle it, write check(u0 == ...) before this place");
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(ShapeEnvTest, ChecksAnswerUnbackedConditions) {
  SymInt n = env->create_size(8, "x"), u = env->create_unbacked({0, Range::kMax});
  env->check((u <= n).expr(), "u fits");
  EXPECT_TRUE(bool(u <= n));
  EXPECT_TRUE(bool(u < n + 1));
  ASSERT_EQ(env->deferred_checks().size(), 1u);
  EXPECT_EQ(env->deferred_checks()[0].condition.str(), "u0 <= s0");
  EXPECT_EQ(env->deferred_checks()[0].where, "u fits");
  env->check(u <= n + 2, "known already");
  EXPECT_EQ(env->deferred_checks().size(), 1u);
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(ShapeEnvTest, AnEqualityMakesAnUnbackedNumberBacked) {
  SymInt n = env->create_size(8, "x"), u = env->create_unbacked({0, Range::kMax});
  env->check((u == n * 2).expr(), "rows");
  EXPECT_TRUE(bool(u > 10));  // by n's hint
  EXPECT_EQ(without_lines(env->str()), "s0 >= 6\n");
  EXPECT_EQ(int64_t(u), 16);
  EXPECT_EQ(env->guards().back().condition.str(), "s0 == 8");
}

TEST_F(ShapeEnvTest, ABackedNumberStaysBackedWhenAnUnbackedOneIsOlder) {
  SymInt u = env->create_unbacked({0, Range::kMax}), n = env->create_size(8, "x");
  env->check((u == n).expr(), "rows");
  EXPECT_TRUE(bool(n < 10));
  EXPECT_EQ(without_lines(env->str()), "s0 <= 9\n");
  EXPECT_EQ(int64_t(n), 8);
}

// A program comes to what data says in the order of these numbers: what is known later says nothing about the first.
TEST_F(ShapeEnvTest, ANumberFromDataIsNotSolvedForByALaterOne) {
  auto simple = [&](const SymInt& number) { return env->pool().simplify(number.expr()).str(); };
  SymInt first = env->create_unbacked({0, 100}), second = env->create_unbacked({0, 100});
  env->check((first == max(second, 3)).expr(), "");
  EXPECT_EQ(simple(first), first.str());
  SymInt third = env->create_unbacked({0, 100}), size = env->create_size(9, "late");
  env->check((third == first + 2).expr(), "");
  EXPECT_EQ(simple(third), (first + 2).str());
  SymInt fourth = env->create_unbacked({0, 100});
  env->check((size == fourth * 1).expr(), "");
  EXPECT_EQ(simple(fourth), size.str());
  EXPECT_EQ(simple(size), size.str());
}

TEST_F(ShapeEnvTest, FalseChecksAreErrors) {
  SymInt n = env->create_size(8, "size 0 of argument x"), u = env->create_unbacked({0, 3});
  env->check((n <= 9).expr(), "at most nine");
  EXPECT_TRUE(bool(n <= 9));
  ASSERT_EQ(env->guards().size(), 1u) << "a promise about sizes is asked of every call";
  EXPECT_EQ(env->guards()[0].where, "at most nine");
  EXPECT_EQ(error_of([&] { env->check((n <= 7).expr(), "at most seven"); }),
            "[check] at most seven: expected s0 <= 7, got\n  s0 in [2, 9]: size 0 of argument x, 8 at capture");
  EXPECT_EQ(error_of([&] { env->check(env->pool().constant(0), "never"); }),
            "[check] never: expected 0, got a condition that never holds");
  EXPECT_EQ(error_of([&] { env->check(u == 5, "five"); }),
            "[check] five: expected 0, got a condition that never holds");
}

TEST_F(ShapeEnvTest, TwoGuardsThatLeaveOneValue) {
  SymInt n = env->create_size(5, "x"), m = env->create_size(8, "y");
  EXPECT_FALSE(bool(n > 5));
  EXPECT_EQ(statically_known_int(n), std::nullopt);
  EXPECT_FALSE(bool(n < 5));
  EXPECT_EQ(statically_known_int(n), 5);
  EXPECT_EQ((n * m).maybe_constant(), std::nullopt);
  EXPECT_EQ(env->pool().simplify((n * m).expr()), (5 * m).expr());
  EXPECT_EQ(int64_t(n), 5);
  EXPECT_EQ(env->guards().size(), 2u);  // pinning it asks no more
}

TEST_F(ShapeEnvTest, StaticQuestionsCanBeObserved) {
  SymInt n = env->create_size(5, "x");
  std::vector<std::string> seen;
  set_static_query_observer([&](const Expr& expr, std::optional<int64_t> answer) {
    seen.push_back(expr.str() + (answer ? fmt::format(" = {}", *answer) : ""));
  });
  EXPECT_EQ(tenon::statically_known_int(n + 1), std::nullopt);
  EXPECT_EQ(statically_known_int((n % 2).expr()), std::nullopt);
  EXPECT_EQ(int64_t(n), 5);
  EXPECT_EQ(tenon::statically_known_int(n + 1), 6);
  EXPECT_EQ(tenon::statically_known_int(7), 7);  // nothing to observe
  set_static_query_observer({});
  EXPECT_EQ(tenon::statically_known_int(n), 5);
  EXPECT_EQ(seen, (std::vector<std::string>{"s0 + 1", "Mod(s0, 2)", "s0 + 1 = 6"}));
}

TEST_F(ShapeEnvTest, EnvironmentsDoNotMix) {
  Ref<ShapeEnv> other = make_ref<ShapeEnv>();
  SymInt n = env->create_size(8, "x"), m = other->create_size(8, "y");
  EXPECT_THROW(n + m, InternalError);
  EXPECT_THROW(n == m, InternalError);
  EXPECT_THROW((n == 3) && (m == 3), InternalError);
  EXPECT_FALSE(n.same(m));
}

TEST_F(ShapeEnvTest, ConnectedConditions) {
  SymInt n = env->create_size(8, "x"), m = env->create_size(4, "y");
  SymBool both = n > 5 && m < 6;
  EXPECT_EQ(both.str(), "s0 >= 6 && s1 <= 5");
  EXPECT_TRUE(bool(both));
  EXPECT_EQ(env->guards().size(), 1u);
  EXPECT_TRUE(bool(n > 3));
  EXPECT_TRUE(bool(m < 6));
  EXPECT_EQ(env->guards().size(), 1u);
  bool yes = true, no = false;
  EXPECT_TRUE(bool(yes && n > 3));
  EXPECT_FALSE(bool(m > 100 || no));
  EXPECT_FALSE(bool(no && n == 77));  // asks nothing
  EXPECT_EQ(env->guards().size(), 1u);
  EXPECT_EQ((!(n == m + 3)).str(), "s0 != s1 + 3");
}

}  // namespace
}  // namespace tenon::sym
