// Absolute value and integer powers.
#include "pool.h"
#include "real_math.h"

namespace tenon::sym {

Expr ExprPool::State::abs(Expr a) {
  Range r = range(a);
  if (r.min >= 0 || (a.is_constant() && a.constant() >= 0)) {
    fire(Rule::AbsPositive);
    return a;
  }
  if (r.max <= 0 && !a.is_constant(Range::kMin)) {
    fire(Rule::AbsNegative);
    return negate(a);
  }
  // |c*x + c*y| = c*|x + y|; x + y and -x - y meet in one of them.
  Normal n = normal(a);
  if (!a.node()->opaque && n.offset == 0 && n.scale != 1 && n.scale != Range::kMin) {
    fire(Rule::AbsScale);
    return mul(constant(n.scale < 0 ? -n.scale : n.scale), abs(n.form));
  }
  if (!a.node()->opaque && n.scale < 0) {
    fire(Rule::AbsSign);
    return abs(negate(a));
  }
  return settle(intern(Op::Abs, {&a, 1}));
}

Expr ExprPool::State::pow(Expr a, Expr b) {
  constexpr int64_t kUnrolled = 8;
  if (b.is_constant(0) || a.is_constant(1)) return constant(1);
  if (b.is_constant(1)) return a;
  if (b.is_constant() && b.constant() > 0) {
    if (a.is_constant()) {
      // Folded unless it overflows.
      std::optional<int64_t> power = 1;
      if (a.constant() == 0) return a;
      if (a.constant() == -1) return constant(b.constant() % 2 == 0 ? 1 : -1);
      for (int64_t i = 0; power && i < b.constant(); ++i) power = checked_mul(*power, a.constant());
      if (power) return constant(*power);
    } else if (b.constant() <= kUnrolled) {
      fire(Rule::PowUnrolled);
      Expr product = a;
      for (int64_t i = 1; i < b.constant(); ++i) product = mul(product, a);
      return product;
    }
  }
  Expr args[] = {a, b};
  return settle(intern(Op::Pow, args));
}

}  // namespace tenon::sym
