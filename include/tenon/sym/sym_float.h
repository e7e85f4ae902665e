// `SymFloat`: a plain double, or a real expression with its `ShapeEnv`; to `double` what `SymInt` is to `int64_t`.
//
// A symbolic one is evaluated by the very functions that compute plain ones, so that both give the same bits.
// `SymInt / SymInt` is floor division; true division is `true_div`, or has a real operand.
//
//   SymFloat scale = true_div(x.sym_size(0), 3);
//   SymInt rows = floor(scale * 2.5);
//   double fixed = double(scale);           // guards that it is its hint, bit for bit
#pragma once

#include <tenon/sym/sym_int.h>

#include <source_location>

namespace tenon {

class SymFloat {
 public:
  SymFloat() = default;
  template <std::floating_point T>
  SymFloat(T value) : value_(static_cast<double>(value)) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  SymFloat(T value) : value_(static_cast<double>(value)) {}
  SymFloat(const SymInt& number);
  // An expression of `env`'s pool, made real; a constant one becomes a plain number.
  SymFloat(sym::Expr expr, Ref<sym::ShapeEnv> env);

  bool is_symbolic() const { return static_cast<bool>(env_); }
  // The number, if it is plain or known to have a single value; never guards.
  std::optional<double> maybe_constant() const;
  // Pins: guards that the value is its hint, NaN and the zero's sign included.
  explicit operator double() const { return is_symbolic() ? pin() : value_; }
  // The same, said aloud.
  double plain() const { return is_symbolic() ? pin() : value_; }
  // The hint, without a guard; nothing for an unbacked value.
  std::optional<double> hint() const;

  const sym::Expr& expr() const { return expr_; }         // undefined when plain
  const Ref<sym::ShapeEnv>& env() const { return env_; }  // null when plain
  sym::Expr to_expr(sym::ShapeEnv& env) const;

  std::string str() const;
  // Same bits (or both NaN) or same expression; asks nothing and guards nothing.
  bool same(const SymFloat& other) const;

 private:
  double pin() const;

  double value_ = 0;
  sym::Expr expr_;
  Ref<sym::ShapeEnv> env_;
};

// An operand is a SymFloat, or a SymInt meets a floating-point number.
template <typename A, typename B>
concept RealOperands =
    std::convertible_to<const A&, SymFloat> && std::convertible_to<const B&, SymFloat> &&
    (std::same_as<A, SymFloat> || std::same_as<B, SymFloat> || (std::same_as<A, SymInt> && std::floating_point<B>) ||
     (std::floating_point<A> && std::same_as<B, SymInt>));
template <typename T>
concept SymNumber = std::same_as<T, SymInt> || std::same_as<T, SymFloat>;

namespace sym::detail {
SymFloat unary_real(Op op, const SymFloat& a);
SymFloat binary_real(Op op, const SymFloat& a, const SymFloat& b);
SymBool compare_reals(Op op, const SymFloat& a, const SymFloat& b);
SymInt round_real(Op op, const SymFloat& a);
inline bool both_plain(const SymFloat& a, const SymFloat& b) { return !a.is_symbolic() && !b.is_symbolic(); }
}  // namespace sym::detail

// Plain operands are computed in place; the rest builds an expression.
#define TENON_REAL_OPERATOR(sign, Operation)                            \
  template <typename A, typename B>                                     \
    requires RealOperands<A, B>                                         \
  SymFloat operator sign(const A& left, const B& right) {               \
    const SymFloat &a = left, &b = right;                               \
    if (sym::detail::both_plain(a, b)) return double(a) sign double(b); \
    return sym::detail::binary_real(sym::Op::Operation, a, b);          \
  }
TENON_REAL_OPERATOR(+, RealAdd)
TENON_REAL_OPERATOR(-, RealSub)
TENON_REAL_OPERATOR(*, RealMul)
TENON_REAL_OPERATOR(/, RealDiv)
#undef TENON_REAL_OPERATOR
inline SymFloat operator-(const SymFloat& a) { return sym::detail::unary_real(sym::Op::RealNeg, a); }
template <typename B>
  requires RealOperands<SymFloat, B>
SymFloat& operator+=(SymFloat& a, const B& b) {
  return a = a + b;
}
template <typename B>
  requires RealOperands<SymFloat, B>
SymFloat& operator-=(SymFloat& a, const B& b) {
  return a = a - b;
}
template <typename B>
  requires RealOperands<SymFloat, B>
SymFloat& operator*=(SymFloat& a, const B& b) {
  return a = a * b;
}
template <typename B>
  requires RealOperands<SymFloat, B>
SymFloat& operator/=(SymFloat& a, const B& b) {
  return a = a / b;
}

// A comparison with NaN is false, `!=` is true.
#define TENON_REAL_COMPARISON(sign, Operation, left, right)             \
  template <typename A, typename B>                                     \
    requires RealOperands<A, B>                                         \
  SymBool operator sign(const A& a, const B& b) {                       \
    return sym::detail::compare_reals(sym::Op::Operation, left, right); \
  }
TENON_REAL_COMPARISON(==, RealEq, a, b)
TENON_REAL_COMPARISON(!=, RealNe, a, b)
TENON_REAL_COMPARISON(<, RealLt, a, b)
TENON_REAL_COMPARISON(>, RealLt, b, a)
TENON_REAL_COMPARISON(<=, RealLe, a, b)
TENON_REAL_COMPARISON(>=, RealLe, b, a)
#undef TENON_REAL_COMPARISON

SymFloat true_div(const SymInt& a, const SymInt& b);  // by zero: inf or NaN, as doubles divide
SymInt abs(const SymInt& a);
SymInt pow(const SymInt& base, const SymInt& exponent);  // an exponent of at least 0
template <std::same_as<SymFloat> T>
SymFloat abs(const T& a) {
  return sym::detail::unary_real(sym::Op::RealAbs, a);
}
template <typename A, typename B>
  requires RealOperands<A, B>
SymFloat pow(const A& a, const B& b) {
  return sym::detail::binary_real(sym::Op::RealPow, a, b);
}
template <typename A, typename B>
  requires RealOperands<A, B>
SymFloat min(const A& a, const B& b) {
  return sym::detail::binary_real(sym::Op::RealMin, a, b);
}
template <typename A, typename B>
  requires RealOperands<A, B>
SymFloat max(const A& a, const B& b) {
  return sym::detail::binary_real(sym::Op::RealMax, a, b);
}

// To integers. An Error (when evaluated, if symbolic) for NaN and what 64 bits do not hold.
inline SymInt floor(const std::same_as<SymFloat> auto& a) { return sym::detail::round_real(sym::Op::Floor, a); }
inline SymInt ceil(const std::same_as<SymFloat> auto& a) { return sym::detail::round_real(sym::Op::Ceil, a); }
inline SymInt round(const std::same_as<SymFloat> auto& a) {
  return sym::detail::round_real(sym::Op::Round, a);
}  // halves to even
inline SymInt trunc(const std::same_as<SymFloat> auto& a) { return sym::detail::round_real(sym::Op::Trunc, a); }
inline SymInt to_int(const std::same_as<SymFloat> auto& a) { return sym::detail::round_real(sym::Op::Trunc, a); }
SymInt to_int(const SymBool& a);  // 0 or 1
inline SymFloat to_float(const SymInt& a) { return SymFloat(a); }
SymBool is_integer(const SymFloat& a);

#define TENON_REAL_FUNCTION(name, Operation) \
  inline SymFloat name(const SymNumber auto& a) { return sym::detail::unary_real(sym::Op::Operation, a); }
TENON_REAL_FUNCTION(sqrt, Sqrt)
TENON_REAL_FUNCTION(sin, Sin)
TENON_REAL_FUNCTION(cos, Cos)
TENON_REAL_FUNCTION(tan, Tan)
TENON_REAL_FUNCTION(sinh, Sinh)
TENON_REAL_FUNCTION(cosh, Cosh)
TENON_REAL_FUNCTION(tanh, Tanh)
TENON_REAL_FUNCTION(asin, Asin)
TENON_REAL_FUNCTION(acos, Acos)
TENON_REAL_FUNCTION(atan, Atan)
TENON_REAL_FUNCTION(exp, Exp)
TENON_REAL_FUNCTION(log, Log)
TENON_REAL_FUNCTION(exp2, Exp2)
TENON_REAL_FUNCTION(log2, Log2)
#undef TENON_REAL_FUNCTION

// The user's promise about values. A plain condition that fails is an Error; a symbolic one is taken as true from here
// on, and asserted when the compiled function runs if it depends on data. Either text names this line. A graph whose
// assertion fails writes nothing back: what the function had changed in an argument before it is as it was.
void check(const SymBool& condition, const std::string& message = {},
           std::source_location where = std::source_location::current());
// `number >= 0`, and shape rules may take it as a size.
void check_is_size(const SymInt& number, const std::string& message = {},
                   std::source_location where = std::source_location::current());

}  // namespace tenon
