// The rules by which exact reals become integers, proved by Z3 on floating point with few bits (5 instead of 53, so
// that integers are exact up to 32 instead of 2^53), and tried exhaustively on doubles that are rounded to 11 bits.
#include "../../../src/sym/pool.h"

#include <gtest/gtest.h>

#include <z3++.h>

#include <cmath>
#include <functional>

namespace tenon::sym {
namespace {

constexpr int kPrecision = 5, kExact = 1 << kPrecision;
constexpr unsigned kBits = 12;  // of the integers beside them

struct Proof {
  z3::context context;
  z3::solver solver{context};
  z3::sort real{context, Z3_mk_fpa_sort(context, 5, kPrecision)};

  z3::expr integer(const char* name) { return context.bv_const(name, kBits); }
  z3::expr number(int value) { return context.bv_val(value, kBits); }
  z3::expr wrap(Z3_ast ast) { return z3::expr(context, ast); }
  z3::expr mode(Z3_ast (*make)(Z3_context)) { return wrap(make(context)); }
  z3::expr nearest() { return mode(Z3_mk_fpa_rne); }
  z3::expr to_real(const z3::expr& n) { return wrap(Z3_mk_fpa_to_fp_signed(context, nearest(), n, real)); }
  z3::expr add(const z3::expr& a, const z3::expr& b) { return wrap(Z3_mk_fpa_add(context, nearest(), a, b)); }
  z3::expr mul(const z3::expr& a, const z3::expr& b) { return wrap(Z3_mk_fpa_mul(context, nearest(), a, b)); }
  z3::expr div(const z3::expr& a, const z3::expr& b) { return wrap(Z3_mk_fpa_div(context, nearest(), a, b)); }
  z3::expr equal(const z3::expr& a, const z3::expr& b) { return wrap(Z3_mk_fpa_eq(context, a, b)); }
  z3::expr less(const z3::expr& a, const z3::expr& b) { return wrap(Z3_mk_fpa_lt(context, a, b)); }
  // As an integer.
  z3::expr round(Z3_ast (*make)(Z3_context), const z3::expr& x) {
    return wrap(Z3_mk_fpa_to_sbv(context, mode(make), x, kBits));
  }
  // n / 2^shift
  z3::expr dyadic(const z3::expr& n, int shift) { return div(to_real(n), to_real(number(1 << shift))); }
  z3::expr within(const z3::expr& n, int limit = kExact) { return n >= -limit && n <= limit; }

  bool holds(const z3::expr& when, const z3::expr& claim) {
    solver.reset();
    solver.add(when && !claim);
    return solver.check() == z3::unsat;
  }
};

TEST(RealRulesTest, DyadicArithmeticIsExact) {
  Proof p;
  z3::expr a = p.integer("a"), b = p.integer("b");
  z3::expr both = p.within(a) && p.within(b);
  for (int shift : {0, 2}) {
    EXPECT_TRUE(p.holds(both && p.within(a + b),
                        p.equal(p.add(p.dyadic(a, shift), p.dyadic(b, shift)), p.dyadic(a + b, shift))));
    EXPECT_TRUE(
        p.holds(both && p.within(a * b), p.equal(p.mul(p.dyadic(a, shift), p.to_real(b)), p.dyadic(a * b, shift))));
    EXPECT_TRUE(p.holds(both, p.less(p.dyadic(a, shift), p.dyadic(b, shift)) == (a < b)));
    EXPECT_TRUE(p.holds(p.within(a), p.round(Z3_mk_fpa_rtn, p.dyadic(a, shift)) == z3::ashr(a, shift)));
    EXPECT_TRUE(p.holds(p.within(a), p.round(Z3_mk_fpa_rtp, p.dyadic(a, shift)) == -z3::ashr(-a, shift)));
    z3::expr whole = p.equal(p.to_real(p.round(Z3_mk_fpa_rtz, p.dyadic(a, shift))), p.dyadic(a, shift));
    EXPECT_TRUE(p.holds(p.within(a), whole == ((a & ((1 << shift) - 1)) == 0)));
  }
  // Beyond the bound it is not so.
  EXPECT_FALSE(p.holds(
      both && p.within(a + b, 2 * kExact),
      p.equal(p.add(p.to_real(a), p.to_real(b)), p.to_real(a + b)) && p.less(p.to_real(a + b - 1), p.to_real(a + b))));
}

TEST(RealRulesTest, AConstantBetweenIntegers) {
  Proof p;
  z3::expr n = p.integer("n");
  z3::expr c = p.context.constant("c", p.real), below = p.round(Z3_mk_fpa_rtn, c);
  z3::expr small = p.less(p.to_real(p.number(-kExact)), c) && p.less(c, p.to_real(p.number(kExact)));
  z3::expr when = p.within(n) && small && !p.equal(p.to_real(below), c);
  EXPECT_TRUE(p.holds(when, p.less(p.to_real(n), c) == (n <= below)));
  EXPECT_TRUE(p.holds(when, p.less(c, p.to_real(n)) == (n > below)));
  EXPECT_TRUE(p.holds(when, !p.equal(p.to_real(n), c)));
}

TEST(RealRulesTest, QuotientsRoundAsIntegersDo) {
  Proof p;
  z3::expr a = p.integer("a"), b = p.integer("b");
  z3::expr when = a >= 0 && a <= kExact && b >= 1 && b <= kExact && a + b <= kExact;
  z3::expr quotient = p.div(p.to_real(a), p.to_real(b));
  EXPECT_TRUE(p.holds(when, p.round(Z3_mk_fpa_rtn, quotient) == z3::udiv(a, b)));
  EXPECT_TRUE(p.holds(when, p.round(Z3_mk_fpa_rtp, quotient) == z3::udiv(a + b - 1, b)));
}

// To 11 bits: a quotient of 11-bit integers, rounded to 53 bits first, is not rounded twice.
double to_half_precision(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 11)), exponent - 11);
}

TEST(RealRulesTest, QuotientsOfAllSmallIntegers) {
  constexpr int kLimit = 1 << 11;
  int wrong_beyond = 0;
  for (int b = 1; b <= kLimit; ++b) {
    for (int a = 0; a <= kLimit; ++a) {
      double quotient = to_half_precision(static_cast<double>(a) / b);
      bool right = std::floor(quotient) == a / b && std::ceil(quotient) == (a + b - 1) / b;
      if (a + b <= kLimit)
        ASSERT_TRUE(right) << a << " / " << b;
      else
        wrong_beyond += !right;
    }
  }
  RecordProperty("wrong_beyond_the_bound", wrong_beyond);
}

TEST(RealRulesTest, AreUsed) {
  ExprPool pool;
  pool.mark_size(pool.symbol("n", {2, Range::kMax}));
  pool.mark_size(pool.symbol("m", {0, Range::kMax}));
  PoolState& state = PoolAccess::state(pool);
  for (auto [rule, from, to] : {std::tuple{Rule::DyadicIsInteger, "IsInteger(ToReal(n)/2.0)", "Mod(n, 2) == 0"},
                                {Rule::DyadicCompare, "ToReal(n)*0.5 < ToReal(m)", "n < 2*m"},
                                {Rule::DyadicCompareBetween, "ToReal(n) <= 3.5", "n <= 3"},
                                {Rule::DyadicRound, "Ceil(ToReal(n)*2.5)", "-FloorDiv(-5*n, 2)"},
                                {Rule::QuotientRound, "Floor(ToReal(m)/ToReal(n))", "FloorDiv(m, n)"}}) {
    uint64_t before = state.fired[static_cast<size_t>(rule)];
    EXPECT_EQ(pool.parse(from), pool.parse(to)) << from << " is " << pool.parse(from).str();
    EXPECT_GT(state.fired[static_cast<size_t>(rule)], before) << from;
  }
}

}  // namespace
}  // namespace tenon::sym
