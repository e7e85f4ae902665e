#include "apply.h"
#include "support/thread_data.h"

#include <tenon/sym/shape_env.h>

#include <fmt/format.h>

namespace tenon {
namespace {

using sym::Expr;
using sym::ShapeEnv;

// The environment of two operands, at least one of which is symbolic.
template <typename T>
const Ref<ShapeEnv>& common_env(const T& a, const T& b) {
  TENON_ASSERT(!a.env() || !b.env() || a.env() == b.env(), "{} and {} belong to different environments", a.str(),
               b.str());
  return a.env() ? a.env() : b.env();
}

template <typename Build>
SymInt combine(const SymInt& a, const SymInt& b, const Build& build) {
  const Ref<ShapeEnv>& env = common_env(a, b);
  return SymInt(build(a.to_expr(*env), b.to_expr(*env)), env);
}

template <typename Build>
SymBool compare(const SymInt& a, const SymInt& b, const Build& build) {
  const Ref<ShapeEnv>& env = common_env(a, b);
  return SymBool(build(a.to_expr(*env), b.to_expr(*env)), env);
}

// What a simplified expression no longer divides by, it must not have been divided by either: 0 / n is 0 for the
// simplifier, and an Error where n is 0.
void check_divisor(const SymInt& a, const SymInt& b, const char* what) {
  if (b.is_symbolic())
    b.env()->check(b != 0, fmt::format("[{}] {} {} {} divides", what, a.str(), what, b.str()), CallSite::here());
  else
    TENON_CHECK(b.plain() != 0, "[{}] expected a divisor other than 0, got {} {} 0", what, a.str(), what);
}

[[noreturn]] void does_not_fit(const SymInt& a, const char* what, const SymInt& b) {
  throw OverflowError(
      fmt::format("[{}] expected a result that fits 64 bits, got {} {} {}", what, a.str(), what, b.str()));
}

// The operator for operands one of which is symbolic; of plain ones only what does not fit comes here.
template <typename Build>
SymInt arithmetic(const SymInt& a, const char* what, const SymInt& b, const Build& build) {
  if (sym::detail::both_plain(a, b)) does_not_fit(a, what, b);
  return combine(a, b, build);
}

}  // namespace

SymInt::SymInt(Expr expr, Ref<ShapeEnv> env) {
  TENON_ASSERT(env && expr.defined(), "a symbolic number needs an expression and its environment");
  TENON_ASSERT(&expr.pool() == &env->pool(), "{} belongs to another environment", expr.str());
  if (expr.is_constant()) {
    value_ = expr.constant();
  } else {
    expr_ = expr;
    env_ = std::move(env);
  }
}

std::optional<int64_t> SymInt::maybe_constant() const {
  if (!is_symbolic()) return value_;
  Expr simple = env_->pool().simplify(expr_);
  return simple.is_constant() ? std::optional(simple.constant()) : std::nullopt;
}

std::optional<int64_t> SymInt::hint() const { return is_symbolic() ? env_->hint(expr_) : std::optional(value_); }

Expr SymInt::to_expr(ShapeEnv& env) const {
  if (!is_symbolic()) return env.pool().constant(value_);
  TENON_ASSERT(env_.get() == &env, "{} belongs to another environment", str());
  return expr_;
}

std::string SymInt::str() const { return is_symbolic() ? expr_.str() : fmt::format("{}", value_); }

bool SymInt::same(const SymInt& other) const {
  return value_ == other.value_ && expr_ == other.expr_ && env_ == other.env_;
}

int64_t SymInt::pin() const { return env_->pin(expr_); }

SymBool::SymBool(Expr expr, Ref<ShapeEnv> env) {
  TENON_ASSERT(env && expr.defined(), "a symbolic condition needs an expression and its environment");
  TENON_ASSERT(&expr.pool() == &env->pool(), "{} belongs to another environment", expr.str());
  if (expr.is_constant()) {
    value_ = expr.constant() != 0;
  } else {
    expr_ = expr;
    env_ = std::move(env);
  }
}

std::optional<bool> SymBool::maybe_constant() const { return is_symbolic() ? env_->pool().known(expr_) : value_; }

std::string SymBool::str() const { return is_symbolic() ? expr_.str() : value_ ? "true" : "false"; }

bool SymBool::decide() const { return env_->decide(expr_); }

namespace sym::detail {

SymInt add(const SymInt& a, const SymInt& b) {
  return arithmetic(a, "+", b, [](Expr x, Expr y) { return x + y; });
}
SymInt subtract(const SymInt& a, const SymInt& b) {
  return arithmetic(a, "-", b, [](Expr x, Expr y) { return x - y; });
}
SymInt multiply(const SymInt& a, const SymInt& b) {
  return arithmetic(a, "*", b, [](Expr x, Expr y) { return x * y; });
}
SymBool equal(const SymInt& a, const SymInt& b) { return compare(a, b, &sym::eq); }
SymBool less(const SymInt& a, const SymInt& b) { return compare(a, b, &sym::lt); }

SymInt divide(const SymInt& a, const SymInt& b) {
  check_divisor(a, b, "/");
  int64_t quotient;
  if (!both_plain(a, b)) return combine(a, b, &sym::floor_div);
  if (!apply_operation(Op::FloorDiv, a.plain(), b.plain(), quotient)) does_not_fit(a, "/", b);
  return quotient;
}

SymInt remainder(const SymInt& a, const SymInt& b) {
  check_divisor(a, b, "%");
  int64_t rest;
  if (!both_plain(a, b)) return combine(a, b, &sym::mod);
  TENON_ASSERT(apply_operation(Op::Mod, a.plain(), b.plain(), rest), "{} % {}", a.plain(), b.plain());
  return rest;
}

}  // namespace sym::detail

SymInt operator-(const SymInt& a) { return 0 - a; }

SymInt min(const SymInt& a, const SymInt& b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return std::min(a.plain(), b.plain());
  return combine(a, b, static_cast<Expr (*)(Expr, Expr)>(&sym::min));
}

SymInt max(const SymInt& a, const SymInt& b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return std::max(a.plain(), b.plain());
  return combine(a, b, static_cast<Expr (*)(Expr, Expr)>(&sym::max));
}

SymBool operator&&(const SymBool& a, const SymBool& b) {
  if (!a.is_symbolic()) return bool(a) ? b : a;
  if (!b.is_symbolic()) return bool(b) ? a : b;
  return SymBool(sym::logical_and(a.expr(), b.expr()), common_env(a, b));
}

SymBool operator||(const SymBool& a, const SymBool& b) {
  if (!a.is_symbolic()) return bool(a) ? a : b;
  if (!b.is_symbolic()) return bool(b) ? b : a;
  return SymBool(sym::logical_or(a.expr(), b.expr()), common_env(a, b));
}

SymBool operator!(const SymBool& a) {
  if (!a.is_symbolic()) return !bool(a);
  return SymBool(sym::logical_not(a.expr()), a.env());
}

bool statically_true(const SymBool& condition) { return condition.maybe_constant().value_or(false); }

namespace sym {
namespace {

StaticQueryObserver& static_query_observer() {
  return support::thread_data([] { return new StaticQueryObserver; });
}

}  // namespace

void set_static_query_observer(StaticQueryObserver observer) { static_query_observer() = std::move(observer); }

std::optional<int64_t> statically_known_int(Expr expr) {
  Expr simple = expr.pool().simplify(expr);
  std::optional<int64_t> known = simple.is_constant() ? std::optional(simple.constant()) : std::nullopt;
  if (static_query_observer()) static_query_observer()(expr, known);
  return known;
}

}  // namespace sym

std::optional<int64_t> statically_known_int(const SymInt& value) {
  return value.is_symbolic() ? sym::statically_known_int(value.expr()) : value.maybe_constant();
}

std::string str(std::span<const SymInt> list) {
  std::string text = "[";
  for (const SymInt& item : list) text += (text.size() == 1 ? "" : ", ") + item.str();
  return text + "]";
}

}  // namespace tenon
