#include <tenon/sym/sym_float.h>

#include <gtest/gtest.h>

#include "error_of.h"

#include <bit>
#include <cmath>
#include <random>

namespace tenon::sym {
namespace {

using tenon::testing::error_of;
using tenon::testing::without_lines;

bool same_bits(double a, double b) {
  return std::bit_cast<int64_t>(a) == std::bit_cast<int64_t>(b) || (std::isnan(a) && std::isnan(b));
}

struct SymFloatTest : ::testing::Test {
  Ref<ShapeEnv> env = make_ref<ShapeEnv>();
  ~SymFloatTest() override { ShapeEnv::set_place(""); }
};

TEST_F(SymFloatTest, PlainNumbersStayPlain) {
  SymFloat a = 2.5, b = 4;
  SymInt n = 7;
  EXPECT_EQ((a + b).plain(), 6.5);
  EXPECT_EQ((a - 1).plain(), 1.5);
  EXPECT_EQ((2 * a).plain(), 5.0);
  EXPECT_EQ((n / 2.0).plain(), 3.5);
  EXPECT_EQ((n / SymInt(2)).plain(), 3);
  EXPECT_EQ(true_div(n, 2).plain(), 3.5);
  EXPECT_EQ((n + 0.5).plain(), 7.5);
  EXPECT_EQ((-a).plain(), -2.5);
  EXPECT_EQ(abs(-a).plain(), 2.5);
  EXPECT_EQ(abs(SymInt(-3)).plain(), 3);
  EXPECT_EQ(pow(a, 2).plain(), std::pow(2.5, 2.0));
  EXPECT_EQ(pow(n, 2).plain(), 49);
  EXPECT_EQ(pow(n, 0.5).plain(), std::pow(7.0, 0.5));
  EXPECT_EQ(min(a, n).plain(), 2.5);
  EXPECT_EQ(max(1, a).plain(), 2.5);
  EXPECT_EQ(floor(-a).plain(), -3);
  EXPECT_EQ(ceil(a).plain(), 3);
  EXPECT_EQ(round(a).plain(), 2);
  EXPECT_EQ(round(SymFloat(3.5)).plain(), 4);
  EXPECT_EQ(trunc(-a).plain(), -2);
  EXPECT_EQ(to_int(a).plain(), 2);
  EXPECT_EQ(to_int(SymBool(true)).plain(), 1);
  EXPECT_EQ(to_float(n).plain(), 7.0);
  EXPECT_EQ(sqrt(n).plain(), std::sqrt(7.0));
  EXPECT_EQ(atan(a).plain(), std::atan(2.5));
  EXPECT_TRUE(bool(a < 3 && a > n - 5 && a != b && b == 4.0 && !(a >= 2.6) && is_integer(b)));
  EXPECT_FALSE(bool(is_integer(a)));
  EXPECT_EQ(a.str(), "2.5");
  EXPECT_EQ(b.str(), "4.0");
  a += 1;
  a *= b;
  a -= n;
  a /= 2;
  EXPECT_EQ(a.plain(), 3.5);
  EXPECT_EQ(error_of([&] { floor(SymFloat(std::nan(""))); }),
            "[floor] expected a number that fits 64 bits when rounded, got nan");
  EXPECT_EQ(error_of([&] { pow(n, -1); }), "[pow] expected an exponent of at least 0, got 7 to the power of -1");
  EXPECT_TRUE(std::isinf(true_div(n, 0).plain()));
}

TEST_F(SymFloatTest, SymbolsBuildExpressions) {
  SymFloat f = env->create_real(2.5, "argument a"), u = env->create_unbacked_real();
  SymInt n = env->create_size(8, "size 0 of x");
  EXPECT_EQ(f.str(), "f0");
  EXPECT_EQ(u.str(), "uf0");
  EXPECT_EQ((f * n + 1).str(), "f0*ToReal(s0) + 1.0");
  EXPECT_EQ((f * n + 1).hint(), 21.0);
  EXPECT_EQ((u + n).hint(), std::nullopt);
  EXPECT_EQ(floor(true_div(n, 2)).str(), "FloorDiv(s0, 2)");
  EXPECT_EQ(floor(f).hint(), 2);
  EXPECT_EQ((abs(n - 10)).str(), "Abs(s0 - 10)");
  EXPECT_EQ(pow(n, 2).str(), "s0*s0");
  EXPECT_EQ((to_int(f < 3) + n).hint(), 9);
  EXPECT_FALSE(to_float(n).maybe_constant().has_value());
  EXPECT_TRUE((f + 1).same(f + 1));
  EXPECT_FALSE((f + 1).same(1 + f));
  EXPECT_TRUE(SymFloat(std::nan("")).same(std::nan("")));
  EXPECT_FALSE(SymFloat(0.0).same(-0.0));
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(SymFloatTest, DecisionsAndPins) {
  SymFloat f = env->create_real(2.5, "argument a"), nan = env->create_real(std::nan(""), "argument b");
  SymFloat zero = env->create_real(-0.0, "argument c");
  ShapeEnv::set_place("scale");
  EXPECT_TRUE(bool(f > 2));
  EXPECT_FALSE(bool(f <= 2));   // follows
  EXPECT_FALSE(bool(nan < 1));  // guarded as a negation
  EXPECT_EQ(double(f * 2), 5.0);
  EXPECT_TRUE(std::isnan(double(nan)));
  EXPECT_TRUE(std::signbit(double(zero)));
  EXPECT_EQ(without_lines(env->str()),
            "2.0 < f0  (from: scale)\n!(f1 < 1.0)  (from: scale)\nSame(f0*2.0, 5.0)  (from: scale)\n"
            "Same(f1, nan)  (from: scale)\nSame(f2, -0.0)  (from: scale)\n");
  EXPECT_TRUE(std::isnan(*nan.maybe_constant()));
  EXPECT_EQ((f * 2).maybe_constant(), 5.0);
  EXPECT_EQ(env->guards().size(), 5u);
}

TEST_F(SymFloatTest, AnExactRealPinsItsInteger) {
  SymInt n = env->create_size(8, "x");
  EXPECT_EQ(double(n / 2.0), 4.0);
  EXPECT_EQ(without_lines(env->str()), "s0 == 8  (from: a plain number taken)\n");
}

TEST_F(SymFloatTest, UnbackedReals) {
  SymFloat u = env->create_unbacked_real();
  SymBool flag = env->create_unbacked_bool();
  ShapeEnv::set_place("relu");
  SymBool undecided = u < std::numeric_limits<double>::infinity();
  EXPECT_TRUE(undecided.is_symbolic());
  EXPECT_EQ(without_lines(error_of<DataDependentError>([&] { (void)bool(undecided); })),
            "[relu] expected a condition that sizes decide, got uf0 < inf, which depends on data\n"
            "  uf0: a value from data\n"
            "  to settle it, write check(uf0 < inf) or check(!(uf0 < inf)) before this place");
  EXPECT_EQ(without_lines(error_of<DataDependentError>([&] { (void)double(u); })),
            "[relu] expected a number that is known at capture, got uf0, which depends on data\n"
            "  uf0: a value from data\n"
            "  to settle it, write check(uf0 == ...) before this place");
  EXPECT_EQ(flag.str(), "u0 != 0");
  check(u == 1.5, "scale is one and a half");
  EXPECT_EQ(double(u), 1.5);
  check(flag);
  EXPECT_TRUE(bool(flag));
  EXPECT_TRUE(env->guards().empty());
  ASSERT_EQ(env->deferred_checks().size(), 2u);
  EXPECT_EQ(env->deferred_checks()[0].condition.str(), "uf0 == 1.5");
  EXPECT_NE(env->deferred_checks()[0].where.find("scale is one and a half ("), std::string::npos);
  EXPECT_NE(env->deferred_checks()[0].where.find("sym_float_test.cpp:"), std::string::npos);
  EXPECT_EQ(env->deferred_checks()[1].where.find("the check at "), 0u);
}

TEST_F(SymFloatTest, UserChecksNameTheirLine) {
  int line = __LINE__ + 1;
  std::string text = error_of([&] { check(SymInt(3) > 4, "too few"); });
  std::string place = fmt::format("sym_float_test.cpp:{}", line);
  EXPECT_NE(text.find(place + "): expected a condition that holds, got false"), std::string::npos) << text;
  EXPECT_EQ(text.find("[check] too few ("), 0u);
  SymInt n = env->create_size(8, "size 0 of x");
  line = __LINE__ + 1;
  text = error_of([&] { check(n > 20); });
  place =
      fmt::format("sym_float_test.cpp:{}: expected s0 >= 21, got\n  s0 in [2, inf): size 0 of x, 8 at capture", line);
  EXPECT_NE(text.find(place), std::string::npos) << text;
  check_is_size(3);
  text = error_of([&] { check_is_size(-3); });
  EXPECT_NE(text.find("expected a number of at least 0, got -3"), std::string::npos) << text;
  SymInt u = env->create_unbacked();
  check_is_size(u);
  EXPECT_TRUE(bool(u >= 0));
  EXPECT_EQ(floor(u * 1.5).str(), "FloorDiv(3*u0, 2)");
  ASSERT_EQ(env->deferred_checks().size(), 1u);
}

TEST_F(SymFloatTest, UnbackedSymbolsAreReused) {
  SymInt first = env->create_unbacked();
  SymFloat second = env->create_unbacked_real();
  SymBool third = env->create_unbacked_bool();
  std::vector<int32_t> ids = env->take_fresh();
  EXPECT_EQ(ids, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_TRUE(env->take_fresh().empty());
  {
    ShapeEnv::ReuseUnbacked reuse(*env, ids);
    EXPECT_TRUE(env->create_unbacked({0, 10}).same(first));
    EXPECT_EQ(env->pool().range(first.expr()), (Range{0, 10}));
    {
      int32_t inner[] = {ids[1]};
      ShapeEnv::ReuseUnbacked nested(*env, inner);
      EXPECT_TRUE(env->create_unbacked_real().same(second));
      EXPECT_THROW(env->create_unbacked_real(), InternalError);
    }
    EXPECT_TRUE(env->create_unbacked_real().same(second));
    EXPECT_THROW(env->create_unbacked(), InternalError);  // it was a bool
  }
  EXPECT_EQ(env->take_fresh(), (std::vector<int32_t>{0, 1, 1}));
  EXPECT_EQ(env->create_unbacked().str(), "u2");
  EXPECT_EQ(third.str(), "u1 != 0");
}

// The same steps on plain numbers, on symbols, and on doubles.
TEST_F(SymFloatTest, PlainAndSymbolicGiveTheSameBits) {
  std::mt19937 random(5);
  auto pick = [&](int count) { return std::uniform_int_distribution<int>(0, count - 1)(random); };
  const double hints[] = {2.5, -0.75, 1e-3, 300.0, -0.0, 7.0};
  struct Triple {
    double direct;
    SymFloat plain, symbolic;
  };
  for (int round_of = 0; round_of < 60; ++round_of) {
    std::vector<Triple> values;
    for (double hint : hints) values.push_back({hint, hint, env->create_real(hint, "f")});
    values.push_back({6, SymInt(6), env->create_size(6, "s")});
    for (int step = 0; step < 25; ++step) {
      const Triple a = values[static_cast<size_t>(pick(static_cast<int>(values.size())))];
      const Triple b = values[static_cast<size_t>(pick(static_cast<int>(values.size())))];
      auto all = [&](auto operation) {
        values.push_back(
            {operation(a.direct, b.direct), operation(a.plain, b.plain), operation(a.symbolic, b.symbolic)});
      };
      using std::sqrt, std::sin, std::exp, std::log, std::tanh, std::pow, std::abs, std::acos, std::cosh;
      switch (pick(14)) {
        case 0: all([](auto x, auto y) { return x + y; }); break;
        case 1: all([](auto x, auto y) { return x - y; }); break;
        case 2: all([](auto x, auto y) { return x * y; }); break;
        case 3: all([](auto x, auto y) { return x / y; }); break;
        case 4: all([](auto x, auto y) { return pow(x, y); }); break;
        case 5: all([](auto x, auto) { return sqrt(x); }); break;
        case 6: all([](auto x, auto) { return sin(x); }); break;
        case 7: all([](auto x, auto) { return exp(x); }); break;
        case 8: all([](auto x, auto) { return log(x); }); break;
        case 9: all([](auto x, auto) { return tanh(x); }); break;
        case 10: all([](auto x, auto) { return abs(x); }); break;
        case 11: all([](auto x, auto) { return acos(x); }); break;
        case 12: all([](auto x, auto) { return cosh(x); }); break;
        default: all([](auto x, auto) { return -x; }); break;
      }
      const Triple& made = values.back();
      ASSERT_TRUE(same_bits(made.direct, made.plain.plain())) << made.symbolic.str();
      ASSERT_TRUE(same_bits(made.direct, *made.symbolic.hint())) << made.symbolic.str();
    }
  }
  EXPECT_TRUE(env->guards().empty());
}

}  // namespace
}  // namespace tenon::sym
