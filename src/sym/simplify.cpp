// Rebuilding expressions: with what has been learnt since, with other symbols, in another pool.
#include "pool.h"

namespace tenon::sym {

Expr ExprPool::State::rebuild(Op op, std::span<const Expr> args) {
  Expr result = args[0];
  switch (op) {
    case Op::Add:
      for (Expr arg : args.subspan(1)) result = add_raw(result, arg);
      return recombine(result);
    case Op::Mul:
      for (Expr arg : args.subspan(1)) result = mul_raw(result, arg);
      return recombine(result);
    case Op::FloorDiv: return floor_div(args[0], args[1]);
    case Op::Mod: return mod(args[0], args[1]);
    case Op::Min:
    case Op::Max:
      for (Expr arg : args.subspan(1)) result = extremum(op, result, arg);
      return result;
    case Op::Eq:
    case Op::Ne: return equal(op, args[0], args[1]);
    case Op::Lt: return le(add_raw(args[0], constant(1)), args[1]);
    case Op::Le: return le(args[0], args[1]);
    case Op::And:
    case Op::Or:
      for (Expr arg : args.subspan(1)) result = connect(op, result, arg);
      return as_condition(result);
    case Op::Not: return logical_not(args[0]);
    case Op::Abs: return abs(args[0]);
    case Op::Pow: return pow(args[0], args[1]);
    case Op::Floor:
    case Op::Ceil:
    case Op::Round:
    case Op::Trunc: return round_to_integer(op, args[0]);
    case Op::ToReal: return to_real(args[0]);
    case Op::IsInteger: return is_integer(args[0]);
    case Op::Same: return same(args[0], args[1]);
    case Op::RealEq:
    case Op::RealNe:
    case Op::RealLt:
    case Op::RealLe: return real_compare(op, args[0], args[1]);
    case Op::RealAdd:
    case Op::RealSub:
    case Op::RealMul:
    case Op::RealDiv:
    case Op::RealPow:
    case Op::RealMin:
    case Op::RealMax:
      for (Expr arg : args.subspan(1)) result = real_binary(op, result, arg);
      return result;
    case Op::Constant:
    case Op::RealConstant:
    case Op::Symbol: break;
    default: return real_unary(op, args[0]);
  }
  TENON_ASSERT(false, "a leaf is not rebuilt");
}

namespace {

// Rebuilds bottom up; `leaf` gives what a constant or symbol becomes. `leaf` may itself add to `done`.
template <typename Leaf, typename Finish>
Expr transform(PoolState& state, Expr expr, std::unordered_map<Expr, Expr>& done, const Leaf& leaf,
               const Finish& finish) {
  post_order(
      expr, [&](Expr e) { return !done.contains(e); },
      [&](Expr e) {
        if (done.contains(e)) return;
        if (e.args().empty()) {
          Expr made = leaf(e);
          done.emplace(e, made);
          return;
        }
        ExprList args;
        for (Expr arg : e.args()) args.push_back(done.at(arg));
        Expr made = finish(state.rebuild(e.op(), args));
        done.emplace(e, made);
      });
  return done.at(expr);
}

}  // namespace

Expr ExprPool::State::simplify(Expr expr) {
  auto leaf = [this](Expr e) {
    if (!e.is_symbol()) return e;
    if (e.is_real()) return settle_real(e);
    if (Range r = range(e); r.single()) return constant(r.min);
    auto found = solutions.find(e.symbol_id());
    return found == solutions.end() ? e : simplify(found->second);
  };
  auto finish = [this](Expr e) { return e.is_real() ? settle_real(e) : settle(e); };
  // Rules meet their conditions in the order of the arguments; what one pass makes, the next may simplify further.
  for (int pass = 0; pass < 4; ++pass) {
    Expr next = transform(*this, expr, simplified, leaf, finish);
    if (next == expr) break;
    expr = next;
  }
  return expr;
}

Expr ExprPool::simplify(Expr expr) {
  TENON_ASSERT(&expr.pool() == this, "{} belongs to another pool", expr.str());
  return state_->simplify(expr);
}

Expr ExprPool::substitute(Expr expr, const std::unordered_map<int32_t, Expr>& replacements) {
  TENON_ASSERT(&expr.pool() == this, "{} belongs to another pool", expr.str());
  std::unordered_map<Expr, Expr> done;
  auto leaf = [&](Expr e) {
    auto found = e.is_symbol() ? replacements.find(e.symbol_id()) : replacements.end();
    if (found == replacements.end()) return e;
    TENON_ASSERT(found->second.is_real() == e.is_real(), "{} cannot stand for {}", found->second.str(), e.name());
    return found->second;
  };
  return transform(*state_, expr, done, leaf, [](Expr e) { return e; });
}

Expr ExprPool::import(Expr expr, const std::unordered_map<int32_t, Expr>& symbols) {
  std::unordered_map<Expr, Expr> done;
  auto leaf = [&](Expr e) {
    if (e.is_constant()) return constant(e.constant());
    if (e.is_real_constant()) return real_constant(e.real_constant());
    auto found = symbols.find(e.symbol_id());
    TENON_ASSERT(found != symbols.end(), "no expression is given for symbol {} of {}", e.name(), expr.str());
    TENON_ASSERT(&found->second.pool() == this, "{} belongs to another pool", found->second.str());
    TENON_ASSERT(found->second.is_real() == e.is_real(), "{} cannot stand for {}", found->second.str(), e.name());
    return found->second;
  };
  return transform(*state_, expr, done, leaf, [](Expr e) { return e; });
}

}  // namespace tenon::sym
