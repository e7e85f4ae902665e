// FloorDiv and Mod.
#include "pool.h"

namespace tenon::sym {

ExprPool::State::Split ExprPool::State::split(Expr a, Expr b) {
  Sum rest = decompose(a), divisor = decompose(b);
  if (divisor.terms.empty()) {
    int64_t d = divisor.constant;
    if (d <= 1) return {constant(0), a};
    Sum quotient_part, remainder;
    quotient_part.constant = divide_floor(rest.constant, d);
    remainder.constant = modulo(rest.constant, d);
    for (const Term& term : rest.terms) {
      if (term.coefficient % d == 0)
        quotient_part.terms.push_back({term.coefficient / d, term.monomial});
      else
        remainder.terms.push_back(term);
    }
    return {build(quotient_part), build(remainder)};
  }
  // By several terms: long division, as long as a step makes the rest shorter.
  Expr taken = constant(0);
  for (bool again = true; again;) {
    again = false;
    for (const Term& term : rest.terms) {
      std::optional<Term> step = quotient(term, divisor.terms[0]);
      if (!step) continue;
      Expr step_expr = build(*step);
      Expr left_over = add_raw(build(rest), mul_raw(step_expr, b), -1);
      Sum shorter = decompose(left_over);
      if (left_over.node()->opaque || shorter.size() >= rest.size()) continue;
      taken = add_raw(taken, step_expr);
      rest = shorter;
      again = true;
      break;
    }
  }
  return {taken, build(rest)};
}

Term ExprPool::State::common_factor(Expr a, Expr b) {
  Term common{0, Expr()};
  bool first = true;
  for (Expr expr : {a, b}) {
    Sum sum = decompose(expr);
    if (sum.constant != 0) {
      common = {gcd(common.coefficient, sum.constant), constant(1)};
      first = false;
    }
    for (const Term& term : sum.terms) {
      common.coefficient = gcd(common.coefficient, term.coefficient);
      if (first) {
        common.monomial = term.monomial;
      } else if (!common.monomial.is_constant(1)) {
        ExprList both;
        std::span<const Expr> have = factors(common.monomial), other = factors(term.monomial);
        for (size_t i = 0, j = 0; i < have.size() && j < other.size();) {
          int order = compare(have[i], other[j]);
          if (order == 0) both.push_back(have[i]);
          i += order <= 0;
          j += order >= 0;
        }
        common.monomial = monomial(both);
      }
      first = false;
    }
  }
  return common;
}

Expr ExprPool::State::divide_exactly(Expr a, const Term& by) {
  Sum sum = decompose(a);
  Expr result = constant(0);
  if (sum.constant != 0) {
    TENON_ASSERT(by.monomial.is_constant(1), "{} does not divide {}", by.monomial.str(), a.str());
    result = constant(sum.constant / by.coefficient);
  }
  for (const Term& term : sum.terms) {
    std::optional<Term> part = quotient(term, by);
    TENON_ASSERT(part.has_value(), "{}*{} does not divide {}", by.coefficient, by.monomial.str(), a.str());
    result = add_raw(result, build(*part));
  }
  return result;
}

std::optional<ExprPool::State::Partial> ExprPool::State::partial_split(Expr a, Expr b) {
  Sum sum = decompose(a), divisor = decompose(b);
  if (divisor.size() != 1) return std::nullopt;
  Expr tried;
  for (const Term& term : sum.terms) {
    Term candidate = common_factor(build(term), b);
    Expr c = build(candidate);
    if (c.is_constant(1) || c == b || c == tried) continue;
    tried = c;
    if (!positive(c)) continue;
    Split parts = split(a, c);
    // b and c are positive, so b / c is.
    if (prove_le(constant(0), parts.remainder) && prove_lt(parts.remainder, c))
      return Partial{c, parts.quotient, parts.remainder, divide_exactly(b, candidate)};
  }
  return std::nullopt;
}

std::optional<int64_t> ExprPool::State::known_quotient(Expr a, Expr b) {
  if (b.is_constant()) {
    Range r = range(a);
    if (r.min != Range::kMin && r.max != Range::kMax) {
      int64_t low = divide_floor(r.min, b.constant());
      if (low == divide_floor(r.max, b.constant())) return low;
    }
  }
  if (!positive(b)) return std::nullopt;
  Expr zero = constant(0);
  if (prove_le(zero, a)) return prove_lt(a, b) ? std::optional<int64_t>(0) : std::nullopt;
  if (prove_lt(a, zero) && prove_nonpositive(negate(add_raw(a, b)))) return -1;
  return std::nullopt;
}

Expr ExprPool::State::settle(Expr node) {
  Range r = range(node);
  return r.single() ? constant(r.min) : node;
}

Expr ExprPool::State::floor_div_uncached(Expr a, Expr b) {
  Expr args[] = {a, b};
  if (b.is_constant(0)) return intern(Op::FloorDiv, args);
  if (a.is_constant(0) || b.is_constant(1)) return a;
  if (b.is_constant(-1)) return negate(a);
  if (a.is_constant() && b.is_constant()) return constant(divide_floor(a.constant(), b.constant()));
  if (range(b).max < 0) {
    Expr minus_a = negate(a), minus_b = negate(b);
    if (range(minus_b).min > 0) {
      fire(Rule::FloorDivNegative);
      return floor_div(minus_a, minus_b);
    }
  }
  if (Split parts = split(a, b); !parts.quotient.is_constant(0)) {
    fire(Rule::FloorDivSplit);
    return add(parts.quotient, floor_div(parts.remainder, b));
  }
  if (Term common = common_factor(a, b); common.coefficient != 1 || !common.monomial.is_constant(1)) {
    fire(Rule::FloorDivCancel);
    return floor_div(divide_exactly(a, common), divide_exactly(b, common));
  }
  if (positive(b)) {
    if (std::optional<Partial> parts = partial_split(a, b)) {
      fire(Rule::FloorDivPartial);
      return floor_div(parts->x, parts->e);
    }
    Sum sum = decompose(a);
    if (sum.terms.size() == 1 && sum.terms[0].coefficient == 1 && sum.terms[0].monomial.op() == Op::FloorDiv) {
      Expr inner = sum.terms[0].monomial;
      Expr product = mul(inner.args()[1], b), shift = mul(inner.args()[1], constant(sum.constant));
      if (!product.node()->opaque && !shift.node()->opaque) {
        fire(Rule::FloorDivNested);
        return floor_div(add(inner.args()[0], shift), product);
      }
    }
  }
  if (a.op() == Op::Mod) {
    Split parts = split(a.args()[1], b);
    if (parts.remainder.is_constant(0) && positive(parts.quotient)) {
      fire(Rule::FloorDivOfMod);
      return mod(floor_div(a.args()[0], b), parts.quotient);
    }
  }
  if (std::optional<int64_t> k = known_quotient(a, b)) {
    fire(Rule::FloorDivKnown);
    return constant(*k);
  }
  return settle(intern(Op::FloorDiv, args));
}

Expr ExprPool::State::mod_uncached(Expr a, Expr b) {
  Expr args[] = {a, b};
  if (b.is_constant(0)) return intern(Op::Mod, args);
  if (a.is_constant(0) || b.is_constant(1) || b.is_constant(-1)) return constant(0);
  if (a.is_constant() && b.is_constant()) return constant(modulo(a.constant(), b.constant()));
  if (range(b).max < 0) {
    Expr minus_a = negate(a), minus_b = negate(b);
    if (range(minus_b).min > 0) {
      fire(Rule::ModNegative);
      return negate(mod(minus_a, minus_b));
    }
  }
  if (Split parts = split(a, b); !parts.quotient.is_constant(0)) {
    fire(Rule::ModSplit);
    return mod(parts.remainder, b);
  }
  for (const Term& term : decompose(a).terms) {
    for (Expr factor : factors(term.monomial)) {
      if (factor.op() != Op::Mod) continue;
      Expr rest = build(without(term, factor));
      if (!split(mul_raw(rest, factor.args()[1]), b).remainder.is_constant(0)) continue;
      fire(Rule::ModInner);
      return mod(add(add_raw(a, build(term), -1), mul_raw(rest, factor.args()[0])), b);
    }
  }
  if (Term common = common_factor(a, b); common.coefficient != 1 || !common.monomial.is_constant(1)) {
    fire(Rule::ModCancel);
    return mul(build(common), mod(divide_exactly(a, common), divide_exactly(b, common)));
  }
  if (positive(b)) {
    if (std::optional<Partial> parts = partial_split(a, b)) {
      fire(Rule::ModPartial);
      return add(mul(parts->c, mod(parts->x, parts->e)), parts->j);
    }
  }
  if (auto found = known_mods.find(a); found != known_mods.end() && b.is_constant() && b.constant() > 0) {
    for (const KnownMod& known : found->second) {
      if (known.modulus % b.constant() != 0) continue;
      fire(Rule::ModKnownMultiple);
      return constant(modulo(known.rest, b.constant()));
    }
  }
  if (std::optional<int64_t> k = known_quotient(a, b)) {
    fire(Rule::ModKnown);
    return add(a, mul(constant(*k), b), -1);
  }
  return settle(intern(Op::Mod, args));
}

Expr ExprPool::State::floor_div(Expr a, Expr b) {
  Key key{Op::FloorDiv, a, b};
  if (auto found = memo.find(key); found != memo.end()) return found->second;
  Expr result = floor_div_uncached(a, b);
  memo.emplace(key, result);
  return result;
}

Expr ExprPool::State::mod(Expr a, Expr b) {
  Key key{Op::Mod, a, b};
  if (auto found = memo.find(key); found != memo.end()) return found->second;
  Expr result = mod_uncached(a, b);
  memo.emplace(key, result);
  return result;
}

std::optional<Expr> ExprPool::State::recombine_once(Expr expr) {
  Sum sum = decompose(expr);
  auto coefficient_of = [&sum](Expr monomial) {
    for (const Term& term : sum.terms)
      if (term.monomial == monomial) return term.coefficient;
    return int64_t{0};
  };
  for (const Term& term : sum.terms) {
    if (!term.monomial.node()->has_division) continue;
    for (Expr factor : factors(term.monomial)) {
      if (factor.op() != Op::Mod && factor.op() != Op::FloorDiv) continue;
      Expr x = factor.args()[0], n = factor.args()[1];
      if (n.is_constant(0)) continue;
      Term rest = without(term, factor);
      if (factor.op() == Op::FloorDiv) {
        // Only a fact can make the remainder a constant: otherwise the division would be gone.
        if (bounds.empty()) continue;
        Split parts = split(build(rest), n);
        if (!parts.remainder.is_constant(0)) continue;
        Expr remainder = mod(x, n);
        if (!remainder.is_constant()) continue;
        fire(Rule::RecombineKnown);
        return add_raw(add_raw(expr, build(term), -1), mul_raw(parts.quotient, add_raw(x, remainder, -1)));
      }
      if (sum.terms.size() < 2) continue;
      Expr scale = mul_raw(build(rest), n);
      if (scale.node()->opaque) continue;
      Expr quotient_part = floor_div(x, n);
      Expr whole = mul_raw(scale, quotient_part);
      bool found = false, all = true;
      for (const Term& wanted : decompose(whole).terms) {
        if (!wanted.monomial.node()->has_division) continue;
        found = true;
        all &= coefficient_of(wanted.monomial) == wanted.coefficient;
      }
      if (found && all) {
        fire(Rule::RecombineWhole);
        Expr others = add_raw(add_raw(expr, build(term), -1), whole, -1);
        return add_raw(others, mul_raw(build(rest), x));
      }
      for (const Term& other : sum.terms) {
        for (Expr outer : factors(other.monomial)) {
          if (outer.op() != Op::Mod || outer.args()[0] != quotient_part || !positive(outer.args()[1])) continue;
          if (build(without(other, outer)) != scale) continue;
          Expr product = mul(n, outer.args()[1]);
          if (product.node()->opaque) continue;
          fire(Rule::RecombineMod);
          Expr others = add_raw(add_raw(expr, build(term), -1), build(other), -1);
          return add_raw(others, mul_raw(build(rest), mod(x, product)));
        }
      }
    }
  }
  return std::nullopt;
}

Expr ExprPool::State::recombine(Expr expr) {
  constexpr size_t kMaxTerms = 48;
  if (expr.op() == Op::Mul ? !expr.node()->has_division : expr.op() != Op::Add) return expr;
  if (expr.op() == Op::Add && (expr.node()->opaque || expr.args().size() > kMaxTerms)) return expr;
  if (expr.op() == Op::Add) {
    bool any = false;
    for (Expr arg : expr.args()) any |= arg.node()->has_division;
    if (!any) return expr;
  }
  for (int step = 0; step < 16; ++step) {
    std::optional<Expr> next = recombine_once(expr);
    if (!next) break;
    expr = *next;
  }
  return expr;
}

}  // namespace tenon::sym
