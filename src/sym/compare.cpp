// Minimum and maximum, comparisons, connectives; and the public operators.
#include "pool.h"

namespace tenon::sym {

Expr ExprPool::State::extremum(Op op, Expr a, Expr b) {
  constexpr size_t kMaxArgs = 16;
  Op opposite = op == Op::Min ? Op::Max : Op::Min;
  int64_t neutral = op == Op::Min ? Range::kMax : Range::kMin;
  if (a.is_constant(neutral)) return b;
  if (b.is_constant(neutral)) return a;
  ExprList args;
  auto gather = [&](Expr e) {
    if (e.op() == op && args.size() + e.args().size() <= kMaxArgs)
      for (Expr arg : e.args()) args.push_back(arg);
    else
      args.push_back(e);
  };
  gather(a);
  gather(b);
  // `x` need not be listed beside `y`.
  auto redundant = [&](Expr x, Expr y) {
    if (x == y) return true;
    if (x.op() == opposite) {
      for (Expr inner : x.args()) {
        if (inner == y) {
          fire(op == Op::Min ? Rule::MinAbsorbs : Rule::MaxAbsorbs);
          return true;
        }
      }
    }
    if (op == Op::Min ? !prove_le(y, x) : !prove_le(x, y)) return false;
    fire(op == Op::Min ? Rule::MinOrdered : Rule::MaxOrdered);
    return true;
  };
  ExprList kept;
  for (Expr x : args) {
    bool drop = false;
    for (size_t i = 0; !drop && i < kept.size(); ++i) drop = redundant(x, kept[i]);
    if (drop) continue;
    for (size_t i = kept.size(); i-- > 0;)
      if (redundant(kept[i], x)) kept.erase(&kept[i]);
    kept.push_back(x);
  }
  if (kept.size() == 1) return kept[0];
  std::sort(kept.begin(), kept.end(), [](Expr x, Expr y) { return compare(x, y) < 0; });
  return settle(intern(op, kept));
}

Expr ExprPool::State::le(Expr a, Expr b) {
  if (a.is_constant(Range::kMin) || b.is_constant(Range::kMax)) return constant(1);
  Expr difference = add(a, b, -1);
  if (difference.is_constant()) return constant(difference.constant() <= 0);
  Sum sum = decompose(difference);
  if (sum.constant == Range::kMin) {
    Expr raw[] = {difference, constant(0)};
    return intern(Op::Le, raw);
  }
  int64_t common = 0;
  for (const Term& term : sum.terms) common = gcd(common, term.coefficient);
  int64_t limit = -sum.constant;
  sum.constant = 0;
  if (common > 1) {
    fire(Rule::LeCommon);
    limit = divide_floor(limit, common);
    for (Term& term : sum.terms) term.coefficient /= common;
  }
  Expr args[] = {build(sum), constant(limit)};
  if (sum.terms.size() == 1 && sum.terms[0].monomial.is_boolean()) {
    // cond <= 0, or -cond <= -1
    int64_t scale = sum.terms[0].coefficient;
    if ((scale == 1 && limit == 0) || (scale == -1 && limit == -1)) {
      fire(Rule::ConditionAsNumber);
      return scale == 1 ? logical_not(sum.terms[0].monomial) : sum.terms[0].monomial;
    }
  }
  if (limit == 0 && args[0].op() == Op::Add && !args[0].node()->opaque) {
    Term factor = common_factor(args[0], args[0]);
    if (!factor.monomial.is_constant(1) && range(factor.monomial).min >= 1) {
      fire(Rule::LeCancel);
      return le(divide_exactly(args[0], {1, factor.monomial}), args[1]);
    }
  }
  if (prove_le(args[0], args[1])) {
    fire(Rule::LeProved);
    return constant(1);
  }
  if (prove_lt(args[1], args[0])) {
    fire(Rule::LeDisproved);
    return constant(0);
  }
  return intern(Op::Le, args);
}

Expr ExprPool::State::equal(Op op, Expr a, Expr b) {
  Expr difference = add(a, b, -1);
  if (difference.is_constant()) return constant((difference.constant() == 0) == (op == Op::Eq));
  Normal n = normal(difference);
  // A condition, as a number, compared with 0 or 1.
  if (n.form.is_boolean() && n.scale != Range::kMin && (n.offset == 0 || n.offset == -n.scale)) {
    fire(Rule::ConditionAsNumber);
    return (n.offset == 0) == (op == Op::Eq) ? logical_not(n.form) : n.form;
  }
  // scale*form + offset == 0
  if (n.offset == Range::kMin) {
    Expr raw[] = {difference, constant(0)};
    return intern(op, raw);
  }
  if (n.offset % n.scale != 0) {
    fire(Rule::EqIndivisible);
    return constant(op != Op::Eq);
  }
  if (n.offset == 0 && n.form.op() == Op::Add) {
    Term common = common_factor(n.form, n.form);
    if (!common.monomial.is_constant(1) && never_zero(common.monomial)) {
      fire(Rule::EqCancel);
      return equal(op, divide_exactly(n.form, {1, common.monomial}), constant(0));
    }
  }
  Expr args[] = {n.form, constant(-n.offset / n.scale)};
  int64_t value = args[1].constant();
  if (excludes(n.form, value) || prove_lt(args[0], args[1]) || prove_lt(args[1], args[0])) {
    fire(Rule::EqDisproved);
    return constant(op != Op::Eq);
  }
  if (prove_le(args[0], args[1]) && prove_le(args[1], args[0])) {
    fire(Rule::EqProved);
    return constant(op == Op::Eq);
  }
  return intern(op, args);
}

Expr ExprPool::State::as_condition(Expr a) {
  if (a.is_constant()) return constant(a.constant() != 0);
  if (a.is_real()) return real_compare(Op::RealNe, a, real_constant(0));
  return a.is_boolean() ? a : equal(Op::Ne, a, constant(0));
}

Expr ExprPool::State::connect(Op op, Expr a, Expr b) {
  constexpr size_t kMaxArgs = 64;
  int64_t neutral = op == Op::And;
  ExprList args;
  for (Expr side : {as_condition(a), as_condition(b)}) {
    if (side.is_constant(neutral)) continue;
    if (side.is_constant()) return side;
    if (side.op() == op && args.size() + side.args().size() <= kMaxArgs)
      for (Expr arg : side.args()) args.push_back(arg);
    else
      args.push_back(side);
  }
  if (args.empty()) return constant(neutral);
  std::sort(args.begin(), args.end(), [](Expr x, Expr y) { return compare(x, y) < 0; });
  args.resize(static_cast<size_t>(std::unique(args.begin(), args.end()) - args.begin()));
  if (args.size() == 1) return args[0];
  // A condition beside its negation.
  for (Expr arg : args) {
    Expr negation = arg.op() == Op::And || arg.op() == Op::Or ? Expr() : logical_not(arg);
    if (std::find(args.begin(), args.end(), negation) != args.end()) return constant(!neutral);
  }
  Expr result = intern(op, args);
  return truths.contains(result) ? constant(1) : result;
}

Expr ExprPool::State::logical_not(Expr a) {
  a = as_condition(a);
  if (a.is_constant()) return constant(!a.constant());
  Key key{Op::Not, a, a};
  if (auto found = memo.find(key); found != memo.end()) return found->second;
  Expr result;
  std::span<const Expr> args = a.args();
  switch (a.op()) {
    case Op::Eq: result = equal(Op::Ne, args[0], args[1]); break;
    case Op::Ne: result = equal(Op::Eq, args[0], args[1]); break;
    case Op::Le: result = le(add_raw(args[1], constant(1)), args[0]); break;
    case Op::And:
    case Op::Or:
      result = constant(a.op() == Op::Or);
      for (Expr arg : args) result = connect(a.op() == Op::And ? Op::Or : Op::And, result, logical_not(arg));
      break;
    case Op::Not: result = args[0]; break;
    case Op::RealEq: result = real_compare(Op::RealNe, args[0], args[1]); break;
    case Op::RealNe: result = real_compare(Op::RealEq, args[0], args[1]); break;
    default: result = settle_condition(intern(Op::Not, {&a, 1}));
  }
  memo.emplace(key, result);
  return result;
}

namespace {

PoolState& common_state(Expr a, Expr b) {
  TENON_ASSERT(a.defined() && b.defined(), "an operand is undefined");
  TENON_ASSERT(&a.pool() == &b.pool(), "{} and {} belong to different pools", a.str(), b.str());
  return PoolAccess::state(a);
}

bool real(Expr a, Expr b) { return a.is_real() || b.is_real(); }

PoolState& integers(const char* what, Expr a, Expr b) {
  TENON_CHECK(!real(a, b), "[{}] expected integers, got {} and {}", what, a.str(), b.str());
  return common_state(a, b);
}

}  // namespace

Expr operator+(Expr a, Expr b) {
  PoolState& state = common_state(a, b);
  return real(a, b) ? state.real_binary(Op::RealAdd, a, b) : state.add(a, b);
}
Expr operator-(Expr a, Expr b) {
  PoolState& state = common_state(a, b);
  return real(a, b) ? state.real_binary(Op::RealSub, a, b) : state.add(a, b, -1);
}
Expr operator*(Expr a, Expr b) {
  PoolState& state = common_state(a, b);
  return real(a, b) ? state.real_binary(Op::RealMul, a, b) : state.mul(a, b);
}
Expr operator-(Expr a) {
  PoolState& state = PoolAccess::state(a);
  return a.is_real() ? state.real_unary(Op::RealNeg, a) : state.negate(a);
}
Expr operator+(Expr a, int64_t b) { return a + a.pool().constant(b); }
Expr operator-(Expr a, int64_t b) { return a - a.pool().constant(b); }
Expr operator*(Expr a, int64_t b) { return a * a.pool().constant(b); }
Expr floor_div(Expr a, Expr b) { return integers("FloorDiv", a, b).floor_div(a, b); }
Expr mod(Expr a, Expr b) { return integers("Mod", a, b).mod(a, b); }
Expr min(Expr a, Expr b) {
  PoolState& state = common_state(a, b);
  return real(a, b) ? state.real_binary(Op::RealMin, a, b) : state.extremum(Op::Min, a, b);
}
Expr max(Expr a, Expr b) {
  PoolState& state = common_state(a, b);
  return real(a, b) ? state.real_binary(Op::RealMax, a, b) : state.extremum(Op::Max, a, b);
}
Expr abs(Expr a) {
  PoolState& state = PoolAccess::state(a);
  return a.is_real() ? state.real_unary(Op::RealAbs, a) : state.abs(a);
}
Expr pow(Expr a, Expr b) {
  PoolState& state = common_state(a, b);
  return real(a, b) ? state.real_binary(Op::RealPow, a, b) : state.pow(a, b);
}
Expr eq(Expr a, Expr b) {
  PoolState& state = common_state(a, b);
  return real(a, b) ? state.real_compare(Op::RealEq, a, b) : state.equal(Op::Eq, a, b);
}
Expr ne(Expr a, Expr b) {
  PoolState& state = common_state(a, b);
  return real(a, b) ? state.real_compare(Op::RealNe, a, b) : state.equal(Op::Ne, a, b);
}
Expr le(Expr a, Expr b) {
  PoolState& state = common_state(a, b);
  return real(a, b) ? state.real_compare(Op::RealLe, a, b) : state.le(a, b);
}
Expr lt(Expr a, Expr b) {
  PoolState& state = common_state(a, b);
  return real(a, b) ? state.real_compare(Op::RealLt, a, b) : state.le(a + 1, b);
}
Expr gt(Expr a, Expr b) { return lt(b, a); }
Expr ge(Expr a, Expr b) { return le(b, a); }
Expr logical_and(Expr a, Expr b) { return common_state(a, b).connect(Op::And, a, b); }
Expr logical_or(Expr a, Expr b) { return common_state(a, b).connect(Op::Or, a, b); }
Expr logical_not(Expr a) { return PoolAccess::state(a).logical_not(a); }

}  // namespace tenon::sym
