#include "convert.h"

#include <cmath>

namespace tenon::codegen {

using llvm::Value;

namespace {

llvm::Type* like(Value* value, llvm::Type* element) {
  auto* vector = llvm::dyn_cast<llvm::VectorType>(value->getType());
  return vector ? llvm::VectorType::get(element, vector->getElementCount()) : element;
}

Real as_real(Context& context, Value* value) { return {&context, value}; }

// A float that rounds to any narrower type as the double does: where the conversion is inexact, the last bit of the
// truncated value is set ("round to odd").
Real narrow_to_odd(Real wide) {
  Real near = narrow(wide);
  Real back = widen(near);
  Whole pattern = bits(near);
  auto number_of = [&](Truth condition) -> Whole {
    return {near.context, near.context->b.CreateZExt(condition.value, pattern.value->getType())};
  };
  Truth inexact = (back < wide) | (back > wide);
  Whole truncated = pattern - number_of(abs(back) > abs(wide));
  return from_bits(near, truncated | number_of(inexact));
}

Value* float_to_bfloat16(Context& context, Value* value) {
  Real x = as_real(context, value);
  Whole u = bits(x);
  Whole rounded = u + ((shift_right_unsigned(u, 16) & 1) + 0x7fff);
  Whole quiet = u | 0x400000;
  Whole high = shift_right_unsigned(select(is_nan(x), quiet, rounded), 16);
  return context.b.CreateTrunc(high.value, like(value, context.b.getInt16Ty()));
}

Value* bfloat16_to_float(Context& context, Value* raw) {
  Value* wide = context.b.CreateZExt(raw, like(raw, context.b.getInt32Ty()));
  return context.b.CreateBitCast(context.b.CreateShl(wide, 16), like(raw, context.b.getFloatTy()));
}

Value* float16_to_float(Context& context, Value* raw) {
  llvm::IRBuilder<>& b = context.b;
  if (context.target.has_half)
    return b.CreateFPExt(b.CreateBitCast(raw, like(raw, b.getHalfTy())), like(raw, b.getFloatTy()));
  Whole h{&context, b.CreateZExt(raw, like(raw, b.getInt32Ty()))};
  Real zero{&context, llvm::Constant::getNullValue(like(raw, b.getFloatTy()))};
  // The exponent is re-biased by a multiplication, which also normalises subnormal numbers.
  Whole magnitude = (h & 0x7fff) << 13;
  Real scaled = from_bits(zero, magnitude) * 0x1p112;
  Whole special = bits(scaled) | 0x7f800000;
  Truth is_special = magnitude > (0x7c00 << 13) - 1;
  Whole quiet = select(magnitude > (0x7c00 << 13), special | 0x400000, special);
  return from_bits(zero, select(is_special, quiet, bits(scaled)) | ((h & 0x8000) << 16)).value;
}

Value* float_to_float16(Context& context, Value* value) {
  llvm::IRBuilder<>& b = context.b;
  llvm::Type* result = like(value, b.getInt16Ty());
  if (context.target.has_half) return b.CreateBitCast(b.CreateFPTrunc(value, like(value, b.getHalfTy())), result);
  Real x = as_real(context, value);
  Whole u = bits(abs(x));
  Whole normal = shift_right_unsigned(u + ((shift_right_unsigned(u, 13) & 1) + 0xfff), 13) - (112 << 10);
  // The sum with 1/2 rounds at the last place of a subnormal half.
  Whole subnormal = bits(abs(x) + 0.5) - 0x3f000000;
  Whole magnitude = select(u < (113 << 23), subnormal, normal);
  magnitude = select(magnitude > 0x7bff, whole(magnitude, 0x7c00), magnitude);
  Whole nan = (shift_right_unsigned(u, 13) & 0x3ff) | 0x7e00;
  magnitude = select(is_nan(x), nan, magnitude);
  return b.CreateTrunc((magnitude | (shift_right_unsigned(bits(x), 16) & 0x8000)).value, result);
}

Value* float8_e4m3fn_to_float(Context& context, Value* raw) {
  llvm::IRBuilder<>& b = context.b;
  Whole h{&context, b.CreateZExt(raw, like(raw, b.getInt32Ty()))};
  Real zero{&context, llvm::Constant::getNullValue(like(raw, b.getFloatTy()))};
  // As of a half, with a smaller bias.
  Whole magnitude = (h & 0x7f) << 20;
  Whole number = bits(from_bits(zero, magnitude) * 0x1p120);
  Truth is_nan = magnitude > (0x7e << 20);
  return from_bits(zero, select(is_nan, whole(number, 0x7fc00000), number) | ((h & 0x80) << 24)).value;
}

Value* float8_e5m2_to_float(Context& context, Value* raw) {
  llvm::IRBuilder<>& b = context.b;
  return float16_to_float(context, b.CreateShl(b.CreateZExt(raw, like(raw, b.getInt16Ty())), 8));
}

// As to float16; what numbers above `most` become is `above`, what a NaN becomes 0x7f.
Value* float_to_float8(Context& context, Value* value, int mantissa, int least, int most, int above) {
  llvm::IRBuilder<>& b = context.b;
  Real x = as_real(context, value);
  const int shift = 23 - mantissa, bias = 127 + least;  // `least`: the exponent of the smallest normal number
  Whole u = bits(abs(x));
  Whole normal = shift_right_unsigned(u + ((shift_right_unsigned(u, shift) & 1) + ((1 << (shift - 1)) - 1)), shift) -
                 ((bias - 1) << mantissa);
  // The sum with this power of two rounds at the last place of a subnormal.
  const double power = std::ldexp(1, 23 + least - mantissa);
  Whole subnormal = bits(abs(x) + power) - ((127 + 23 + least - mantissa) << 23);
  Whole magnitude = select(u < (bias << 23), subnormal, normal);
  magnitude = select(magnitude > most, whole(magnitude, above), magnitude);
  magnitude = select(is_nan(x), whole(magnitude, 0x7f), magnitude);
  return b.CreateTrunc((magnitude | (shift_right_unsigned(bits(x), 24) & 0x80)).value, like(value, b.getInt8Ty()));
}

Value* to_float(Context& context, Value* value) {
  return value->getType()->getScalarType()->isDoubleTy() ? narrow_to_odd(as_real(context, value)).value : value;
}

Value* real_to_integer(Context& context, Dtype to, Value* value) {
  llvm::IRBuilder<>& b = context.b;
  llvm::Type* wide = like(value, to == Dtype::Int64 ? b.getInt64Ty() : b.getInt32Ty());
  Value* number = b.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {wide, value->getType()}, {value});
  return b.CreateTrunc(number, like(value, compute_type(context, to)));
}

}  // namespace

llvm::Type* storage_type(Context& context, Dtype dtype) {
  if (dtype == Dtype::Float32) return context.b.getFloatTy();
  if (dtype == Dtype::Float64) return context.b.getDoubleTy();
  return context.b.getIntNTy(static_cast<unsigned>(size_of(dtype)) * 8);
}

llvm::Type* compute_type(Context& context, Dtype dtype) {
  if (dtype == Dtype::Bool) return context.b.getInt1Ty();
  return storage_type(context, compute_dtype(dtype));
}

Value* from_storage(Context& context, Dtype dtype, Value* raw) {
  switch (dtype) {
    case Dtype::Bool: return context.b.CreateICmpNE(raw, llvm::Constant::getNullValue(raw->getType()));
    case Dtype::Float16: return float16_to_float(context, raw);
    case Dtype::BFloat16: return bfloat16_to_float(context, raw);
    case Dtype::Float8E4M3FN: return float8_e4m3fn_to_float(context, raw);
    case Dtype::Float8E5M2: return float8_e5m2_to_float(context, raw);
    default: return raw;
  }
}

Value* to_storage(Context& context, Dtype dtype, Value* value) {
  switch (dtype) {
    case Dtype::Bool: return context.b.CreateZExt(value, like(value, context.b.getInt8Ty()));
    case Dtype::Float16: return float_to_float16(context, to_float(context, value));
    case Dtype::BFloat16: return float_to_bfloat16(context, to_float(context, value));
    case Dtype::Float8E4M3FN: return float_to_float8(context, to_float(context, value), 3, -6, 0x7e, 0x7e);
    case Dtype::Float8E5M2: return float_to_float8(context, to_float(context, value), 2, -14, 0x7b, 0x7c);
    default: return value;
  }
}

Value* cast_value(Context& context, Dtype from, Dtype to, Value* value) {
  llvm::IRBuilder<>& b = context.b;
  if (is_narrow(to)) {
    Value* real = is_floating(from) ? value : cast_value(context, from, Dtype::Float32, value);
    return from_storage(context, to, to_storage(context, to, real));
  }
  llvm::Type* type = like(value, compute_type(context, to));
  if (is_floating(from)) {
    if (to == Dtype::Bool) return b.CreateFCmpUNE(value, llvm::Constant::getNullValue(value->getType()));
    if (!is_floating(to)) return real_to_integer(context, to, value);
    if (compute_dtype(from) == to) return value;
    return to == Dtype::Float64 ? b.CreateFPExt(value, type) : b.CreateFPTrunc(value, type);
  }
  if (to == Dtype::Bool) {
    return from == Dtype::Bool ? value : b.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
  }
  const bool is_signed = traits(from).is_signed;
  if (is_floating(to)) return is_signed ? b.CreateSIToFP(value, type) : b.CreateUIToFP(value, type);
  return is_signed ? b.CreateSExtOrTrunc(value, type) : b.CreateZExtOrTrunc(value, type);
}

}  // namespace tenon::codegen
