// Reals: what holds for every double, NaN and the zero's sign included. Nothing is rearranged.
#include "pool.h"
#include "real_math.h"

#include <bit>

namespace tenon::sym {
namespace {

bool is_value(Expr e, double value) {
  return e.is_real_constant() && std::bit_cast<int64_t>(e.real_constant()) == std::bit_cast<int64_t>(value);
}

// The value as a 0/1 constant, if the ranges tell.
std::optional<bool> compare_ranges(Op op, const RealRange& a, const RealRange& b) {
  bool maybe_nan = a.maybe_nan || b.maybe_nan, apart = a.max < b.min || b.max < a.min;
  switch (op) {
    case Op::RealLt:
      if (a.min >= b.max) return false;
      return a.max < b.min && !maybe_nan ? std::optional(true) : std::nullopt;
    case Op::RealLe:
      if (a.min > b.max) return false;
      return a.max <= b.min && !maybe_nan ? std::optional(true) : std::nullopt;
    case Op::RealEq: return apart ? std::optional(false) : std::nullopt;
    case Op::RealNe: return apart ? std::optional(true) : std::nullopt;
    default: return apart && !(a.maybe_nan && b.maybe_nan) ? std::optional(false) : std::nullopt;
  }
}

}  // namespace

Expr ExprPool::State::real_constant(double value) {
  // One NaN, so that equal expressions are one node.
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  return intern(Op::RealConstant, {}, std::bit_cast<int64_t>(value));
}

Expr ExprPool::State::settle_real(Expr node) {
  if (real_values.empty()) return node;
  auto found = real_values.find(node);
  return found == real_values.end() ? node : found->second;
}

Expr ExprPool::State::settle_condition(Expr node) {
  if (truths.empty()) return node;
  if (truths.contains(node)) return constant(1);
  Expr negation = node.op() == Op::RealEq   ? intern(Op::RealNe, node.args())
                  : node.op() == Op::RealNe ? intern(Op::RealEq, node.args())
                                            : intern(Op::Not, {&node, 1});
  return truths.contains(negation) ? constant(0) : node;
}

Expr ExprPool::State::to_real(Expr a) {
  if (a.is_real()) return a;
  if (a.is_constant()) return real_constant(static_cast<double>(a.constant()));
  return settle_real(intern(Op::ToReal, {&a, 1}));
}

Expr ExprPool::State::real_unary(Op op, Expr a) {
  a = to_real(a);
  if (a.is_real_constant()) return real_constant(apply_unary(op, a.real_constant()));
  if (op == Op::RealNeg && a.op() == Op::RealNeg) return a.args()[0];
  if (op == Op::RealAbs) {
    if (a.op() == Op::RealAbs) return a;
    if (a.op() == Op::RealNeg) return real_unary(op, a.args()[0]);
    // An integer is no negative zero.
    if (a.op() == Op::ToReal && positive(a.args()[0])) return a;
  }
  return settle_real(intern(op, {&a, 1}));
}

Expr ExprPool::State::real_binary(Op op, Expr a, Expr b) {
  a = to_real(a);
  b = to_real(b);
  if (a.is_real_constant() && b.is_real_constant())
    return real_constant(apply_binary(op, a.real_constant(), b.real_constant()));
  switch (op) {
    case Op::RealAdd:
      if (is_value(b, -0.0) || (is_value(b, 0.0) && a.op() == Op::ToReal)) return a;
      if (is_value(a, -0.0) || (is_value(a, 0.0) && b.op() == Op::ToReal)) return b;
      break;
    case Op::RealSub:
      if (is_value(b, 0.0)) return a;
      break;
    case Op::RealMul:
      if (is_value(b, 1.0)) return a;
      if (is_value(a, 1.0)) return b;
      break;
    case Op::RealDiv:
      if (is_value(b, 1.0)) return a;
      break;
    case Op::RealPow:
      if (is_value(b, 1.0)) return a;
      if (is_value(a, 1.0) || is_value(b, 0.0) || is_value(b, -0.0)) return real_constant(1.0);
      break;
    default:  // RealMin, RealMax
      if (a == b) return a;
      break;
  }
  Expr args[] = {a, b};
  return settle_real(intern(op, args));
}

Expr ExprPool::State::real_compare(Op op, Expr a, Expr b) {
  a = to_real(a);
  b = to_real(b);
  if (a.is_real_constant() && b.is_real_constant())
    return constant(apply_comparison(op, a.real_constant(), b.real_constant()));
  if (a == b && op == Op::Same) return constant(1);
  if (a == b && op == Op::RealLt) return constant(0);
  if (a == b && !real_range(a).maybe_nan) return constant(op != Op::RealNe);
  if (std::optional<bool> known = compare_ranges(op, real_range(a), real_range(b))) return constant(*known);
  if (Expr exactly = compare_exactly(op, a, b); exactly.defined()) return exactly;
  bool symmetric = op == Op::RealEq || op == Op::RealNe || op == Op::Same;
  if (symmetric && (a.is_real_constant() || (!b.is_real_constant() && compare(a, b) > 0))) std::swap(a, b);
  Expr args[] = {a, b};
  return settle_condition(intern(op, args));
}

Expr ExprPool::State::same(Expr a, Expr b) {
  return a.is_real() || b.is_real() ? real_compare(Op::Same, a, b) : equal(Op::Eq, a, b);
}

Expr ExprPool::State::round_to_integer(Op op, Expr a) {
  if (!a.is_real()) return a;
  int64_t result = 0;
  if (a.is_real_constant() && apply_rounding(op, a.real_constant(), result)) return constant(result);
  if (Expr exactly = round_exactly(op, a); exactly.defined()) return exactly;
  return settle(intern(op, {&a, 1}));
}

Expr ExprPool::State::is_integer(Expr a) {
  if (!a.is_real() || a.op() == Op::ToReal) return constant(1);
  if (a.is_real_constant()) return constant(has_no_fraction(a.real_constant()));
  if (a.op() == Op::RealNeg || a.op() == Op::RealAbs) return is_integer(a.args()[0]);
  if (std::optional<Dyadic> parts = dyadic(a)) {
    fire(Rule::DyadicIsInteger);
    return equal(Op::Eq, mod(parts->numerator, constant(int64_t{1} << parts->shift)), constant(0));
  }
  return settle_condition(intern(Op::IsInteger, {&a, 1}));
}

// Besides what follows from a comparison of reals: its other forms, which are looked up by themselves.
void ExprPool::State::learn_real(Expr condition) {
  Expr inner = condition.op() == Op::Not ? condition.args()[0] : condition;
  std::span<const Expr> args = inner.args();
  auto holds = [this](Op op, Expr a, Expr b) {
    Expr pair[] = {a, b};
    truths.insert(intern(op, pair));
  };
  auto fails = [this](Op op, Expr a, Expr b) {
    Expr pair[] = {a, b};
    Expr node = intern(op, pair);
    truths.insert(intern(Op::Not, {&node, 1}));
  };
  bool exchanged = condition.op() == Op::Not;
  switch (inner.op()) {
    case Op::RealLt:
    case Op::RealLe: {
      bool strict = inner.op() == Op::RealLt;
      if (exchanged) {
        if (!strict) fails(Op::RealLt, args[0], args[1]);
      } else {
        if (strict) {
          holds(Op::RealLe, args[0], args[1]);
          fails(Op::RealLe, args[1], args[0]);
          holds(Op::RealNe, args[0], args[1]);
          holds(Op::RealNe, args[1], args[0]);
        }
        fails(Op::RealLt, args[1], args[0]);
      }
      break;
    }
    case Op::RealEq:
      for (int turn : {0, 1}) {
        holds(Op::RealLe, args[static_cast<size_t>(turn)], args[static_cast<size_t>(1 - turn)]);
        fails(Op::RealLt, args[static_cast<size_t>(turn)], args[static_cast<size_t>(1 - turn)]);
      }
      // Equal numbers other than zeros have equal bits.
      if (args[1].is_real_constant() && args[1].real_constant() != 0) real_values.emplace(args[0], args[1]);
      break;
    case Op::Same:
      if (!exchanged && args[1].is_real_constant()) real_values.emplace(args[0], args[1]);
      break;
    default: break;
  }
}

namespace {

PoolState& common_state(Expr a, Expr b) {
  TENON_ASSERT(a.defined() && b.defined(), "an operand is undefined");
  TENON_ASSERT(&a.pool() == &b.pool(), "{} and {} belong to different pools", a.str(), b.str());
  return PoolAccess::state(a);
}

}  // namespace

Expr true_div(Expr a, Expr b) { return common_state(a, b).real_binary(Op::RealDiv, a, b); }
Expr to_real(Expr a) { return PoolAccess::state(a).to_real(a); }
Expr floor(Expr a) { return PoolAccess::state(a).round_to_integer(Op::Floor, a); }
Expr ceil(Expr a) { return PoolAccess::state(a).round_to_integer(Op::Ceil, a); }
Expr round(Expr a) { return PoolAccess::state(a).round_to_integer(Op::Round, a); }
Expr trunc(Expr a) { return PoolAccess::state(a).round_to_integer(Op::Trunc, a); }
Expr same(Expr a, Expr b) { return common_state(a, b).same(a, b); }
Expr is_integer(Expr a) { return PoolAccess::state(a).is_integer(a); }

Expr call(Op function, Expr a) {
  TENON_ASSERT(function >= Op::Sqrt && function <= Op::Log2, "operation {} is no function", static_cast<int>(function));
  return PoolAccess::state(a).real_unary(function, a);
}

}  // namespace tenon::sym
