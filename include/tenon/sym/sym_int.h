// `SymInt`: a plain number, or an expression with the `ShapeEnv` that it belongs to. A plain one costs what an
// int64_t costs. Arithmetic between plain numbers is arithmetic; with an expression it builds an expression. A result
// that 64 bits do not hold is an `OverflowError`: of plain numbers at once, of an expression where its value is taken.
// A comparison is a `SymBool`. Turning either into a plain value pins it: the answer is taken from what is known or
// from the hint, and a guard is recorded that names the line. A `SymInt` becomes an `int64_t` by itself (and nothing
// else does), so that `int64_t n = x.size(0)` can be written; arithmetic and comparisons with plain integers stay
// symbolic.
//
//   SymInt n = x.size(0);
//   SymInt half = n / 2;                 // floor division, as Python's //
//   SymBool more = 2 * n + 1 > 4;        // asks nothing
//   if (bool(n > 4)) half += 1;          // guards n > 4
//   int64_t fixed = n;                   // guards n == its hint: another size compiles again
#pragma once

#include <tenon/support/intrusive.h>
#include <tenon/support/small_vector.h>
#include <tenon/sym/expr.h>
#include <tenon/sym/shape_env.h>

#include <concepts>

namespace tenon {

class SymBool;

class SymInt {
 public:
  SymInt() = default;
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  SymInt(T value) : value_(static_cast<int64_t>(value)) {}
  // An expression of `env`'s pool; a constant one becomes a plain number.
  SymInt(sym::Expr expr, Ref<sym::ShapeEnv> env);

  bool is_symbolic() const { return static_cast<bool>(env_); }
  // The number, if it is plain or known to have a single value; never guards.
  std::optional<int64_t> maybe_constant() const;
  // Pins: guards that the value is its hint (a DataDependentError without one). To exactly int64_t: a template takes no
  // further conversion, so that a size does not turn into an int, a double or a bool unseen.
  template <std::same_as<int64_t> T>
  operator T() const {
    return is_symbolic() ? pin() : value_;
  }
  // The same, said aloud.
  int64_t plain() const { return is_symbolic() ? pin() : value_; }
  // The hint, without a guard; nothing for an unbacked value. For heuristics only.
  std::optional<int64_t> hint() const;

  const sym::Expr& expr() const { return expr_; }         // undefined when plain
  const Ref<sym::ShapeEnv>& env() const { return env_; }  // null when plain
  // The value as an expression of `env`'s pool, plain numbers included.
  sym::Expr to_expr(sym::ShapeEnv& env) const;

  std::string str() const;
  // Same number or same expression; asks nothing and guards nothing.
  bool same(const SymInt& other) const;

 private:
  int64_t pin() const;  // of a symbolic one

  int64_t value_ = 0;
  sym::Expr expr_;
  Ref<sym::ShapeEnv> env_;
};

class SymBool {
 public:
  SymBool(bool value) : value_(value) {}
  SymBool(sym::Expr expr, Ref<sym::ShapeEnv> env);

  bool is_symbolic() const { return static_cast<bool>(env_); }
  std::optional<bool> maybe_constant() const;  // never guards
  explicit operator bool() const { return is_symbolic() ? decide() : value_; }
  const sym::Expr& expr() const { return expr_; }
  const Ref<sym::ShapeEnv>& env() const { return env_; }
  std::string str() const;

 private:
  bool decide() const;

  bool value_ = false;
  sym::Expr expr_;
  Ref<sym::ShapeEnv> env_;
};

// The operators where an operand is symbolic; of plain ones where the result does not fit, which is an Error.
namespace sym::detail {
SymInt add(const SymInt& a, const SymInt& b);
SymInt subtract(const SymInt& a, const SymInt& b);
SymInt multiply(const SymInt& a, const SymInt& b);
SymInt divide(const SymInt& a, const SymInt& b);
SymInt remainder(const SymInt& a, const SymInt& b);
SymBool equal(const SymInt& a, const SymInt& b);
SymBool less(const SymInt& a, const SymInt& b);
inline bool both_plain(const SymInt& a, const SymInt& b) { return !a.is_symbolic() && !b.is_symbolic(); }
}  // namespace sym::detail

// An operand is a SymInt, the other one too or a plain integer. Exact types: beside `n * 2`, the built-in product of
// what `n` converts to would be as good a match as one of two SymInts.
template <typename T>
concept PlainInteger = std::integral<T> && !std::same_as<T, bool>;
template <typename A, typename B>
concept IntOperands = (std::same_as<A, SymInt> && (std::same_as<B, SymInt> || PlainInteger<B>)) ||
                      (PlainInteger<A> && std::same_as<B, SymInt>);

#define TENON_INT_OPERATOR(sign, function, overflows)                                            \
  template <typename A, typename B>                                                              \
    requires IntOperands<A, B>                                                                   \
  SymInt operator sign(const A& left, const B& right) {                                          \
    const SymInt &a = left, &b = right;                                                          \
    int64_t result;                                                                              \
    if (sym::detail::both_plain(a, b) && !overflows(int64_t(a), int64_t(b), &result)) [[likely]] \
      return result;                                                                             \
    return sym::detail::function(a, b);                                                          \
  }
TENON_INT_OPERATOR(+, add, __builtin_add_overflow)
TENON_INT_OPERATOR(-, subtract, __builtin_sub_overflow)
TENON_INT_OPERATOR(*, multiply, __builtin_mul_overflow)
#undef TENON_INT_OPERATOR
template <typename A, typename B>
  requires IntOperands<A, B>
SymInt operator/(const A& a, const B& b) {  // rounds towards minus infinity
  return sym::detail::divide(a, b);
}
template <typename A, typename B>
  requires IntOperands<A, B>
SymInt operator%(const A& a, const B& b) {  // sign of the divisor
  return sym::detail::remainder(a, b);
}
SymInt operator-(const SymInt& a);
inline SymInt operator+(const SymInt& a) { return a; }
inline SymInt& operator+=(SymInt& a, const SymInt& b) { return a = a + b; }
inline SymInt& operator-=(SymInt& a, const SymInt& b) { return a = a - b; }
inline SymInt& operator*=(SymInt& a, const SymInt& b) { return a = a * b; }
SymInt min(const SymInt& a, const SymInt& b);
SymInt max(const SymInt& a, const SymInt& b);
SymBool operator!(const SymBool& a);
#define TENON_INT_COMPARISON(sign, otherwise)                             \
  template <typename A, typename B>                                       \
    requires IntOperands<A, B>                                            \
  SymBool operator sign(const A& left, const B& right) {                  \
    const SymInt &a = left, &b = right;                                   \
    if (sym::detail::both_plain(a, b)) return int64_t(a) sign int64_t(b); \
    return otherwise;                                                     \
  }
TENON_INT_COMPARISON(==, sym::detail::equal(a, b))
TENON_INT_COMPARISON(!=, !sym::detail::equal(a, b))
TENON_INT_COMPARISON(<, sym::detail::less(a, b))
TENON_INT_COMPARISON(>, sym::detail::less(b, a))
TENON_INT_COMPARISON(<=, !sym::detail::less(b, a))
TENON_INT_COMPARISON(>=, !sym::detail::less(a, b))
#undef TENON_INT_COMPARISON
SymBool operator&&(const SymBool& a, const SymBool& b);
SymBool operator||(const SymBool& a, const SymBool& b);
// Beside a plain bool; without these the built-in operators would compete.
inline SymBool operator&&(bool a, const SymBool& b) { return SymBool(a) && b; }
inline SymBool operator&&(const SymBool& a, bool b) { return a && SymBool(b); }
inline SymBool operator||(bool a, const SymBool& b) { return SymBool(a) || b; }
inline SymBool operator||(const SymBool& a, bool b) { return a || SymBool(b); }

// True only if it is known without asking; never guards.
bool statically_true(const SymBool& condition);
// The value if it is known without asking; for passes.
std::optional<int64_t> statically_known_int(const SymInt& value);
namespace sym {
std::optional<int64_t> statically_known_int(Expr expr);
// Called on this thread for every expression that a pass asks about, with the answer. An empty one ends it.
using StaticQueryObserver = std::function<void(const Expr&, std::optional<int64_t>)>;
void set_static_query_observer(StaticQueryObserver observer);
}  // namespace sym

// A list of symbolic numbers, as sizes and strides are: from a braced list, a vector of numbers, or a span.
class SymInts : public SmallVector<SymInt, 5> {
 public:
  using SmallVector<SymInt, 5>::SmallVector;
  SymInts() = default;
  SymInts(std::span<const int64_t> numbers) : SmallVector(numbers.begin(), numbers.end()) {}
  SymInts(const std::vector<int64_t>& numbers) : SmallVector(numbers.begin(), numbers.end()) {}
  SymInts(const std::vector<SymInt>& numbers) : SmallVector(numbers.begin(), numbers.end()) {}
};

std::string str(std::span<const SymInt> list);  // "[2, s0, 3]"

}  // namespace tenon

// The environment makes both kinds of numbers.
#include <tenon/sym/sym_float.h>
