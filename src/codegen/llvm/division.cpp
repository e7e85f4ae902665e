#include "division.h"

namespace tenon::codegen {

using llvm::Value;

namespace {

Value* constant(Value* like, int64_t number) {
  return llvm::ConstantInt::get(like->getType(), static_cast<uint64_t>(number), true);
}

llvm::Type* with_element(Value* like, llvm::Type* element) {
  auto* vector = llvm::dyn_cast<llvm::VectorType>(like->getType());
  return vector ? llvm::VectorType::get(element, vector->getElementCount()) : element;
}

// The floor of a/b, computed in double: exact while |a| < 2^52. Out-of-range conversions are undefined in LLVM, so what
// a zero divisor gives is replaced first.
Value* floor_of_ratio(Context& context, Value* a, Value* b) {
  llvm::IRBuilder<>& builder = context.b;
  llvm::Type* real = with_element(a, builder.getDoubleTy());
  Value* safe = builder.CreateSelect(builder.CreateICmpEQ(b, constant(b, 0)), constant(b, 1), b);
  Value* ratio = builder.CreateFDiv(builder.CreateSIToFP(a, real), builder.CreateSIToFP(safe, real));
  return builder.CreateFPToSI(builder.CreateUnaryIntrinsic(llvm::Intrinsic::floor, ratio), a->getType());
}

}  // namespace

DivisionResult index_floor_div(Context& context, Value* a, Value* b, bool small) {
  llvm::IRBuilder<>& builder = context.b;
  auto* fixed = llvm::dyn_cast<llvm::Constant>(b);
  if (fixed && fixed->getType()->isVectorTy()) fixed = fixed->getSplatValue();
  auto* number = llvm::dyn_cast_or_null<llvm::ConstantInt>(fixed);
  if (number && number->getValue().isPowerOf2()) {
    const int64_t divisor = number->getSExtValue();
    return {builder.CreateAShr(a, constant(a, __builtin_ctzll(static_cast<uint64_t>(divisor)))),
            builder.CreateAnd(a, constant(a, divisor - 1))};
  }
  if (!a->getType()->isVectorTy()) {
    Value* safe = builder.CreateSelect(builder.CreateICmpEQ(b, constant(b, 0)), constant(b, 1), b);
    Value* quotient = builder.CreateSDiv(a, safe);
    Value* remainder = builder.CreateSub(a, builder.CreateMul(quotient, safe));
    Value* down = builder.CreateAnd(builder.CreateICmpNE(remainder, constant(a, 0)),
                                    builder.CreateICmpSLT(builder.CreateXor(remainder, safe), constant(a, 0)));
    return {builder.CreateSub(quotient, builder.CreateZExt(down, a->getType())),
            builder.CreateAdd(remainder, builder.CreateSelect(down, safe, constant(a, 0)))};
  }
  Value* quotient = floor_of_ratio(context, a, b);
  Value* remainder = builder.CreateSub(a, builder.CreateMul(quotient, b));
  if (!small) {
    // The first quotient may be off by the rounding of a; what is left is small enough for a second, unless b itself is
    // huge, and then the quotient is off by one at most.
    quotient = builder.CreateAdd(quotient, floor_of_ratio(context, remainder, b));
    remainder = builder.CreateSub(a, builder.CreateMul(quotient, b));
    Value* zero = constant(a, 0);
    Value* low = builder.CreateAnd(builder.CreateICmpNE(remainder, zero),
                                   builder.CreateICmpSLT(builder.CreateXor(remainder, b), zero));
    quotient = builder.CreateSub(quotient, builder.CreateZExt(low, a->getType()));
    remainder = builder.CreateAdd(remainder, builder.CreateSelect(low, b, zero));
    Value* magnitude = builder.CreateBinaryIntrinsic(llvm::Intrinsic::abs, remainder, builder.getFalse());
    Value* divisor = builder.CreateBinaryIntrinsic(llvm::Intrinsic::abs, b, builder.getFalse());
    Value* high = builder.CreateICmpSGE(magnitude, divisor);
    quotient = builder.CreateAdd(quotient, builder.CreateZExt(high, a->getType()));
    remainder = builder.CreateSub(remainder, builder.CreateSelect(high, b, zero));
  }
  return {quotient, remainder};
}

DivisionResult truncating_division(Context& context, Dtype dtype, Value* a, Value* b) {
  llvm::IRBuilder<>& builder = context.b;
  llvm::Type* type = a->getType();
  Value* zero = constant(a, 0);
  Value* by_zero = builder.CreateICmpEQ(b, zero);
  Value* quotient;
  if (dtype == Dtype::Int64 || !type->isVectorTy()) {
    Value* unsafe = by_zero;
    if (traits(dtype).is_signed) {
      const unsigned width = type->getScalarSizeInBits();
      Value* least = constant(a, static_cast<int64_t>(uint64_t{1} << 63) >> (64 - width));
      unsafe = builder.CreateOr(
          unsafe, builder.CreateAnd(builder.CreateICmpEQ(a, least), builder.CreateICmpEQ(b, constant(b, -1))));
    }
    // Divided by 1 instead, the smallest number is its own quotient.
    Value* safe = builder.CreateSelect(unsafe, constant(b, 1), b);
    quotient = traits(dtype).is_signed ? builder.CreateSDiv(a, safe) : builder.CreateUDiv(a, safe);
  } else {
    llvm::Type* wide = with_element(a, builder.getInt32Ty());
    llvm::Type* real =
        with_element(a, type->getScalarSizeInBits() <= 16 ? builder.getFloatTy() : builder.getDoubleTy());
    Value* safe = builder.CreateSelect(by_zero, constant(b, 1), b);
    auto to_real = [&](Value* v) {
      return traits(dtype).is_signed ? builder.CreateSIToFP(v, real) : builder.CreateUIToFP(v, real);
    };
    Value* ratio = builder.CreateFDiv(to_real(a), to_real(safe));
    if (dtype == Dtype::Int32) {
      // 2^31 does not fit; as int64 it wraps to the smallest number.
      quotient = builder.CreateTrunc(builder.CreateFPToSI(ratio, with_element(a, builder.getInt64Ty())), type);
    } else {
      quotient = builder.CreateTrunc(builder.CreateFPToSI(ratio, wide), type);
    }
  }
  quotient = builder.CreateSelect(by_zero, zero, quotient);
  Value* remainder = builder.CreateSub(a, builder.CreateMul(quotient, b));
  remainder = builder.CreateSelect(by_zero, zero, remainder);
  return {quotient, remainder};
}

}  // namespace tenon::codegen
