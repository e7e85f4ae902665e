// Expressions as text. A small one is written as a tree. One that as a tree would be large, because parts of it occur
// many times or because it is deep, names such parts:
//
//   let(_0: FloorDiv(s0 + 1, 2), _1: Mod(_0, 3), _0 + 2*_1)
#include "pool.h"

#include <cmath>

namespace tenon::sym {
namespace {

constexpr size_t kLargestTree = 256;  // parts of what is written without names
constexpr int kDeepest = 32;          // what a named part holds at most, in levels of nesting

// Binding strength, weakest first.
enum Level { kOr, kAnd, kComparison, kSum, kProduct, kAtom };

// The parts that an expression's text is made of, one level down.
ExprList parts_of(Expr expr) {
  ExprList parts;
  auto terms = [&](Expr sum) {
    const Sum whole = PoolAccess::state(sum).decompose(sum);
    for (const Term& term : whole.terms)
      for (Expr factor : factors(term.monomial)) parts.push_back(factor);
  };
  switch (expr.op()) {
    case Op::Constant:
    case Op::RealConstant:
    case Op::Symbol: break;
    case Op::Eq:
    case Op::Ne:
    case Op::Lt:
    case Op::Le: terms(expr.args()[0]); break;
    case Op::Add:
    case Op::Mul:
      if (!expr.node()->opaque) {
        terms(expr);
        break;
      }
      [[fallthrough]];
    default:
      for (Expr arg : expr.args()) parts.push_back(arg);
  }
  return parts;
}

bool is_large(Expr expr) {
  std::vector<Expr> left{expr};
  for (size_t count = 0; !left.empty(); ++count) {
    if (count + left.size() > kLargestTree) return true;
    Expr next = left.back();
    left.pop_back();
    for (Expr part : parts_of(next)) left.push_back(part);
  }
  return false;
}

std::string parenthesised(std::string text, int own, int wanted) { return own < wanted ? "(" + text + ")" : text; }

// With a point, an exponent, "inf" or "nan", so that it reads as a real.
std::string print_real(double value) {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

class Printer {
 public:
  std::string run(Expr expr) {
    if (!is_large(expr)) return print(expr, kOr);
    std::string text = "let(";
    for (Expr part : parts_to_name(expr)) {
      const std::string definition = print(part, kOr);
      const std::string& name = names_.emplace(part, unused_name(expr.pool())).first->second;
      text += name + ": " + definition + ", ";
    }
    return text + print(expr, kOr) + ")";
  }

 private:
  // What is used more than once, and what is deep; what others are made of comes first.
  static std::vector<Expr> parts_to_name(Expr whole) {
    struct Frame {
      Expr expr;
      ExprList parts;
      size_t next = 0;
    };
    std::unordered_map<Expr, int> uses, height;  // the height is that of the text, down to named parts
    std::vector<Expr> order;
    std::vector<Frame> stack;
    stack.push_back({whole, parts_of(whole)});
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next < frame.parts.size()) {
        Expr part = frame.parts[frame.next++];
        if (++uses[part] == 1) stack.push_back({part, parts_of(part)});
      } else {
        order.push_back(frame.expr);
        stack.pop_back();
      }
    }
    std::vector<Expr> named;
    for (Expr each : order) {
      const ExprList parts = parts_of(each);
      if (parts.empty() || each == whole) continue;
      int own = 1;
      for (Expr part : parts) own = std::max(own, height[part] + 1);
      if (uses[each] == 1 && own < kDeepest) {
        height[each] = own;
      } else {
        named.push_back(each);
        height[each] = 0;
      }
    }
    return named;
  }

  std::string unused_name(const ExprPool& pool) {
    std::string name;
    do name = fmt::format("_{}", next_name_++);
    while (pool.find_symbol(name).defined());
    return name;
  }

  std::string print(Expr expr, int level) {
    if (auto named = names_.find(expr); named != names_.end()) return named->second;
    return print_anew(expr, level);
  }

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

  std::string print_anew(Expr expr, int level) {
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

  std::unordered_map<Expr, std::string> names_;
  int next_name_ = 0;
};

}  // namespace

std::string Expr::str() const { return defined() ? Printer().run(*this) : "undefined"; }

}  // namespace tenon::sym
