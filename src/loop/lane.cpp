#include <tenon/loop/builder.h>

namespace tenon::loop {

Lane number(Lane like, double value) {
  TENON_ASSERT(like.defined(), "number like an undefined lane");
  return like.builder().constant(value, like.dtype());
}

Lane select(Lane condition, Lane a, Lane b) {
  TENON_ASSERT(condition.defined(), "select by an undefined lane");
  return condition.builder().select(condition, a, b);
}

Lane cast(Lane a, Dtype dtype) {
  TENON_ASSERT(a.defined(), "cast of an undefined lane");
  return a.builder().cast(a, dtype);
}

namespace {

Lane unary(OpCode code, Lane a) {
  TENON_ASSERT(a.defined(), "{} of an undefined lane", traits(code).name);
  return a.builder().unary(code, a);
}

Lane binary(OpCode code, Lane a, Lane b) {
  TENON_ASSERT(a.defined() && b.defined(), "{} of an undefined lane", traits(code).name);
  return a.builder().binary(code, a, b);
}

}  // namespace

Lane operator-(Lane a) { return unary(OpCode::Neg, a); }
Lane operator!(Lane a) { return unary(OpCode::Not, a); }
Lane operator&(Lane a, Lane b) { return binary(OpCode::And, a, b); }
Lane operator|(Lane a, Lane b) { return binary(OpCode::Or, a, b); }
Lane operator^(Lane a, Lane b) { return binary(OpCode::Xor, a, b); }

#define TENON_ARITHMETIC(symbol, code)                                                     \
  Lane operator symbol(Lane a, Lane b) { return binary(OpCode::code, a, b); }              \
  Lane operator symbol(Lane a, double b) { return binary(OpCode::code, a, number(a, b)); } \
  Lane operator symbol(double a, Lane b) { return binary(OpCode::code, number(b, a), b); }
TENON_ARITHMETIC(+, Add)
TENON_ARITHMETIC(-, Sub)
TENON_ARITHMETIC(*, Mul)
TENON_ARITHMETIC(/, Div)
#undef TENON_ARITHMETIC

#define TENON_COMPARISON(symbol, code)                                        \
  Lane operator symbol(Lane a, Lane b) { return binary(OpCode::code, a, b); } \
  Lane operator symbol(Lane a, double b) { return binary(OpCode::code, a, number(a, b)); }
TENON_COMPARISON(<, Lt)
TENON_COMPARISON(<=, Le)
TENON_COMPARISON(>, Gt)
TENON_COMPARISON(>=, Ge)
TENON_COMPARISON(==, Eq)
TENON_COMPARISON(!=, Ne)
#undef TENON_COMPARISON

#define TENON_UNARY(function, code) \
  Lane function(Lane a) { return unary(OpCode::code, a); }
TENON_UNARY(abs, Abs)
TENON_UNARY(sign, Sign)
TENON_UNARY(floor, Floor)
TENON_UNARY(ceil, Ceil)
TENON_UNARY(trunc, Trunc)
TENON_UNARY(round, Round)
TENON_UNARY(sqrt, Sqrt)
TENON_UNARY(rsqrt, Rsqrt)
TENON_UNARY(reciprocal, Reciprocal)
TENON_UNARY(exp, Exp)
TENON_UNARY(exp2, Exp2)
TENON_UNARY(expm1, Expm1)
TENON_UNARY(log, Log)
TENON_UNARY(log2, Log2)
TENON_UNARY(log10, Log10)
TENON_UNARY(log1p, Log1p)
TENON_UNARY(sin, Sin)
TENON_UNARY(cos, Cos)
TENON_UNARY(tan, Tan)
TENON_UNARY(asin, Asin)
TENON_UNARY(acos, Acos)
TENON_UNARY(atan, Atan)
TENON_UNARY(sinh, Sinh)
TENON_UNARY(cosh, Cosh)
TENON_UNARY(tanh, Tanh)
TENON_UNARY(asinh, Asinh)
TENON_UNARY(acosh, Acosh)
TENON_UNARY(atanh, Atanh)
TENON_UNARY(erf, Erf)
TENON_UNARY(erfc, Erfc)
TENON_UNARY(lgamma, LogGamma)
TENON_UNARY(sigmoid, Sigmoid)
TENON_UNARY(isnan, IsNan)
#undef TENON_UNARY

#define TENON_BINARY(function, code) \
  Lane function(Lane a, Lane b) { return binary(OpCode::code, a, b); }
TENON_BINARY(floor_div, FloorDiv)
TENON_BINARY(rem, Rem)
TENON_BINARY(mod, Mod)
TENON_BINARY(pow, Pow)
TENON_BINARY(atan2, Atan2)
TENON_BINARY(minimum, Min)
TENON_BINARY(maximum, Max)
#undef TENON_BINARY

}  // namespace tenon::loop
