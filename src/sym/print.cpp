// Expressions as text.
#include "pool.h"

#include <cmath>

namespace tenon::sym {
namespace {

// Binding strength, weakest first.
enum Level { kOr, kAnd, kComparison, kSum, kProduct, kAtom };

std::string print(Expr expr, int level);

std::string parenthesised(std::string text, int own, int wanted) { return own < wanted ? "(" + text + ")" : text; }

std::string print_call(std::string_view name, Expr expr) {
  std::string text(name);
  const char* separator = "(";
  for (Expr arg : expr.args()) {
    text += separator + print(arg, kOr);
    separator = ", ";
  }
  return text + ")";
}

std::string print_joined(const char* separator, Expr expr, int level) {
  std::string text;
  for (Expr arg : expr.args()) {
    if (!text.empty()) text += separator;
    text += print(arg, level);
  }
  return text;
}

// Of reals: they are grouped as they are written.
std::string print_binary(Expr expr, const char* sign, int own, int level) {
  int left = own == kComparison ? kSum : own;
  return parenthesised(print(expr.args()[0], left) + sign + print(expr.args()[1], own + 1), own, level);
}

// With a point, an exponent, "inf" or "nan", so that it reads as a real.
std::string print_real(double value) {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

// A term without its sign.
std::string print_magnitude(const Term& term) {
  uint64_t magnitude =
      term.coefficient < 0 ? 0 - static_cast<uint64_t>(term.coefficient) : static_cast<uint64_t>(term.coefficient);
  std::string text = magnitude == 1 ? "" : fmt::format("{}*", magnitude);
  bool first = true;
  for (Expr factor : factors(term.monomial)) {
    text += (first ? "" : "*") + print(factor, factor.node()->opaque ? kAtom : kProduct + 1);
    first = false;
  }
  return text;
}

// What is added comes first, then what is taken away; the constant last of its kind.
std::string print_sum(const Terms& terms, int64_t constant) {
  std::string text;
  auto append = [&](bool negative, const std::string& part) {
    if (text.empty())
      text = (negative ? "-" : "") + part;
    else
      text += (negative ? " - " : " + ") + part;
  };
  for (bool negative : {false, true}) {
    for (const Term& term : terms)
      if ((term.coefficient < 0) == negative) append(negative, print_magnitude(term));
    if (constant != 0 && (constant < 0) == negative) {
      uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(constant) : static_cast<uint64_t>(constant);
      append(negative, fmt::format("{}", magnitude));
    }
  }
  return text.empty() ? "0" : text;
}

// Every term on the side where it is positive.
std::string print_comparison(Expr expr, const char* sign, const char* reversed) {
  PoolState& state = PoolAccess::state(expr);
  Sum sum = state.decompose(expr.args()[0]);
  int64_t limit = expr.args()[1].constant();
  if (sum.constant != 0 || limit == Range::kMin)
    return fmt::format("{} {} {}", print(expr.args()[0], kSum), sign, limit);
  Terms left, right;
  for (const Term& term : sum.terms) {
    if (term.coefficient >= 0 || term.coefficient == Range::kMin)
      left.push_back(term);
    else
      right.push_back({-term.coefficient, term.monomial});
  }
  if (left.empty()) return fmt::format("{} {} {}", print_sum(right, 0), reversed, -limit);
  if (right.empty()) return fmt::format("{} {} {}", print_sum(left, 0), sign, limit);
  if (expr.op() == Op::Le && limit == -1) return fmt::format("{} < {}", print_sum(left, 0), print_sum(right, 0));
  return fmt::format("{} {} {}", print_sum(left, limit < 0 ? -limit : 0), sign,
                     print_sum(right, limit > 0 ? limit : 0));
}

std::string print(Expr expr, int level) {
  switch (expr.op()) {
    case Op::Constant: {
      int64_t value = expr.constant();
      return parenthesised(fmt::format("{}", value), value < 0 ? kSum : kAtom, level);
    }
    case Op::Symbol: return expr.name();
    case Op::Add:
    case Op::Mul: {
      int own = expr.op() == Op::Add ? kSum : kProduct;
      if (expr.node()->opaque) return parenthesised(print_joined(own == kSum ? " + " : "*", expr, kAtom), own, level);
      Sum sum = PoolAccess::state(expr).decompose(expr);
      bool negative = own == kProduct && sum.terms[0].coefficient < 0;
      return parenthesised(print_sum(sum.terms, sum.constant), negative ? kSum : own, level);
    }
    case Op::RealConstant: {
      double value = expr.real_constant();
      return parenthesised(print_real(value), std::signbit(value) ? kSum : kAtom, level);
    }
    case Op::RealAdd: return print_binary(expr, " + ", kSum, level);
    case Op::RealSub: return print_binary(expr, " - ", kSum, level);
    case Op::RealMul: return print_binary(expr, "*", kProduct, level);
    case Op::RealDiv: return print_binary(expr, "/", kProduct, level);
    case Op::RealNeg: return parenthesised("-" + print(expr.args()[0], kAtom), kSum, level);
    case Op::RealEq: return print_binary(expr, " == ", kComparison, level);
    case Op::RealNe: return print_binary(expr, " != ", kComparison, level);
    case Op::RealLt: return print_binary(expr, " < ", kComparison, level);
    case Op::RealLe: return print_binary(expr, " <= ", kComparison, level);
    case Op::Eq: return parenthesised(print_comparison(expr, "==", "=="), kComparison, level);
    case Op::Ne: return parenthesised(print_comparison(expr, "!=", "!="), kComparison, level);
    case Op::Lt: return parenthesised(print_comparison(expr, "<", ">"), kComparison, level);
    case Op::Le: return parenthesised(print_comparison(expr, "<=", ">="), kComparison, level);
    case Op::And: return parenthesised(print_joined(" && ", expr, kComparison), kAnd, level);
    case Op::Or: return parenthesised(print_joined(" || ", expr, kAnd), kOr, level);
    case Op::Not: return "!(" + print(expr.args()[0], kOr) + ")";
    default: return print_call(function_name(expr.op()), expr);
  }
}

}  // namespace

std::string Expr::str() const { return defined() ? print(*this, kOr) : "undefined"; }

}  // namespace tenon::sym
