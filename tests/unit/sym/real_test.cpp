// Real expressions, held against doubles computed here.
#include "../../../src/sym/pool.h"

#include <gtest/gtest.h>

#include "error_of.h"

#include <bit>
#include <cmath>
#include <functional>
#include <random>

namespace tenon::sym {
namespace {

using tenon::testing::error_of;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

bool same_bits(double a, double b) {
  return std::bit_cast<int64_t>(a) == std::bit_cast<int64_t>(b) || (std::isnan(a) && std::isnan(b));
}

struct RealTest : ::testing::Test {
  ExprPool pool;
  Expr f = pool.real_symbol("f"), g = pool.real_symbol("g");
  Expr n = pool.symbol("n", {2, Range::kMax}), k = pool.symbol("k");
  RealTest() { pool.mark_size(n); }
  Expr real(double value) { return pool.real_constant(value); }
  Expr number(int64_t value) { return pool.constant(value); }
};

TEST_F(RealTest, TypesAndInterning) {
  EXPECT_TRUE(f.is_real() && f.is_symbol() && !f.is_boolean());
  EXPECT_FALSE(n.is_real());
  EXPECT_TRUE((f + n).is_real());
  EXPECT_TRUE(true_div(n, k).is_real());
  EXPECT_FALSE(floor(f).is_real());
  EXPECT_TRUE(lt(f, n).is_boolean());
  EXPECT_EQ(f + g, f + g);
  EXPECT_NE(f + g, g + f);  // not rearranged
  EXPECT_NE((f + g) - g, f);
  EXPECT_EQ(real(0.5) + real(0.25), real(0.75));
  EXPECT_NE(real(0.0), real(-0.0));
  EXPECT_EQ(real(kNan), real(-kNan));
  EXPECT_EQ(f * 1, f);
  EXPECT_EQ(true_div(f, number(1)), f);
  EXPECT_EQ(f - real(0.0), f);
  EXPECT_NE(f + real(0.0), f);  // -0.0 + 0.0 is 0.0
  EXPECT_EQ(to_real(n) + real(0.0), to_real(n));
  EXPECT_EQ(-(-f), f);
}

TEST_F(RealTest, ComparisonsKnowNan) {
  Expr less = lt(f, g);
  EXPECT_EQ(less.op(), Op::RealLt);
  EXPECT_NE(logical_not(less), le(g, f));
  EXPECT_EQ(logical_not(logical_not(less)), less);
  EXPECT_EQ(logical_not(eq(f, g)), ne(f, g));
  EXPECT_EQ(lt(f, f), number(0));
  EXPECT_FALSE(eq(f, f).is_constant());  // false for NaN
  EXPECT_EQ(same(f, f), number(1));
  EXPECT_EQ(eq(to_real(k), to_real(k)), number(1));
  EXPECT_EQ(eq(real(kNan), real(kNan)), number(0));
  EXPECT_EQ(same(real(kNan), real(kNan)), number(1));
  EXPECT_EQ(same(real(0.0), real(-0.0)), number(0));
  pool.assume(less);
  EXPECT_EQ(pool.known(lt(f, g)), true);
  EXPECT_EQ(pool.known(le(f, g)), true);
  EXPECT_EQ(pool.known(lt(g, f)), false);
  EXPECT_EQ(pool.known(le(g, f)), false);
  EXPECT_EQ(pool.known(eq(g, f)), false);
  EXPECT_EQ(pool.known(gt(f, real(0))), std::nullopt);
  pool.assume(logical_not(le(f, real(1))));
  EXPECT_EQ(pool.known(le(f, real(1))), false);
  EXPECT_EQ(pool.known(lt(f, real(1))), false);
  EXPECT_EQ(pool.known(gt(f, real(1))), std::nullopt);  // it may be NaN
}

TEST_F(RealTest, PinnedValuesAreConstants) {
  Expr product = f * real(3);
  pool.assume(same(f, real(2.5)));
  EXPECT_EQ(pool.simplify(product), real(7.5));
  pool.assume(eq(g, real(8)));
  EXPECT_EQ(pool.simplify(true_div(g * real(2), real(4))), real(4));
  ExprPool other;
  Expr zero = other.real_symbol("z");
  other.assume(eq(zero, other.real_constant(0)));
  EXPECT_EQ(other.simplify(zero), zero);  // either zero
  other.assume(same(zero, other.real_constant(-0.0)));
  EXPECT_EQ(other.simplify(zero), other.real_constant(-0.0));
}

TEST_F(RealTest, ExactRealsAreIntegers) {
  EXPECT_EQ(floor(to_real(n)), n);
  EXPECT_NE(floor(to_real(k)), k);  // beyond 2^53 a double rounds
  EXPECT_EQ(floor(to_real(n) * real(2.5)), floor_div(n * 5, number(2)));
  EXPECT_EQ(trunc(true_div(n, number(2))), floor_div(n, number(2)));
  EXPECT_EQ(trunc(true_div(n, number(3))), floor_div(n, number(3)));
  EXPECT_EQ(ceil(true_div(n, number(7))), -floor_div(-n, number(7)));
  EXPECT_NE(floor(to_real(n) * real(0.1)), floor_div(n, number(10)));
  EXPECT_EQ(round(to_real(n) - real(4)), n - 4);
  EXPECT_EQ(is_integer(true_div(n, number(2))), eq(mod(n, number(2)), number(0)));
  EXPECT_EQ(is_integer(to_real(k)), number(1));
  EXPECT_EQ(lt(to_real(n) * real(0.5), real(4)), lt(n, number(8)));
  EXPECT_EQ(lt(to_real(n), real(7.3)), le(n, number(7)));
  EXPECT_EQ(lt(real(7.3), to_real(n)), gt(n, number(7)));
  EXPECT_EQ(eq(to_real(n), real(7.3)), number(0));
  EXPECT_EQ(lt(to_real(n), real(kInfinity)), number(1));
  EXPECT_EQ(ge(to_real(n), real(2)), number(1));
  EXPECT_EQ(same(to_real(n), real(7)), eq(n, number(7)));
  EXPECT_EQ(to_real(n) + real(0.5), to_real(n) + real(0.5));
  EXPECT_EQ(lt(to_real(n) + real(0.5), true_div(n, number(4))), number(0));
}

TEST_F(RealTest, Ranges) {
  EXPECT_EQ(pool.range(floor(real(1.4) * to_real(n))).min, 2);
  EXPECT_EQ(pool.range(floor(call(Op::Sin, f))), (Range{-1, 1}));
  EXPECT_EQ(pool.range(floor(f)), Range());
  RealRange half = pool.real_range(true_div(mod(k, number(8)), number(2)));
  EXPECT_EQ(half, (RealRange{0, 3.5, false}));
  EXPECT_TRUE(pool.real_range(f).maybe_nan);
  EXPECT_EQ(lt(call(Op::Exp, f), real(-1)), number(0));
  EXPECT_FALSE(ge(call(Op::Exp, f), real(0)).is_constant());  // NaN
}

TEST_F(RealTest, IntegerAbsAndPow) {
  EXPECT_EQ(abs(n), n);
  EXPECT_EQ(abs(-n), n);
  EXPECT_EQ(abs(k - 3), abs(number(3) - k));
  EXPECT_EQ(abs(k * -2), abs(k) * 2);
  EXPECT_EQ(pow(k, number(2)), k * k);
  EXPECT_EQ(pow(k, number(0)), number(1));
  EXPECT_EQ(pow(number(2), n).op(), Op::Pow);
  EXPECT_EQ(pool.range(pow(number(2), n)).min, 4);
  EXPECT_EQ(pool.range(abs(k)).min, 0);
  EXPECT_EQ(ge(abs(k), k), number(1));
  EXPECT_EQ(evaluate(pow(number(3), n), std::vector<int64_t>{0, 0, 5, 0}), 243);
  EXPECT_EQ(error_of([&] { evaluate(pow(n, k), std::vector<int64_t>{0, 0, 5, -1}); }),
            "[evaluate] expected an exponent of at least 0, got 5 to the power of -1\n  evaluating Pow(n, k)\n"
            "  n = 5\n  k = -1");
}

TEST_F(RealTest, NoValue) {
  std::vector<int64_t> nan = {std::bit_cast<int64_t>(kNan), 0, 2, 0};
  EXPECT_EQ(error_of([&] { evaluate(floor(f), nan); }),
            "[evaluate] expected a number that fits 64 bits when rounded, got nan\n  evaluating Floor(f)\n  f = nan");
  EXPECT_FALSE(floor(real(1e30)).is_constant());
  Expr both[] = {floor(f), n};
  int64_t results[2];
  EXPECT_FALSE(ExprProgram(both).try_run(nan, results));
  nan[0] = std::bit_cast<int64_t>(2.5);
  EXPECT_TRUE(ExprProgram(both).try_run(nan, results));
  EXPECT_EQ(results[0], 2);
  EXPECT_EQ(evaluate_real(f + n, nan), 4.5);
}

TEST_F(RealTest, PrintsAndParses) {
  EXPECT_EQ((f + g * real(2)).str(), "f + g*2.0");
  EXPECT_EQ((f - (g - f)).str(), "f - (g - f)");
  EXPECT_EQ(true_div(n, k).str(), "ToReal(n)/ToReal(k)");
  EXPECT_EQ((-(f * g)).str(), "-(f*g)");
  EXPECT_EQ((f * real(-2)).str(), "f*(-2.0)");
  EXPECT_EQ(logical_not(lt(f, real(kInfinity))).str(), "!(f < inf)");
  EXPECT_EQ(min(f, real(1)).str(), "Min(f, 1.0)");
  EXPECT_EQ((floor(f) * 2 + n).str(), "n + 2*Floor(f)");
  for (const char* text :
       {"f*(-0.0)", "Pow(f, 2.5) + Abs(g)", "Same(f, nan)", "IsInteger(f*g)", "Round(f) <= 3 && !(f < g)", "f - g - f",
        "f/g/f", "f/(g*f)", "-f*g", "-(f*g)", "1e-300*f", "Max(f, g, 2.0)", "-inf + f", "Pow(2, n)", "Abs(k - 3)",
        "(f < g) + n <= 3", "f == g || f != 1.0", "Tanh(Sqrt(f))"}) {
    Expr parsed = pool.parse(text);
    EXPECT_EQ(pool.parse(parsed.str()), parsed) << text << " → " << parsed.str();
  }
  EXPECT_EQ(error_of([&] { pool.parse("FloorDiv(f, 2)"); }),
            "[parse] expected a function of 2 such operands at position 0 of \"FloorDiv(f, 2)\", got \"FloorDiv(f, \"");
}

// A tree as an expression and as a function of doubles and integers.
struct NoValue {};
struct Inputs {
  double f[2];
  int64_t i[3];
};
template <typename T>
struct Tree {
  std::function<T(const Inputs&)> direct;
  Expr expr;
};
using Real = Tree<double>;
using Int = Tree<int64_t>;

struct Generator {
  ExprPool& pool;
  std::mt19937& random;

  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random); }

  template <typename Direct>
  Real unary(const Real& a, Expr expr, Direct direct) {
    return {[=](const Inputs& in) { return direct(a.direct(in)); }, expr};
  }
  template <typename T, typename Direct>
  Tree<T> binary(const Real& a, const Real& b, Expr expr, Direct direct) {
    return {[=](const Inputs& in) {
              double x = a.direct(in), y = b.direct(in);
              return static_cast<T>(direct(x, y));
            },
            expr};
  }

  Real real(int depth) {
    if (depth == 0 || pick(6) == 0) {
      static const double kNumbers[] = {0.0, -0.0, 1.0, 0.5, 2.5, -3.0, 0.1, 1e300, kInfinity, 2.0};
      if (pick(3) == 0) {
        double value = kNumbers[pick(10)];
        return {[=](const Inputs&) { return value; }, pool.real_constant(value)};
      }
      if (pick(2) == 0) {
        Int a = integer(0);
        return {[=](const Inputs& in) { return static_cast<double>(a.direct(in)); }, to_real(a.expr)};
      }
      int which = pick(2);
      return {[=](const Inputs& in) { return in.f[which]; }, pool.symbol(which)};
    }
    Real a = real(depth - 1);
    static const std::pair<Op, double (*)(double)> kFunctions[] = {
        {Op::Sqrt, [](double x) { return std::sqrt(x); }}, {Op::Sin, [](double x) { return std::sin(x); }},
        {Op::Cos, [](double x) { return std::cos(x); }},   {Op::Tan, [](double x) { return std::tan(x); }},
        {Op::Sinh, [](double x) { return std::sinh(x); }}, {Op::Cosh, [](double x) { return std::cosh(x); }},
        {Op::Tanh, [](double x) { return std::tanh(x); }}, {Op::Asin, [](double x) { return std::asin(x); }},
        {Op::Acos, [](double x) { return std::acos(x); }}, {Op::Atan, [](double x) { return std::atan(x); }},
        {Op::Exp, [](double x) { return std::exp(x); }},   {Op::Log, [](double x) { return std::log(x); }},
        {Op::Exp2, [](double x) { return std::exp2(x); }}, {Op::Log2, [](double x) { return std::log2(x); }},
    };
    switch (pick(12)) {
      case 0: {
        auto [op, direct] = kFunctions[pick(14)];
        return unary(a, call(op, a.expr), direct);
      }
      case 1: return unary(a, -a.expr, [](double x) { return -x; });
      case 2: return unary(a, abs(a.expr), [](double x) { return std::fabs(x); });
      case 3: {
        Int whole = integer(depth - 1);
        return {[=](const Inputs& in) { return static_cast<double>(whole.direct(in)); }, to_real(whole.expr)};
      }
      default: break;
    }
    Real b = real(depth - 1);
    switch (pick(8)) {
      case 0:
      case 1: return binary<double>(a, b, a.expr + b.expr, [](double x, double y) { return x + y; });
      case 2: return binary<double>(a, b, a.expr - b.expr, [](double x, double y) { return x - y; });
      case 3: return binary<double>(a, b, a.expr * b.expr, [](double x, double y) { return x * y; });
      case 4: return binary<double>(a, b, true_div(a.expr, b.expr), [](double x, double y) { return x / y; });
      case 5: return binary<double>(a, b, pow(a.expr, b.expr), [](double x, double y) { return std::pow(x, y); });
      case 6: return binary<double>(a, b, min(a.expr, b.expr), [](double x, double y) { return y < x ? y : x; });
      default: return binary<double>(a, b, max(a.expr, b.expr), [](double x, double y) { return x < y ? y : x; });
    }
  }

  Int integer(int depth) {
    if (depth == 0 || pick(5) == 0) {
      int which = pick(4);
      if (which == 3) {
        int64_t value = pick(9) - 3;
        return {[=](const Inputs&) { return value; }, pool.constant(value)};
      }
      return {[=](const Inputs& in) { return in.i[which]; }, pool.symbol(which + 2)};
    }
    if (pick(2) == 0) {
      Real a = real(depth - 1);
      int which = pick(4);
      Expr expr = which == 0 ? floor(a.expr) : which == 1 ? ceil(a.expr) : which == 2 ? round(a.expr) : trunc(a.expr);
      return {[=](const Inputs& in) {
                double x = a.direct(in);
                double rounded = which == 0   ? std::floor(x)
                                 : which == 1 ? std::ceil(x)
                                 : which == 2 ? std::round(x)
                                              : std::trunc(x);
                if (which == 2 && std::fabs(x - std::trunc(x)) == 0.5) rounded = 2 * std::round(x / 2);
                if (!(std::fabs(rounded) < 9e18)) throw NoValue();
                return static_cast<int64_t>(rounded);
              },
              expr};
    }
    Int a = integer(depth - 1), b = integer(depth - 1);
    switch (pick(4)) {
      case 0:
        return {[=](const Inputs& in) {
                  int64_t sum;
                  if (__builtin_add_overflow(a.direct(in), b.direct(in), &sum)) throw NoValue();
                  return sum;
                },
                a.expr + b.expr};
      case 1:
        return {[=](const Inputs& in) {
                  int64_t product;
                  if (__builtin_mul_overflow(a.direct(in), b.direct(in), &product)) throw NoValue();
                  return product;
                },
                a.expr * b.expr};
      case 2: return {[=](const Inputs& in) { return std::abs(a.direct(in)); }, abs(a.expr)};
      default: {
        int64_t exponent = pick(4);
        return {[=](const Inputs& in) {
                  int64_t power = 1, base = a.direct(in);
                  for (int64_t i = 0; i < exponent; ++i)
                    if (__builtin_mul_overflow(power, base, &power)) throw NoValue();
                  return power;
                },
                pow(a.expr, pool.constant(exponent))};
      }
    }
  }

  Int condition(int depth) {
    if (depth > 2 && pick(2) == 0) {
      Int a = condition(depth - 1), b = condition(depth - 1);
      switch (pick(3)) {
        case 0:
          return {[=](const Inputs& in) { return int64_t{(a.direct(in) != 0) & (b.direct(in) != 0)}; },
                  logical_and(a.expr, b.expr)};
        case 1:
          return {[=](const Inputs& in) { return int64_t{(a.direct(in) != 0) | (b.direct(in) != 0)}; },
                  logical_or(a.expr, b.expr)};
        default: return {[=](const Inputs& in) { return int64_t{a.direct(in) == 0}; }, logical_not(a.expr)};
      }
    }
    Real a = real(depth - 1), b = pick(2) ? real(depth - 1) : real(0);
    switch (pick(6)) {
      case 0: return binary<int64_t>(a, b, eq(a.expr, b.expr), [](double x, double y) { return x == y; });
      case 1: return binary<int64_t>(a, b, ne(a.expr, b.expr), [](double x, double y) { return x != y; });
      case 2: return binary<int64_t>(a, b, lt(a.expr, b.expr), [](double x, double y) { return x < y; });
      case 3: return binary<int64_t>(a, b, ge(a.expr, b.expr), [](double x, double y) { return x >= y; });
      case 4: return binary<int64_t>(a, b, same(a.expr, b.expr), [](double x, double y) { return same_bits(x, y); });
      default:
        return binary<int64_t>(a, a, is_integer(a.expr),
                               [](double x, double) { return std::isfinite(x) && x == std::trunc(x); });
    }
  }
};

// Doubles of every kind, sizes that are small and large.
std::vector<Inputs> samples(std::mt19937& random) {
  std::vector<Inputs> list;
  const double reals[] = {0.0, -0.0, 1.0, 0.5, -2.5, 3.25, 1e18, 1e-310, kInfinity, -kInfinity, kNan, 7.0, -0.3, 1e300};
  auto pick = [&](int count) { return std::uniform_int_distribution<int>(0, count - 1)(random); };
  for (int i = 0; i < 40; ++i) {
    int64_t large = int64_t{1} << pick(47);
    list.push_back({{reals[pick(14)], reals[pick(14)]},
                    {2 + (pick(4) ? pick(20) : large), pick(30) - 10,
                     pick(4) ? pick(200) - 100 : (pick(2) ? large * 3 : -large * 31 + 1)}});
  }
  return list;
}

TEST(RealRandomTest, ProgramsAgreeWithDoubles) {
  std::mt19937 random(77);
  int compared = 0, exact = 0;
  for (int round = 0; round < 12; ++round) {
    ExprPool pool;
    pool.real_symbol("f");
    pool.real_symbol("g");
    pool.mark_size(pool.symbol("s", {2, Range::kMax}));
    pool.symbol("i", {-10, 20});
    pool.symbol("k");
    Generator generator{pool, random};
    std::vector<Inputs> inputs = samples(random);
    ExprPool other;
    std::unordered_map<int32_t, Expr> renamed;
    for (int32_t id = 0; id < 5; ++id)
      renamed[id] = id < 2 ? other.real_symbol("x" + std::to_string(id)) : other.symbol("x" + std::to_string(id));
    auto check = [&]<typename T>(const Tree<T>& tree) {
      ASSERT_EQ(pool.parse(tree.expr.str()), tree.expr) << tree.expr.str();
      Expr simple = pool.simplify(tree.expr), moved = other.import(tree.expr, renamed);
      ASSERT_EQ(tree.expr.is_real(), (std::is_same_v<T, double>));
      Expr here[] = {tree.expr, simple};
      ExprProgram program(here);
      exact += !tree.expr.is_real() && simple.op() != Op::Constant;
      for (const Inputs& in : inputs) {
        T expected;
        try {
          expected = tree.direct(in);
        } catch (NoValue) {
          continue;
        }
        std::vector<int64_t> values = {std::bit_cast<int64_t>(in.f[0]), std::bit_cast<int64_t>(in.f[1]), in.i[0],
                                       in.i[1], in.i[2]};
        int64_t got[3];
        if (!program.try_run(values, {got, 2})) continue;  // an integer overflowed on the way
        got[2] = evaluate(moved, values);
        ++compared;
        auto right = [&](int64_t bits) {
          if constexpr (std::is_same_v<T, double>)
            return same_bits(std::bit_cast<double>(bits), expected);
          else
            return bits == expected;
        };
        ASSERT_TRUE(right(got[0]) && right(got[1]) && right(got[2]))
            << tree.expr.str() << "\n"
            << simple.str() << "\nexpected " << expected << " at " << in.f[0] << " " << in.f[1] << " " << in.i[0] << " "
            << in.i[1] << " " << in.i[2];
        if constexpr (std::is_same_v<T, double>) {
          RealRange range = pool.real_range(tree.expr);
          ASSERT_TRUE(std::isnan(expected) ? range.maybe_nan : range.min <= expected && expected <= range.max)
              << tree.expr.str() << " = " << expected;
        } else {
          Range range = pool.range(tree.expr);
          ASSERT_TRUE(range.min <= expected && expected <= range.max) << tree.expr.str() << " = " << expected;
        }
      }
    };
    for (int i = 0; i < 120; ++i) {
      ASSERT_NO_FATAL_FAILURE(check(generator.real(4)));
      ASSERT_NO_FATAL_FAILURE(check(generator.integer(4)));
      ASSERT_NO_FATAL_FAILURE(check(generator.condition(4)));
    }
  }
  EXPECT_GT(compared, 100000);
  EXPECT_GT(exact, 500);
}

}  // namespace
}  // namespace tenon::sym
