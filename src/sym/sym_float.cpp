#include "apply.h"
#include "real_math.h"

#include <tenon/sym/shape_env.h>

#include <bit>

namespace tenon {

using sym::Expr;
using sym::Op;
using sym::ShapeEnv;

namespace {

const Ref<ShapeEnv>& common_env(const SymFloat& a, const SymFloat& b) {
  TENON_ASSERT(!a.env() || !b.env() || a.env() == b.env(), "{} and {} belong to different environments", a.str(),
               b.str());
  return a.env() ? a.env() : b.env();
}

std::string place_of(const std::string& message, const std::source_location& where) {
  std::string line = fmt::format("{}:{}", where.file_name(), where.line());
  return message.empty() ? "the check at " + line : fmt::format("{} ({})", message, line);
}

}  // namespace

SymFloat::SymFloat(const SymInt& number) {
  if (number.is_symbolic())
    *this = SymFloat(sym::to_real(number.expr()), number.env());
  else
    value_ = static_cast<double>(number.plain());
}

SymFloat::SymFloat(Expr expr, Ref<ShapeEnv> env) {
  TENON_ASSERT(env && expr.defined(), "a symbolic number needs an expression and its environment");
  TENON_ASSERT(&expr.pool() == &env->pool(), "{} belongs to another environment", expr.str());
  expr = sym::to_real(expr);
  if (expr.is_real_constant()) {
    value_ = expr.real_constant();
  } else {
    expr_ = expr;
    env_ = std::move(env);
  }
}

std::optional<double> SymFloat::maybe_constant() const {
  if (!is_symbolic()) return value_;
  Expr simple = env_->pool().simplify(expr_);
  return simple.is_real_constant() ? std::optional(simple.real_constant()) : std::nullopt;
}

std::optional<double> SymFloat::hint() const {
  if (!is_symbolic()) return value_;
  std::optional<int64_t> bits = env_->hint(expr_);
  return bits ? std::optional(std::bit_cast<double>(*bits)) : std::nullopt;
}

Expr SymFloat::to_expr(ShapeEnv& env) const {
  if (!is_symbolic()) return env.pool().real_constant(value_);
  TENON_ASSERT(env_.get() == &env, "{} belongs to another environment", str());
  return expr_;
}

std::string SymFloat::str() const {
  if (is_symbolic()) return expr_.str();
  std::string text = fmt::format("{}", value_);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

bool SymFloat::same(const SymFloat& other) const {
  return sym::apply_comparison(Op::Same, value_, other.value_) && expr_ == other.expr_ && env_ == other.env_;
}

double SymFloat::pin() const { return env_->pin_real(expr_); }

namespace sym::detail {

SymFloat unary_real(Op op, const SymFloat& a) {
  if (!a.is_symbolic()) return apply_unary(op, a.plain());
  if (op == Op::RealNeg) return SymFloat(-a.expr(), a.env());
  if (op == Op::RealAbs) return SymFloat(sym::abs(a.expr()), a.env());
  return SymFloat(call(op, a.expr()), a.env());
}

SymFloat binary_real(Op op, const SymFloat& a, const SymFloat& b) {
  if (both_plain(a, b)) return apply_binary(op, a.plain(), b.plain());
  const Ref<ShapeEnv>& env = common_env(a, b);
  Expr x = a.to_expr(*env), y = b.to_expr(*env);
  switch (op) {
    case Op::RealAdd: return SymFloat(x + y, env);
    case Op::RealSub: return SymFloat(x - y, env);
    case Op::RealMul: return SymFloat(x * y, env);
    case Op::RealDiv: return SymFloat(sym::true_div(x, y), env);
    case Op::RealPow: return SymFloat(sym::pow(x, y), env);
    case Op::RealMin: return SymFloat(sym::min(x, y), env);
    default: return SymFloat(sym::max(x, y), env);
  }
}

SymBool compare_reals(Op op, const SymFloat& a, const SymFloat& b) {
  if (both_plain(a, b)) return apply_comparison(op, a.plain(), b.plain());
  const Ref<ShapeEnv>& env = common_env(a, b);
  Expr x = a.to_expr(*env), y = b.to_expr(*env);
  switch (op) {
    case Op::RealEq: return SymBool(eq(x, y), env);
    case Op::RealNe: return SymBool(ne(x, y), env);
    case Op::RealLt: return SymBool(lt(x, y), env);
    default: return SymBool(le(x, y), env);
  }
}

SymInt round_real(Op op, const SymFloat& a) {
  if (!a.is_symbolic()) {
    int64_t result = 0;
    TENON_CHECK(apply_rounding(op, a.plain(), result), "[{}] expected a number that fits 64 bits when rounded, got {}",
                op == Op::Floor   ? "floor"
                : op == Op::Ceil  ? "ceil"
                : op == Op::Round ? "round"
                                  : "trunc",
                a.str());
    return result;
  }
  Expr x = a.expr();
  return SymInt(op == Op::Floor   ? sym::floor(x)
                : op == Op::Ceil  ? sym::ceil(x)
                : op == Op::Round ? sym::round(x)
                                  : sym::trunc(x),
                a.env());
}

}  // namespace sym::detail

SymFloat true_div(const SymInt& a, const SymInt& b) { return SymFloat(a) / SymFloat(b); }

SymInt abs(const SymInt& a) {
  if (!a.is_symbolic()) return a.plain() < 0 ? -a : a;
  return SymInt(sym::abs(a.expr()), a.env());
}

SymInt pow(const SymInt& base, const SymInt& exponent) {
  if (base.is_symbolic() || exponent.is_symbolic()) {
    const Ref<ShapeEnv>& env = base.env() ? base.env() : exponent.env();
    return SymInt(sym::pow(base.to_expr(*env), exponent.to_expr(*env)), env);
  }
  TENON_CHECK(exponent.plain() >= 0, "[pow] expected an exponent of at least 0, got {} to the power of {}", base.str(),
              exponent.str());
  int64_t result = 0;
  if (!sym::apply_operation(sym::Op::Pow, base.plain(), exponent.plain(), result))
    throw OverflowError(fmt::format("[pow] expected a result that fits 64 bits, got {} to the power of {}", base.str(),
                                    exponent.str()));
  return result;
}

SymInt to_int(const SymBool& a) { return a.is_symbolic() ? SymInt(a.expr(), a.env()) : SymInt(bool(a) ? 1 : 0); }

SymBool is_integer(const SymFloat& a) {
  if (!a.is_symbolic()) return sym::has_no_fraction(a.plain());
  return SymBool(sym::is_integer(a.expr()), a.env());
}

void check(const SymBool& condition, const std::string& message, std::source_location where) {
  if (condition.is_symbolic())
    condition.env()->check(condition, place_of(message, where));
  else
    TENON_CHECK(bool(condition), "[check] {}: expected a condition that holds, got false", place_of(message, where));
}

void check_is_size(const SymInt& number, const std::string& message, std::source_location where) {
  if (!number.is_symbolic()) {
    TENON_CHECK(number.plain() >= 0, "[check_is_size] {}: expected a number of at least 0, got {}",
                place_of(message, where), number.str());
    return;
  }
  number.env()->check(number >= 0, place_of(message, where));
  number.env()->mark_size(number.expr());
}

}  // namespace tenon
