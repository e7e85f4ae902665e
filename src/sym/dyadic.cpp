// Reals that are known to be an integer over a power of two, with a numerator of at most 2^53: a double holds such a
// number exactly, so arithmetic among them is that of integers, and so are their comparisons and roundings.
#include "pool.h"
#include "real_math.h"

#include <bit>

namespace tenon::sym {
namespace {

constexpr int64_t kExact = int64_t{1} << 53;  // doubles hold all integers up to here
constexpr int kMaxShift = 52;

bool within(Range r, int64_t limit) { return -limit <= r.min && r.max <= limit; }

// value * 2^shift, which is exact; nothing if it is no integer within 2^53.
std::optional<int64_t> scaled_integer(double value, int shift) {
  double scaled = std::ldexp(value, shift);
  if (!has_no_fraction(scaled) || std::fabs(scaled) > static_cast<double>(kExact)) return std::nullopt;
  return static_cast<int64_t>(scaled);
}

}  // namespace

std::optional<ExprPool::State::Dyadic> ExprPool::State::exact(Expr numerator, int shift) {
  if (numerator.node()->opaque || shift > kMaxShift || !within(ordinary_range(numerator), kExact)) return std::nullopt;
  return Dyadic{numerator, shift};
}

std::optional<std::array<Expr, 2>> ExprPool::State::align(const Dyadic& a, const Dyadic& b) {
  int shift = std::max(a.shift, b.shift);
  std::array<Expr, 2> both = {mul(a.numerator, constant(int64_t{1} << (shift - a.shift))),
                              mul(b.numerator, constant(int64_t{1} << (shift - b.shift)))};
  if (both[0].node()->opaque || both[1].node()->opaque) return std::nullopt;
  return both;
}

std::optional<ExprPool::State::Dyadic> ExprPool::State::dyadic(Expr real) {
  // Arguments first, so that the depth of an expression is no matter.
  post_order(
      real, [this](Expr e) { return e.is_real() && !dyadics.contains(e); },
      [this](Expr e) {
        if (dyadics.contains(e)) return;
        std::optional<Dyadic> result = dyadic_uncached(e);
        dyadics.emplace(e, result);
      });
  return dyadics.at(real);
}

std::optional<ExprPool::State::Dyadic> ExprPool::State::dyadic_uncached(Expr real) {
  std::span<const Expr> args = real.args();
  if (real.is_real_constant()) {
    double value = real.real_constant();
    for (int shift = 0; shift <= kMaxShift; ++shift)
      if (std::optional<int64_t> numerator = scaled_integer(value, shift)) return Dyadic{constant(*numerator), shift};
    return std::nullopt;
  }
  if (real.op() == Op::ToReal) return exact(args[0], 0);
  if (args.empty()) return std::nullopt;
  std::optional<Dyadic> a = dyadics.at(args[0]);
  if (!a) return std::nullopt;
  if (real.op() == Op::RealNeg) return exact(negate(a->numerator), a->shift);
  if (real.op() == Op::RealAbs) return exact(abs(a->numerator), a->shift);
  if (args.size() < 2) return std::nullopt;
  std::optional<Dyadic> b = dyadics.at(args[1]);
  if (!b) return std::nullopt;
  if (real.op() == Op::RealMul) return exact(mul(a->numerator, b->numerator), a->shift + b->shift);
  std::optional<std::array<Expr, 2>> both = align(*a, *b);
  if (!both) return std::nullopt;
  auto [x, y] = *both;
  int shift = std::max(a->shift, b->shift);
  switch (real.op()) {
    case Op::RealAdd: return exact(add(x, y), shift);
    case Op::RealSub: return exact(add(x, y, -1), shift);
    case Op::RealMin: return exact(extremum(Op::Min, x, y), shift);
    case Op::RealMax: return exact(extremum(Op::Max, x, y), shift);
    case Op::RealDiv: {
      // By a power of two: n / 2^k / 2^-s.
      if (y.is_constant() && y.constant() > 0 && std::has_single_bit(static_cast<uint64_t>(y.constant())))
        return exact(x, std::countr_zero(static_cast<uint64_t>(y.constant())));
      // Without a rest. A zero divisor would make it infinite.
      if (!within(ordinary_range(x), kExact) || !within(ordinary_range(y), kExact)) return std::nullopt;
      if (Range divisor = range(y); divisor.min <= 0 && divisor.max >= 0) return std::nullopt;
      if (!mod(x, y).is_constant(0)) return std::nullopt;
      return exact(floor_div(x, y), 0);
    }
    default: return std::nullopt;
  }
}

Expr ExprPool::State::compare_exactly(Op op, Expr a, Expr b) {
  auto with = [this](Op of, Expr x, Expr y) {
    switch (of) {
      case Op::RealLt: return le(add_raw(x, constant(1)), y);
      case Op::RealLe: return le(x, y);
      case Op::RealNe: return equal(Op::Ne, x, y);
      default: return equal(Op::Eq, x, y);
    }
  };
  // Against a constant, whatever it is: only its place among the multiples of 2^-shift counts.
  for (bool left : {false, true}) {
    Expr number = left ? a : b;
    if (!number.is_real_constant()) continue;
    // An exact zero may have either sign.
    if (op == Op::Same && number.real_constant() == 0) return Expr();
    std::optional<Dyadic> other = dyadic(left ? b : a);
    if (!other) return Expr();
    double scaled = std::ldexp(number.real_constant(), other->shift);
    if (!(std::fabs(scaled) <= static_cast<double>(kExact))) return Expr();
    bool whole = has_no_fraction(scaled);
    fire(whole ? Rule::DyadicCompare : Rule::DyadicCompareBetween);
    if (whole) {
      Expr limit = constant(static_cast<int64_t>(scaled));
      return left ? with(op, limit, other->numerator) : with(op, other->numerator, limit);
    }
    if (op == Op::RealEq || op == Op::Same) return constant(0);
    if (op == Op::RealNe) return constant(1);
    Expr below = constant(static_cast<int64_t>(std::floor(scaled)));
    return left ? with(Op::RealLt, below, other->numerator) : with(Op::RealLe, other->numerator, below);
  }
  if (op == Op::Same) return Expr();
  std::optional<Dyadic> x = dyadic(a), y = dyadic(b);
  if (!x || !y) return Expr();
  std::optional<std::array<Expr, 2>> both = align(*x, *y);
  if (!both) return Expr();
  fire(Rule::DyadicCompare);
  return with(op, (*both)[0], (*both)[1]);
}

Expr ExprPool::State::round_exactly(Op op, Expr a) {
  if (std::optional<Dyadic> parts = dyadic(a)) {
    Expr n = parts->numerator, unit = constant(int64_t{1} << parts->shift);
    fire(Rule::DyadicRound);
    if (parts->shift == 0) return n;
    if (op == Op::Floor) return floor_div(n, unit);
    if (op == Op::Ceil) return negate(floor_div(negate(n), unit));
    if (op == Op::Trunc && positive(n)) return floor_div(n, unit);
    if (op == Op::Trunc && range(n).max <= 0) return negate(floor_div(negate(n), unit));
    return Expr();
  }
  // A quotient of positive integers is at least 1/b away from any integer that it is not; while a + b <= 2^53 that is
  // more than half the distance of the doubles there, so that rounding reaches no integer.
  if (a.op() != Op::RealDiv || op == Op::Round) return Expr();
  std::optional<Dyadic> x = dyadic(a.args()[0]), y = dyadic(a.args()[1]);
  if (!x || !y) return Expr();
  std::optional<std::array<Expr, 2>> both = align(*x, *y);
  if (!both || !positive((*both)[0]) || !positive((*both)[1])) return Expr();
  auto [n, d] = *both;
  if (!within(ordinary_range(add_raw(n, d)), kExact)) return Expr();
  fire(Rule::QuotientRound);
  if (op == Op::Ceil) return negate(floor_div(negate(n), d));
  return floor_div(n, d);
}

}  // namespace tenon::sym
