#include "arithmetic.h"

#include "division.h"
#include "math/functions.h"

namespace tenon::codegen {

using llvm::Value;
using llvm::Intrinsic::ID;
using loop::OpCode;

namespace {

Value* constant(Value* like, int64_t number) {
  return llvm::ConstantInt::get(like->getType(), static_cast<uint64_t>(number), true);
}

Value* real_sign(Context& context, Value* a) {
  Real x{&context, a};
  Real none = number(x, 0.0);
  return select(x > 0.0, 1.0, select(x < 0.0, -1.0, none)).value;
}

// The remainder of division, exact. The quotient of moderate operands is off by one at most; the others go to libm.
Real real_remainder(Real a, Real b) {
  if (!a.context->target.has_fma) return call_lanes("fmod", a, b);
  Real x = abs(a), y = abs(b);
  Real quotient = truncate(x / y);
  Real rest = multiply_add(-quotient, y, x);
  rest = select(rest < 0.0, rest + y, rest);
  rest = select(rest >= y, rest - y, rest);
  // The rest is a multiple of the smallest number that either operand is a multiple of, so it is exact unless it would
  // be subnormal; such operands, infinities, NaN and huge quotients are the library's.
  const double limit = a.is_double() ? 0x1p51 : 0x1p22;
  const double tiny = a.is_double() ? 0x1p-900 : 0x1p-90;
  const double huge = a.is_double() ? 0x1p1020 : 0x1p120;
  Truth usual = (quotient < limit) & (y > tiny) & (y < huge) & (x < huge);
  return call_lanes_where(!usual, "fmod", a, b, copy_sign(rest, a));
}

Value* real_binary(Context& context, OpCode code, Value* left, Value* right) {
  Real a{&context, left}, b{&context, right};
  switch (code) {
    case OpCode::Add: return (a + b).value;
    case OpCode::Sub: return (a - b).value;
    case OpCode::Mul: return (a * b).value;
    case OpCode::Div: return (a / b).value;
    case OpCode::FloorDiv: return floor(a / b).value;
    case OpCode::Rem: return real_remainder(a, b).value;
    case OpCode::Mod: {
      Real rest = real_remainder(a, b);
      Truth differ = (rest != 0.0) & ((rest < 0.0) ^ (b < 0.0));
      return select(differ, rest + b, rest).value;
    }
    case OpCode::Max: return select(is_nan(a), a, select(a > b, a, b)).value;
    case OpCode::Min: return select(is_nan(a), a, select(a < b, a, b)).value;
    default: return math_function(context, code, left, right);
  }
}

// Square and multiply, a fixed number of steps: enough for the exponents that can give something other than 0 and ±1 by
// wrapping, which any bit of the exponent may do.
Value* integer_power(Context& context, Dtype dtype, Value* base, Value* exponent) {
  llvm::IRBuilder<>& b = context.b;
  const unsigned width = base->getType()->getScalarSizeInBits();
  const unsigned bits = traits(dtype).is_signed ? width - 1 : width;
  Value *zero = constant(base, 0), *one = constant(base, 1);
  Value *result = one, *factor = base;
  for (unsigned bit = 0; bit < bits; ++bit) {
    Value* set = b.CreateICmpNE(b.CreateAnd(exponent, constant(base, static_cast<int64_t>(uint64_t{1} << bit))), zero);
    result = b.CreateSelect(set, b.CreateMul(result, factor), result);
    if (bit + 1 < bits) factor = b.CreateMul(factor, factor);
  }
  if (!traits(dtype).is_signed) return result;
  Value* odd = b.CreateICmpNE(b.CreateAnd(exponent, one), zero);
  Value* minus_one = constant(base, -1);
  Value* of_minus_one = b.CreateSelect(odd, minus_one, one);
  Value* inverse = b.CreateSelect(b.CreateICmpEQ(base, one), one,
                                  b.CreateSelect(b.CreateICmpEQ(base, minus_one), of_minus_one, zero));
  return b.CreateSelect(b.CreateICmpSLT(exponent, zero), inverse, result);
}

Value* integer_binary(Context& context, OpCode code, Dtype dtype, Value* a, Value* b) {
  llvm::IRBuilder<>& builder = context.b;
  const bool is_signed = traits(dtype).is_signed;
  const unsigned width = a->getType()->getScalarSizeInBits();
  auto pick = [&](ID for_signed, ID for_unsigned) {
    return builder.CreateBinaryIntrinsic(is_signed ? for_signed : for_unsigned, a, b);
  };
  switch (code) {
    case OpCode::Add: return builder.CreateAdd(a, b);
    case OpCode::Sub: return builder.CreateSub(a, b);
    case OpCode::Mul: return builder.CreateMul(a, b);
    case OpCode::And: return builder.CreateAnd(a, b);
    case OpCode::Or: return builder.CreateOr(a, b);
    case OpCode::Xor: return builder.CreateXor(a, b);
    case OpCode::Pow: return integer_power(context, dtype, a, b);
    case OpCode::Max:
      return dtype == Dtype::Bool ? builder.CreateOr(a, b) : pick(llvm::Intrinsic::smax, llvm::Intrinsic::umax);
    case OpCode::Min:
      return dtype == Dtype::Bool ? builder.CreateAnd(a, b) : pick(llvm::Intrinsic::smin, llvm::Intrinsic::umin);
    case OpCode::Shl:
    case OpCode::Shr: {
      // Shifting by the width or more is undefined in LLVM.
      Value* in_range = builder.CreateICmpULT(b, constant(b, width));
      Value* amount = builder.CreateSelect(in_range, b, constant(b, code == OpCode::Shr && is_signed ? width - 1 : 0));
      if (code == OpCode::Shr && is_signed) return builder.CreateAShr(a, amount);
      Value* shifted = code == OpCode::Shl ? builder.CreateShl(a, amount) : builder.CreateLShr(a, amount);
      return builder.CreateSelect(in_range, shifted, constant(a, 0));
    }
    default: break;
  }
  auto [quotient, remainder] = truncating_division(context, dtype, a, b);
  Value* zero = constant(a, 0);
  Value* below =
      is_signed ? builder.CreateAnd(builder.CreateICmpNE(remainder, zero),
                                    builder.CreateICmpSLT(builder.CreateXor(remainder, b), zero))
                : static_cast<Value*>(llvm::Constant::getNullValue(llvm::CmpInst::makeCmpResultType(a->getType())));
  switch (code) {
    case OpCode::Div: return quotient;
    case OpCode::Rem: return remainder;
    case OpCode::FloorDiv: return builder.CreateSub(quotient, builder.CreateZExt(below, a->getType()));
    case OpCode::Mod: return builder.CreateAdd(remainder, builder.CreateSelect(below, b, zero));
    default: break;
  }
  TENON_ASSERT(false, "{} is not defined for integers", loop::traits(code).name);
}

Value* comparison(Context& context, OpCode code, Dtype dtype, Value* a, Value* b) {
  using Predicate = llvm::CmpInst::Predicate;
  struct Row {
    Predicate real, with_sign, without_sign;
  };
  constexpr Row rows[] = {
      {Predicate::FCMP_OEQ, Predicate::ICMP_EQ, Predicate::ICMP_EQ},
      {Predicate::FCMP_UNE, Predicate::ICMP_NE, Predicate::ICMP_NE},
      {Predicate::FCMP_OLT, Predicate::ICMP_SLT, Predicate::ICMP_ULT},
      {Predicate::FCMP_OLE, Predicate::ICMP_SLE, Predicate::ICMP_ULE},
      {Predicate::FCMP_OGT, Predicate::ICMP_SGT, Predicate::ICMP_UGT},
      {Predicate::FCMP_OGE, Predicate::ICMP_SGE, Predicate::ICMP_UGE},
  };
  const Row& row = rows[static_cast<int>(code) - static_cast<int>(OpCode::Eq)];
  if (is_floating(dtype)) return context.b.CreateFCmp(row.real, a, b);
  return context.b.CreateICmp(traits(dtype).is_signed ? row.with_sign : row.without_sign, a, b);
}

}  // namespace

bool makes_branches(const loop::Op& op) {
  if (!is_floating(op.dtype)) return false;
  return op.code == OpCode::Rem || op.code == OpCode::Mod || math_makes_branches(op.code);
}

Value* unary_operation(Context& context, OpCode code, Dtype dtype, Value* a) {
  llvm::IRBuilder<>& b = context.b;
  if (!is_floating(dtype)) {
    switch (code) {
      case OpCode::Neg: return b.CreateNeg(a);
      case OpCode::Abs:
        return traits(dtype).is_signed ? b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, b.getFalse()) : a;
      case OpCode::Not: return b.CreateNot(a);
      case OpCode::Sign: {
        Value* positive = b.CreateZExt(
            traits(dtype).is_signed ? b.CreateICmpSGT(a, constant(a, 0)) : b.CreateICmpNE(a, constant(a, 0)),
            a->getType());
        if (!traits(dtype).is_signed) return positive;
        return b.CreateSub(positive, b.CreateZExt(b.CreateICmpSLT(a, constant(a, 0)), a->getType()));
      }
      default: break;
    }
    TENON_ASSERT(false, "{} is not defined for {}", loop::traits(code).name, name(dtype));
  }
  Real x{&context, a};
  switch (code) {
    case OpCode::Neg: return (-x).value;
    case OpCode::Abs: return abs(x).value;
    case OpCode::Sign: return real_sign(context, a);
    case OpCode::Floor: return floor(x).value;
    case OpCode::Ceil: return b.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, a);
    case OpCode::Trunc: return truncate(x).value;
    case OpCode::Round: return round_even(x).value;
    case OpCode::Sqrt: return square_root(x).value;
    case OpCode::Rsqrt: return (1.0 / square_root(x)).value;
    case OpCode::Reciprocal: return (1.0 / x).value;
    case OpCode::IsNan: return is_nan(x).value;
    default: return math_function(context, code, a, nullptr);
  }
}

Value* binary_operation(Context& context, OpCode code, Dtype dtype, Value* a, Value* b) {
  if (code >= OpCode::Eq && code <= OpCode::Ge) return comparison(context, code, dtype, a, b);
  return is_floating(dtype) ? real_binary(context, code, a, b) : integer_binary(context, code, dtype, a, b);
}

}  // namespace tenon::codegen
