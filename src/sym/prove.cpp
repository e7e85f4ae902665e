// Proofs of `e <= 0`. Each step replaces a term of `e` by something that is not smaller; the work is bounded, so a
// failure means nothing.
//
// Where facts have a scope, one is used only to do away with its newest symbol. That respects the scope of loops: `i <
// n`, with `i >= 0`, says that n is positive, but only where i exists, and i is the newer one.
#include "pool.h"

namespace tenon::sym {
namespace {

struct Prover {
  PoolState& state;
  int budget;
  SmallVector<Expr, 24> tried = {};

  bool prove(Expr e, int depth);
  bool by_facts(Expr e, const Term& term, int depth);
  bool by_factor(Expr e, const Term& term, Expr factor, int depth);
  bool by_division(Expr others, const Term& rest, Expr division, int depth);
  bool by_abs(Expr others, const Term& rest, Expr x, int depth);
  bool by_extremum(Expr others, const Term& rest, Expr extremum, int depth);

  Expr add(Expr a, Expr b, int64_t scale = 1) { return state.add_raw(a, b, scale); }
  Expr mul(Expr a, Expr b) { return state.mul_raw(a, b); }
  bool used(Rule rule, bool proved) {
    if (proved) state.fire(rule);
    return proved;
  }
};

bool Prover::prove(Expr e, int depth) {
  if (e.node()->witnessed && e.node()->witness > 0) return false;
  ++state.steps;
  if (state.range(e).max <= 0) return true;
  if (e.is_constant() || e.node()->opaque || depth == 0 || budget-- <= 0) return false;
  if (std::find(tried.begin(), tried.end(), e) != tried.end()) return false;
  tried.push_back(e);
  Sum sum = state.decompose(e);
  if (sum.terms.size() > 24) return false;
  for (const Term& term : sum.terms)
    if (by_facts(e, term, depth - 1)) return true;
  for (const Term& term : sum.terms) {
    Expr last;
    for (Expr factor : factors(term.monomial)) {
      if (factor != last && by_factor(e, term, factor, depth - 1)) return true;
      last = factor;
    }
  }
  return false;
}

// Whether e - times*rest*(form - end) is above 0 at the witness, told without building it.
bool hopeless(Expr e, Expr form, Expr rest, int64_t times, int64_t end) {
  const ExprNode &a = *e.node(), &b = *form.node(), &c = *rest.node();
  if (!a.witnessed || !b.witnessed || !c.witnessed) return false;
  int64_t slack = 0, product = 0, value = 0;
  bool overflow =
      __builtin_sub_overflow(b.witness, end, &slack) || __builtin_mul_overflow(times, c.witness, &product) ||
      __builtin_mul_overflow(product, slack, &product) || __builtin_sub_overflow(a.witness, product, &value);
  return !overflow && value > 0;
}

bool Prover::by_facts(Expr e, const Term& term, int depth) {
  auto try_with = [&](Expr monomial) {
    auto found = state.forms_by_term.find(monomial);
    if (found == state.forms_by_term.end()) return false;
    Term rest = state.without(term, monomial);
    if (!state.positive(rest.monomial)) return false;
    // The latest facts first, and not all of them: the work must not grow with what is known.
    constexpr size_t kMaxForms = 32;
    size_t count = found->second.size(), last = count > kMaxForms ? count - kMaxForms : 0;
    for (size_t at = count; at-- > last;) {
      auto [form, coefficient] = found->second[at];
      if (budget <= 0) return false;
      if (coefficient == Range::kMin || rest.coefficient % coefficient != 0) continue;
      int64_t times = rest.coefficient / coefficient;
      // form <= max for a positive multiple, form >= min for a negative one.
      auto known = state.bounds.find(form);
      if (known == state.bounds.end()) continue;  // restated since
      Range bound = known->second;
      int64_t end = times > 0 ? bound.max : bound.min;
      if (end == Range::kMin || end == Range::kMax) continue;
      if (hopeless(e, form, rest.monomial, times, end)) continue;
      --budget;
      Expr nonpositive = mul(state.build(Term{times, rest.monomial}), add(form, state.constant(end), -1));
      if (used(Rule::ProveFact, prove(add(e, nonpositive, -1), depth))) return true;
    }
    return false;
  };
  if (try_with(term.monomial)) return true;
  std::span<const Expr> all = factors(term.monomial);
  for (size_t i = 0; all.size() > 1 && i < all.size(); ++i)
    if ((i == 0 || all[i] != all[i - 1]) && try_with(all[i])) return true;
  return false;
}

bool Prover::by_factor(Expr e, const Term& term, Expr factor, int depth) {
  Term rest = state.without(term, factor);
  if (!state.positive(rest.monomial)) return false;
  auto others = [&] { return add(e, state.build(term), -1); };
  switch (factor.op()) {
    case Op::FloorDiv:
    case Op::Mod:
      if (state.positive(factor.args()[1]) && by_division(others(), rest, factor, depth)) return true;
      break;
    case Op::Min:
    case Op::Max: return by_extremum(others(), rest, factor, depth);
    case Op::Abs: return by_abs(others(), rest, factor.args()[0], depth);
    default: break;
  }
  // A range's end, where the term holds more than this factor: alone, `range` has seen to it.
  if (rest.monomial.is_constant(1)) return false;
  Range range = state.range(factor);
  int64_t end = rest.coefficient > 0 ? range.max : range.min;
  if (end == Range::kMin || end == Range::kMax) return false;
  return used(rest.coefficient > 0 ? Rule::ProveFactorUpper : Rule::ProveFactorLower,
              prove(add(others(), mul(state.build(rest), state.constant(end))), depth));
}

// others + rest*division <= 0
bool Prover::by_division(Expr others, const Term& rest, Expr division, int depth) {
  Expr x = division.args()[0], n = division.args()[1], scale = state.build(rest);
  bool upper = rest.coefficient > 0;
  if (division.op() == Op::Mod) {
    if (!upper) return false;  // at least 0, which its range says
    if (used(Rule::ProveModBelowDivisor, prove(add(others, mul(scale, add(n, state.constant(1), -1))), depth)))
      return true;
    return state.positive(x) && used(Rule::ProveModBelowDividend, prove(add(others, mul(scale, x)), depth));
  }
  Expr least = add(add(x, n, -1), state.constant(1));  // n*FloorDiv(x, n) is between this and x
  PoolState::Split parts = state.split(scale, n);
  if (parts.remainder.is_constant(0)) {
    return used(upper ? Rule::ProveMultipleUpper : Rule::ProveMultipleLower,
                prove(add(others, mul(parts.quotient, upper ? x : least)), depth));
  }
  Expr scaled = mul(n, others);
  if (scale.is_constant(1)) return used(Rule::ProveFloorDivUpper, prove(add(scaled, least), depth));
  if (scale.is_constant(-1)) return used(Rule::ProveFloorDivLower, prove(add(scaled, x, -1), depth));
  return used(upper ? Rule::ProveScaledFloorDivUpper : Rule::ProveScaledFloorDivLower,
              prove(add(scaled, mul(scale, upper ? x : least)), depth));
}

bool Prover::by_extremum(Expr others, const Term& rest, Expr extremum, int depth) {
  Expr scale = state.build(rest);
  bool upper = rest.coefficient > 0, is_min = extremum.op() == Op::Min;
  bool any = upper == is_min;
  bool proved = !any;
  for (Expr arg : extremum.args()) {
    bool one = prove(add(others, mul(scale, arg)), depth);
    if (any)
      proved |= one;
    else
      proved &= one;
    if (proved == any) break;
  }
  Rule rule = is_min ? (upper ? Rule::ProveMinBelowEither : Rule::ProveMinAboveBoth)
                     : (upper ? Rule::ProveMaxBelowBoth : Rule::ProveMaxAboveEither);
  return used(rule, proved);
}

bool Prover::by_abs(Expr others, const Term& rest, Expr x, int depth) {
  Expr scaled = mul(state.build(rest), x);
  bool upper = rest.coefficient > 0;
  bool first = prove(add(others, scaled), depth);
  bool proved = first != upper ? first : prove(add(others, scaled, -1), depth);
  return used(upper ? Rule::ProveAbsBelowBoth : Rule::ProveAbsAboveEither, proved);
}

}  // namespace

bool ExprPool::State::prove_nonpositive(Expr expr) {
  if (expr.node()->witnessed && expr.node()->witness > 0) return false;
  Range r = range(expr);
  if (r.max <= 0) return true;
  if (r.min > 0) return false;
  if (auto found = proofs.find(expr); found != proofs.end()) return found->second;
  // Where facts are used in all directions most ways lead nowhere.
  Prover prover{*this, facts_are_global ? 16 : 40};
  bool proved = prover.prove(expr, 6);
  proofs.emplace(expr, proved);
  return proved;
}

}  // namespace tenon::sym
