#include <tenon/sym/expr.h>

#include <gtest/gtest.h>

#include "error_of.h"

#include <chrono>

namespace tenon::sym {
namespace {

using tenon::testing::error_of;

constexpr int64_t kInf = Range::kMax;

struct ExprTest : ::testing::Test {
  ExprPool pool;
  Expr number(int64_t value) { return pool.constant(value); }
  Expr size(const char* name) { return pool.symbol(name, {0, kInf}); }
  int64_t value(Expr expr, std::vector<int64_t> symbols) { return evaluate(expr, symbols); }
};

TEST_F(ExprTest, EqualExpressionsAreOneNode) {
  Expr a = pool.symbol("a"), b = pool.symbol("b");
  EXPECT_EQ(a + b, b + a);
  EXPECT_EQ((a + b) * 2 - b, a * 2 + b);
  EXPECT_EQ((a + 1) * (a - 1), a * a - 1);
  EXPECT_EQ(a - a, number(0));
  EXPECT_NE(a * b, a + b);
  EXPECT_EQ(gt(a, b), lt(b, a));
  EXPECT_EQ(logical_not(le(a, b)), lt(b, a));
  EXPECT_EQ(logical_not(logical_and(le(a, b), eq(a, b))), logical_or(gt(a, b), ne(b, a)));
}

TEST_F(ExprTest, NormalForm) {
  Expr a = pool.symbol("a"), b = pool.symbol("b");
  Expr sum = b * 3 + a * b * 2 + 7;
  ASSERT_EQ(sum.op(), Op::Add);
  EXPECT_EQ(sum.args()[0], number(7));
  EXPECT_EQ(sum.args()[1].op(), Op::Mul);
  EXPECT_EQ(sum.args()[1].args()[0], number(2));
  Expr condition = lt(a * 2 + 3, b * 4);
  ASSERT_EQ(condition.op(), Op::Le);
  EXPECT_EQ(condition.args()[0], a - b * 2);
  EXPECT_EQ(condition.args()[1], number(-2));
}

TEST_F(ExprTest, LargeProductsOfSumsStayProducts) {
  Expr left = number(1), right = number(2);
  for (int i = 0; i < 5; ++i) {
    left = left + pool.symbol("a" + std::to_string(i));
    right = right + pool.symbol("b" + std::to_string(i));
  }
  Expr product = left * right;
  EXPECT_EQ(product.op(), Op::Mul);
  EXPECT_EQ(product * 3 - product * 2, product);
  EXPECT_EQ((left * 2) * right, product * 2);
  EXPECT_EQ(pool.parse(product.str()), product);
  EXPECT_EQ(value(product, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), (1 + 1 + 3 + 5 + 7 + 9) * (2 + 2 + 4 + 6 + 8 + 10));
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
  EXPECT_EQ(max(s0 - 5, number(0)).str(), "Max(0, s0 - 5)");
  EXPECT_EQ(le(s0, number(5)).str(), "s0 <= 5");
  EXPECT_EQ(ge(s0, number(5)).str(), "s0 >= 5");
  EXPECT_EQ(eq(s0, s1).str(), "s0 == s1");
  EXPECT_EQ(lt(s0, s1).str(), "s0 < s1");
  EXPECT_EQ(le(s0 + 4, s1).str(), "s0 + 4 <= s1");
  EXPECT_EQ(ne(s0, s1 * 2 + 3).str(), "s0 != 2*s1 + 3");
  EXPECT_EQ(logical_and(le(s0, s1), eq(s0, number(2))).str(), "s0 == 2 && s0 <= s1");
  EXPECT_EQ((s0 * s1 * -2 + s0).str(), "s0 - 2*s0*s1");
  EXPECT_EQ(Expr().str(), "undefined");
}

// As trees they would have 2^60 parts, or be nested 300 deep.
TEST_F(ExprTest, NamesPartsOfWhatIsLarge) {
  Expr s0 = size("s0"), shared = s0, deep = s0;
  for (int at = 0; at < 60; ++at) shared = floor_div(shared + 1, number(2)) + mod(shared, number(3));
  for (int64_t at = 0; at < 300; ++at) deep = max(floor_div(deep * 3 + at, number(2)), number(5));
  for (Expr expr : {shared, deep, lt(shared, s0 * 2)}) {
    std::string text = expr.str();
    EXPECT_TRUE(text.starts_with("let(_0: ")) << text.substr(0, 80);
    EXPECT_LT(text.size(), 1'000'000);
    EXPECT_EQ(pool.parse(text), expr);
  }
  // A symbol of that name is not hidden.
  Expr taken = size("_0");
  EXPECT_TRUE((shared + taken).str().starts_with("let(_1: "));
  EXPECT_EQ(pool.parse((shared + taken).str()), shared + taken);
  EXPECT_EQ(pool.parse("let(a: s0 + 1, b: 2*a, a*b)"), (s0 + 1) * (s0 + 1) * 2);
  EXPECT_EQ(error_of([&] { pool.parse("let(a: s0"); }),
            "[parse] expected \",\" at position 9 of \"let(a: s0\", got the end");
}

TEST_F(ExprTest, ParsesItsText) {
  pool.symbol("s0");
  pool.symbol("s1");
  for (const char* text : {"2*s0 + 1", "s0 - 3", "-s0", "Mod(s0, 8)", "FloorDiv(s0, s1)", "Min(s0, s1)", "s0 <= 5",
                           "s0 != s1", "s0 < s1", "s0 == 2 && s0 <= s1", "(s0 == 2 || s1 == 3) && s0 <= s1",
                           "-9223372036854775808", "Max(0, s0 - 5, s1)", "s0 + 4 <= s1"}) {
    Expr parsed = pool.parse(text);
    EXPECT_EQ(pool.parse(parsed.str()), parsed) << text;
  }
  EXPECT_EQ(pool.parse("!(s0 <= s1)").str(), "s1 < s0");
  EXPECT_EQ(error_of([&] { pool.parse("s0 + t"); }),
            "[parse] expected a known symbol at position 5 of \"s0 + t\", got \"t\"");
  EXPECT_EQ(error_of([&] { pool.parse("Abs(s0, 1)"); }),
            "[parse] expected a function of 2 such operands at position 0 of \"Abs(s0, 1)\", got \"Abs(s0, 1)\"");
  EXPECT_EQ(error_of([&] { pool.parse("s0 *"); }),
            "[parse] expected a number, a symbol or \"(\" at position 4 of \"s0 *\", got the end");
}

TEST_F(ExprTest, SymbolNamesAreUniqueIdentifiers) {
  pool.symbol("s0");
  EXPECT_EQ(error_of([&] { pool.symbol("s0"); }), "[symbol] expected a new name, got s0, which this pool has");
  EXPECT_EQ(error_of([&] { pool.symbol("2x"); }),
            "[symbol] expected a name of letters, digits, '_' and '.', got \"2x\"");
  EXPECT_FALSE(pool.find_symbol("t").defined());
  int32_t first = 0;
  EXPECT_EQ(pool.find_symbol("s0"), pool.symbol(first));
}

TEST_F(ExprTest, PoolsDoNotMix) {
  ExprPool other;
  EXPECT_THROW(pool.symbol("a") + other.symbol("a"), InternalError);
}

TEST_F(ExprTest, OverflowIsNotFolded) {
  Expr a = pool.symbol("a");
  Expr big = number(kInf);
  Expr sum = big + 1;
  EXPECT_FALSE(sum.is_constant());
  EXPECT_EQ(sum, number(1) + big);
  EXPECT_THROW(value(sum, {0}), OverflowError);
  EXPECT_EQ(value(sum - 2, {0}), kInf - 1);  // only the way leads out of 64 bits
  Expr product = (a * kInf) * 3;
  EXPECT_THROW(value(product, {1}), OverflowError);
  EXPECT_EQ(value(product, {0}), 0);
  EXPECT_EQ(pool.range(sum), (Range{kInf - 1, kInf}));
  EXPECT_THROW(value(floor_div(number(Range::kMin), number(-1)), {0}), OverflowError);
  EXPECT_THROW(value(-number(Range::kMin), {0}), OverflowError);
  for (Expr expr : {sum, product, product + sum, sum * sum * a}) EXPECT_EQ(pool.parse(expr.str()), expr) << expr.str();
  // The largest number as "no limit".
  EXPECT_EQ(min(a, big), a);
  EXPECT_EQ(le(a, big), number(1));
}

TEST_F(ExprTest, HighPowersDoNotExplode) {
  Expr x = pool.symbol("x"), y = pool.symbol("y");
  Expr power = x, binomial = x + y;
  for (int i = 0; i < 40; ++i) {
    power = power * power;
    binomial = binomial * binomial;
  }
  EXPECT_EQ(value(power, {1, 0}), 1);
  EXPECT_EQ(value(binomial, {3, -2}), 1);
}

TEST_F(ExprTest, DivisionByZeroIsAnErrorWhenEvaluated) {
  Expr a = pool.symbol("a"), b = pool.symbol("b");
  EXPECT_EQ(
      error_of([&] { value(floor_div(a, b), {3, 0}); }),
      "[evaluate] expected a divisor other than 0, got 3 divided by 0\n  evaluating FloorDiv(a, b)\n  a = 3\n  b = 0");
  EXPECT_EQ(error_of([&] { value(mod(a, number(0)), {3, 0}); }),
            "[evaluate] expected a divisor other than 0, got 3 divided by 0\n  evaluating Mod(a, 0)\n  a = 3");
}

TEST_F(ExprTest, Ranges) {
  Expr s = pool.symbol("s", {2, kInf}), i = pool.symbol("i", {0, 7}), x = pool.symbol("x");
  EXPECT_EQ(pool.range(s * 2 + 1), (Range{5, kInf}));
  EXPECT_EQ(pool.range(-i), (Range{-7, 0}));
  EXPECT_EQ(pool.range(i * -3 + 10), (Range{-11, 10}));
  EXPECT_EQ(pool.range(floor_div(i, number(2))), (Range{0, 3}));
  EXPECT_EQ(pool.range(mod(x, number(8))), (Range{0, 7}));
  EXPECT_EQ(pool.range(mod(i, s)), (Range{0, 7}));
  EXPECT_EQ(pool.range(x * x), (Range{0, kInf}));
  EXPECT_EQ(pool.range(max(x, number(4))), (Range{4, kInf}));
  EXPECT_EQ(pool.range(le(x, s)), (Range{0, 1}));
  EXPECT_EQ(pool.range(floor_div(x, s)), Range());
  EXPECT_EQ(pool.range(floor_div(number(100), s)), (Range{0, 50}));
}

TEST_F(ExprTest, LoopIndices) {
  Expr a = size("a"), b = size("b"), i = size("i"), j = size("j");
  pool.assume(lt(i, a));
  pool.assume(lt(j, b));
  Expr flat = i * b + j;
  EXPECT_EQ(floor_div(flat, b), i);
  EXPECT_EQ(mod(flat, b), j);
  EXPECT_EQ(floor_div(flat, a * b), number(0));
  EXPECT_EQ(mod(flat, a * b), flat);
  EXPECT_EQ(lt(flat, a * b), number(1));
  // A loop says nothing outside itself: its extent may be zero.
  EXPECT_EQ(pool.range(a), (Range{0, kInf}));
  EXPECT_EQ(pool.known(ge(a, number(1))), std::nullopt);
}

TEST_F(ExprTest, AFlattenedLoop) {
  Expr a = size("a"), b = size("b"), c = size("c"), i = size("i");
  pool.assume(lt(i, a * b * c));
  Expr outer = floor_div(i, b * c), middle = mod(floor_div(i, c), b), inner = mod(i, c);
  EXPECT_EQ(pool.known(lt(outer, a)), true);
  EXPECT_EQ(pool.known(ge(outer, number(0))), true);
  EXPECT_EQ(pool.known(lt(middle, b)), true);
  EXPECT_EQ(pool.known(lt(inner, c)), true);
  EXPECT_EQ((outer * b + middle) * c + inner, i);
  // Transposed and back.
  Expr transposed = (inner * b + middle) * a + outer;
  EXPECT_EQ(mod(transposed, a), outer);
  EXPECT_EQ(floor_div(transposed, a * b), inner);
  EXPECT_EQ(mod(floor_div(transposed, a), b), middle);
}

TEST_F(ExprTest, StaticTiles) {
  Expr n = size("n"), i = size("i"), j = pool.symbol("j", {0, 15});
  pool.assume(lt(i, floor_div(n + 15, number(16))));
  EXPECT_EQ(floor_div(i * 16 + j, number(16)), i);
  EXPECT_EQ(mod(i * 16 + j, number(4)), mod(j, number(4)));
  EXPECT_EQ(floor_div(i * 16 + j, number(4)), i * 4 + floor_div(j, number(4)));
  EXPECT_EQ(pool.known(lt(i * 16 + j, n + 16)), true);
  EXPECT_EQ(pool.known(lt(i * 16 + j, n)), std::nullopt);
}

TEST_F(ExprTest, AssumedBoundsNarrowRanges) {
  Expr s = pool.symbol("s", {2, kInf}), t = pool.symbol("t", {2, kInf});
  pool.assume(le(s * 2, number(21)));
  EXPECT_EQ(pool.range(s), (Range{2, 10}));
  pool.assume(ne(s, number(10)));
  EXPECT_EQ(pool.range(s), (Range{2, 9}));
  pool.assume(lt(t, s));
  EXPECT_EQ(pool.range(t), (Range{2, 8}));
  EXPECT_EQ(pool.known(le(t, s)), true);
  EXPECT_EQ(pool.known(ne(t, s)), true);
  EXPECT_EQ(pool.known(gt(t, s)), false);
  EXPECT_EQ(pool.known(le(t, s - 2)), std::nullopt);
  EXPECT_EQ(pool.known(le(t, s + 5)), true);
  pool.assume(ge(s, number(9)));
  EXPECT_EQ(pool.simplify(s * t), t * 9);
  EXPECT_EQ(error_of([&] { pool.assume(le(t, number(1))); }),
            "[assume] expected a condition that can hold, got one that is known to be false");
}

TEST_F(ExprTest, AssumedEqualitiesSubstitute) {
  Expr s0 = pool.symbol("s0", {2, kInf}), s1 = pool.symbol("s1", {2, kInf}), u = pool.symbol("u", {0, 100});
  Expr early = u * 3 + s0;
  pool.assume(le(u, s0 * 4));
  pool.assume(eq(u, s1 * 2));
  EXPECT_EQ(pool.simplify(early), s1 * 6 + s0);
  EXPECT_EQ(pool.simplify(mod(u, number(2))), number(0));
  EXPECT_EQ(pool.known(eq(u, s1 * 2)), true);
  EXPECT_EQ(pool.known(ne(u + 1, s1 * 2)), true);
  EXPECT_EQ(pool.range(s1), (Range{2, 50}));    // from u's
  EXPECT_EQ(pool.range(u), (Range{4, 100}));    // from s1's
  EXPECT_EQ(pool.known(le(s1, s0 * 2)), true);  // from an older fact
}

TEST_F(ExprTest, FactsThatAreNoBounds) {
  Expr a = pool.symbol("a"), b = pool.symbol("b");
  Expr either = logical_or(le(a, number(0)), le(b, number(0)));
  EXPECT_EQ(pool.known(either), std::nullopt);
  pool.assume(either);
  EXPECT_EQ(pool.known(either), true);
  EXPECT_EQ(pool.known(logical_not(either)), false);
  EXPECT_EQ(pool.known(logical_or(le(b, number(0)), le(a, number(0)))), true);
}

TEST_F(ExprTest, SubstituteAndImport) {
  Expr a = pool.symbol("a"), b = pool.symbol("b");
  Expr expr = floor_div(a * b + 3, number(4));
  EXPECT_EQ(pool.substitute(expr, {{a.symbol_id(), number(4)}}), b);
  EXPECT_EQ(pool.substitute(expr, {{a.symbol_id(), b}, {b.symbol_id(), a}}), expr);
  ExprPool other;
  Expr x = other.symbol("x");
  EXPECT_EQ(other.import(expr, {{a.symbol_id(), x * 8}, {b.symbol_id(), x + 1}}).str(), "2*x*x + 2*x");
  EXPECT_EQ(symbols_of(expr), (std::vector<int32_t>{0, 1}));
  EXPECT_THROW(other.import(expr, {}), InternalError);
}

TEST_F(ExprTest, ProgramsShareAndDecide) {
  Expr a = pool.symbol("a"), b = pool.symbol("b");
  std::vector<Expr> all = {floor_div(a, b),
                           floor_div(a, b) * 2 + 1,
                           number(7),
                           a,
                           logical_or(le(a, b), eq(a, number(9))),
                           min(a, b * 2),
                           logical_and(ne(a, b), le(a, number(3)))};
  ExprProgram program(all);
  std::vector<int64_t> values = {9, 4}, results(all.size());
  program.run(values, results);
  EXPECT_EQ(results, (std::vector<int64_t>{2, 5, 7, 9, 1, 8, 0}));
  EXPECT_THROW(program.run(values, std::span(results).first(2)), InternalError);
  EXPECT_EQ(ExprProgram().result_count(), 0u);
}

TEST_F(ExprTest, DeepExpressions) {
  Expr s = pool.symbol("s"), deep = s;
  for (int i = 0; i < 20000; ++i) deep = mod(deep + s, number(7 + i % 5));
  EXPECT_EQ(pool.simplify(deep), deep);
  int64_t expected = 3;
  for (int i = 0; i < 20000; ++i) expected = (expected + 3) % (7 + i % 5);
  EXPECT_EQ(value(deep, {3}), expected);
  pool.refine(s, {0, 100});
  EXPECT_LE(pool.range(deep).max, 10);
}

// Not a benchmark: fails when something has become quadratic.
TEST_F(ExprTest, ManyExpressionsAreFast) {
  auto start = std::chrono::steady_clock::now();
  std::vector<Expr> sizes, indices, all;
  for (int i = 0; i < 100; ++i) sizes.push_back(size(("n" + std::to_string(i)).c_str()));
  for (int i = 0; i < 100; ++i) {
    indices.push_back(size(("i" + std::to_string(i)).c_str()));
    pool.assume(lt(indices.back(), sizes[static_cast<size_t>(i)]));
  }
  for (size_t k = 0; k < 10000; ++k) {
    Expr n = sizes[k % 100], m = sizes[(k * 7 + 1) % 100], i = indices[k % 100], j = indices[(k * 7 + 1) % 100];
    Expr flat = i * m + j + static_cast<int64_t>(k % 13);
    switch (k % 4) {
      case 0: all.push_back(floor_div(flat, m)); break;
      case 1: all.push_back(mod(flat, n * m)); break;
      case 2: all.push_back(lt(flat, n * m)); break;
      default: all.push_back(max(flat, n) * 2 + min(i, j)); break;
    }
  }
  for (Expr expr : all) pool.simplify(expr);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_LT(seconds, 3.0);  // 0.05 measured
}

}  // namespace
}  // namespace tenon::sym
