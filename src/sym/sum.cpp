// Sums of products: taking expressions apart into terms, and adding and multiplying those.
#include "pool.h"

#include <numeric>

namespace tenon::sym {

std::optional<int64_t> checked_add(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? std::nullopt : std::optional(sum);
}

std::optional<int64_t> checked_mul(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? std::nullopt : std::optional(product);
}

int64_t gcd(int64_t a, int64_t b) {
  auto magnitude = [](int64_t x) { return x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x); };
  uint64_t result = std::gcd(magnitude(a), magnitude(b));
  return result > static_cast<uint64_t>(Range::kMax) ? 1 : static_cast<int64_t>(result);
}

int64_t divide_floor(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t modulo(int64_t a, int64_t b) {
  int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Term ExprPool::State::term_of(Expr expr) {
  if (expr.op() != Op::Mul || expr.node()->opaque || !expr.args()[0].is_constant()) return {1, expr};
  return {expr.args()[0].constant(), monomial(expr.args().subspan(1))};
}

Sum ExprPool::State::decompose(Expr expr) {
  Sum sum;
  if (expr.is_constant()) {
    sum.constant = expr.constant();
  } else if (expr.op() == Op::Add && !expr.node()->opaque) {
    std::span<const Expr> args = expr.args();
    if (args[0].is_constant()) {
      sum.constant = args[0].constant();
      args = args.subspan(1);
    }
    for (Expr arg : args) sum.terms.push_back(term_of(arg));
  } else {
    sum.terms.push_back(term_of(expr));
  }
  return sum;
}

Expr ExprPool::State::monomial(std::span<const Expr> sorted_factors) {
  if (sorted_factors.empty()) return constant(1);
  return sorted_factors.size() == 1 ? sorted_factors[0] : intern(Op::Mul, sorted_factors);
}

Expr ExprPool::State::build(const Term& term) {
  if (term.monomial.is_constant(1) || term.coefficient == 0) return constant(term.coefficient);
  if (term.coefficient == 1) return term.monomial;
  // A lone sum beside a constant is multiplied out.
  if (term.monomial.op() == Op::Add && !term.monomial.node()->opaque)
    return mul_raw(constant(term.coefficient), term.monomial);
  ExprList args;
  args.push_back(constant(term.coefficient));
  for (Expr factor : factors(term.monomial)) args.push_back(factor);
  return intern(Op::Mul, args);
}

Expr ExprPool::State::build(const Sum& sum) {
  if (sum.terms.empty()) return constant(sum.constant);
  if (sum.terms.size() == 1 && sum.constant == 0) return build(sum.terms[0]);
  ExprList args;
  if (sum.constant != 0) args.push_back(constant(sum.constant));
  for (const Term& term : sum.terms) args.push_back(build(term));
  return intern(Op::Add, args);
}

std::optional<Sum> ExprPool::State::add_scaled(const Sum& a, const Sum& b, int64_t scale) {
  Sum sum;
  std::optional<int64_t> constant_part = checked_mul(b.constant, scale);
  if (constant_part) constant_part = checked_add(a.constant, *constant_part);
  if (!constant_part) return std::nullopt;
  sum.constant = *constant_part;
  size_t i = 0, j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    int order = i == a.terms.size() ? 1 : j == b.terms.size() ? -1 : compare(a.terms[i].monomial, b.terms[j].monomial);
    if (order < 0) {
      sum.terms.push_back(a.terms[i++]);
      continue;
    }
    std::optional<int64_t> coefficient = checked_mul(b.terms[j].coefficient, scale);
    if (coefficient && order == 0) coefficient = checked_add(a.terms[i].coefficient, *coefficient);
    if (!coefficient) return std::nullopt;
    if (*coefficient != 0) sum.terms.push_back({*coefficient, b.terms[j].monomial});
    i += order == 0;
    ++j;
  }
  return sum;
}

Expr ExprPool::State::add_raw(Expr a, Expr b, int64_t scale) {
  if (b.is_constant(0)) return a;
  if (scale == 1 && a.is_constant(0)) return b;
  if (std::optional<Sum> sum = add_scaled(decompose(a), decompose(b), scale)) return build(*sum);
  return opaque(Op::Add, a, scale == 1 ? b : mul_raw(constant(scale), b));
}

std::optional<Term> ExprPool::State::multiply(const Term& a, const Term& b) {
  constexpr size_t kMaxFactors = 64;
  std::optional<int64_t> coefficient = checked_mul(a.coefficient, b.coefficient);
  if (!coefficient) return std::nullopt;
  if (a.monomial.is_constant(1)) return Term{*coefficient, b.monomial};
  if (b.monomial.is_constant(1)) return Term{*coefficient, a.monomial};
  std::span<const Expr> left = factors(a.monomial), right = factors(b.monomial);
  if (left.size() + right.size() > kMaxFactors) return std::nullopt;
  SmallVector<Expr, 16> all(left.size() + right.size());
  std::merge(left.begin(), left.end(), right.begin(), right.end(), all.begin(),
             [](Expr x, Expr y) { return compare(x, y) < 0; });
  return Term{*coefficient, monomial(all)};
}

Expr ExprPool::State::mul_raw(Expr a, Expr b) {
  constexpr size_t kMaxTerms = 16;
  if (a.is_constant(0) || b.is_constant(1)) return a;
  if (b.is_constant(0) || a.is_constant(1)) return b;
  Sum left = decompose(a), right = decompose(b);
  auto with_constant = [this](Sum& sum) -> Terms& {
    if (sum.constant != 0) sum.terms.push_back({sum.constant, constant(1)});
    return sum.terms;
  };
  if (left.terms.empty() || right.terms.empty() || left.size() * right.size() <= kMaxTerms) {
    std::optional<Sum> result = Sum();
    Terms rows = with_constant(left), columns = with_constant(right);
    for (const Term& x : rows) {
      Sum row;
      for (const Term& y : columns) {
        std::optional<Term> product = multiply(x, y);
        if (!product) return opaque(Op::Mul, a, b);
        if (product->monomial.is_constant(1))
          row.constant = product->coefficient;
        else
          row.terms.push_back(*product);
      }
      // Multiplying by one monomial keeps terms distinct but not their order.
      std::sort(row.terms.begin(), row.terms.end(),
                [](const Term& x1, const Term& y1) { return compare(x1.monomial, y1.monomial) < 0; });
      result = add_scaled(*result, row, 1);
      if (!result) return opaque(Op::Mul, a, b);
    }
    return build(*result);
  }
  // Too large to multiply out: the sums become factors, freed of their common constant so that equal ones meet.
  auto as_term = [this](Expr whole, const Sum& sum) -> Term {
    if (sum.size() == 1) return sum.terms[0];
    int64_t content = sum.constant;
    for (const Term& term : sum.terms) content = gcd(content, term.coefficient);
    return content <= 1 ? Term{1, whole} : Term{content, divide_exactly(whole, {content, constant(1)})};
  };
  std::optional<Term> product = multiply(as_term(a, left), as_term(b, right));
  return product ? build(*product) : opaque(Op::Mul, a, b);
}

std::optional<Term> ExprPool::State::quotient(const Term& a, const Term& b) {
  if (b.coefficient == 0 || (b.coefficient == -1 && a.coefficient == Range::kMin)) return std::nullopt;
  if (a.coefficient % b.coefficient != 0) return std::nullopt;
  int64_t coefficient = a.coefficient / b.coefficient;
  if (b.monomial.is_constant(1)) return Term{coefficient, a.monomial};
  if (a.monomial.is_constant(1)) return std::nullopt;
  ExprList rest;
  std::span<const Expr> have = factors(a.monomial), want = factors(b.monomial);
  size_t taken = 0;
  for (Expr factor : have) {
    if (taken < want.size() && factor == want[taken])
      ++taken;
    else
      rest.push_back(factor);
  }
  if (taken < want.size()) return std::nullopt;
  return Term{coefficient, monomial(rest)};
}

Term ExprPool::State::without(const Term& term, Expr factor) {
  std::optional<Term> rest = quotient(term, {1, factor});
  TENON_ASSERT(rest.has_value(), "{} is no factor of {}", factor.str(), term.monomial.str());
  return *rest;
}

}  // namespace tenon::sym
