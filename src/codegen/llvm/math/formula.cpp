#include "formula.h"

#include <tenon/support/error.h>

#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

namespace tenon::codegen {

using llvm::Value;

namespace {

llvm::Type* integer_like(Value* value) {
  llvm::Type* type = value->getType();
  llvm::Type* scalar = llvm::IntegerType::get(type->getContext(), type->getScalarSizeInBits());
  return type->isVectorTy() ? llvm::VectorType::get(scalar, llvm::cast<llvm::VectorType>(type)->getElementCount())
                            : scalar;
}

llvm::Type* real_like(Value* value, bool is_double) {
  llvm::Type* type = value->getType();
  llvm::Type* scalar =
      is_double ? llvm::Type::getDoubleTy(type->getContext()) : llvm::Type::getFloatTy(type->getContext());
  return type->isVectorTy() ? llvm::VectorType::get(scalar, llvm::cast<llvm::VectorType>(type)->getElementCount())
                            : scalar;
}

Real real(Real like, Value* value) { return {like.context, value}; }
Truth compare(Real a, llvm::CmpInst::Predicate predicate, Real b) {
  return {a.context, a.context->b.CreateFCmp(predicate, a.value, b.value)};
}
Truth compare(Whole a, llvm::CmpInst::Predicate predicate, Whole b) {
  return {a.context, a.context->b.CreateICmp(predicate, a.value, b.value)};
}
Real intrinsic(llvm::Intrinsic::ID id, Real a) { return real(a, a.context->b.CreateUnaryIntrinsic(id, a.value)); }

int lane_count(Value* value) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return vector ? static_cast<int>(vector->getNumElements()) : 1;
}

Value* stack_slot(Context& context, llvm::Type* type) {
  llvm::Function* function = context.b.GetInsertBlock()->getParent();
  llvm::IRBuilder<> entry(&function->getEntryBlock(), function->getEntryBlock().begin());
  return entry.CreateAlloca(type);
}

}  // namespace

Real number(Real like, double value) { return real(like, llvm::ConstantFP::get(like.value->getType(), value)); }
Whole whole(Whole like, int64_t value) {
  return {like.context, llvm::ConstantInt::get(like.value->getType(), static_cast<uint64_t>(value), true)};
}

Real operator+(Real a, Real b) { return real(a, a.context->b.CreateFAdd(a.value, b.value)); }
Real operator-(Real a, Real b) { return real(a, a.context->b.CreateFSub(a.value, b.value)); }
Real operator*(Real a, Real b) { return real(a, a.context->b.CreateFMul(a.value, b.value)); }
Real operator/(Real a, Real b) { return real(a, a.context->b.CreateFDiv(a.value, b.value)); }
Real operator-(Real a) { return real(a, a.context->b.CreateFNeg(a.value)); }
Real operator+(Real a, double b) { return a + number(a, b); }
Real operator-(Real a, double b) { return a - number(a, b); }
Real operator*(Real a, double b) { return a * number(a, b); }
Real operator+(double a, Real b) { return number(b, a) + b; }
Real operator-(double a, Real b) { return number(b, a) - b; }
Real operator*(double a, Real b) { return number(b, a) * b; }
Real operator/(double a, Real b) { return number(b, a) / b; }

Real multiply_add(Real a, Real b, Real c) {
  if (!a.context->target.has_fma) return a * b + c;
  return real(a, a.context->b.CreateIntrinsic(llvm::Intrinsic::fma, {a.value->getType()}, {a.value, b.value, c.value}));
}
Real multiply_add(Real a, double b, Real c) { return multiply_add(a, number(a, b), c); }
Real multiply_add(Real a, Real b, double c) { return multiply_add(a, b, number(a, c)); }

Real polynomial(Real x, std::span<const double> coefficients) {
  Real sum = number(x, coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) sum = multiply_add(sum, x, coefficients[i]);
  return sum;
}

// The first guess is a subtraction of bit patterns, which negates the exponent and is 5% off at most (the hardware's
// estimates differ between processors, and so would results). One step for a float, two for a double, cube its error;
// the remainder of the quotient mends the rest.
Real quotient(Real a, Real b) {
  Whole magic = whole(bits(b), b.is_double() ? 0x7fde623822fc16e6 : 0x7ef311c7);
  Real inverse = from_bits(b, magic - bits(b));
  for (int step = 0; step < (b.is_double() ? 2 : 1); ++step) {
    Real error = multiply_add(-b, inverse, 1.0);
    inverse = multiply_add(inverse, multiply_add(error, error, error), inverse);
  }
  Real near = a * inverse;
  return multiply_add(multiply_add(-b, near, a), inverse, near);
}

Real abs(Real a) { return intrinsic(llvm::Intrinsic::fabs, a); }
Real square_root(Real a) { return intrinsic(llvm::Intrinsic::sqrt, a); }
Real floor(Real a) { return intrinsic(llvm::Intrinsic::floor, a); }
Real round_even(Real a) { return intrinsic(llvm::Intrinsic::roundeven, a); }
Real truncate(Real a) { return intrinsic(llvm::Intrinsic::trunc, a); }
Real copy_sign(Real magnitude, Real sign) {
  return real(magnitude,
              magnitude.context->b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude.value, sign.value));
}

Truth operator<(Real a, Real b) { return compare(a, llvm::CmpInst::FCMP_OLT, b); }
Truth operator<=(Real a, Real b) { return compare(a, llvm::CmpInst::FCMP_OLE, b); }
Truth operator>(Real a, Real b) { return compare(a, llvm::CmpInst::FCMP_OGT, b); }
Truth operator>=(Real a, Real b) { return compare(a, llvm::CmpInst::FCMP_OGE, b); }
Truth operator==(Real a, Real b) { return compare(a, llvm::CmpInst::FCMP_OEQ, b); }
Truth operator!=(Real a, Real b) { return compare(a, llvm::CmpInst::FCMP_UNE, b); }
Truth operator<(Real a, double b) { return a < number(a, b); }
Truth operator<=(Real a, double b) { return a <= number(a, b); }
Truth operator>(Real a, double b) { return a > number(a, b); }
Truth operator>=(Real a, double b) { return a >= number(a, b); }
Truth operator==(Real a, double b) { return a == number(a, b); }
Truth operator!=(Real a, double b) { return a != number(a, b); }
Truth is_nan(Real a) { return compare(a, llvm::CmpInst::FCMP_UNO, a); }
Truth sign_bit(Real a) { return bits(a) < 0; }
Truth operator&(Truth a, Truth b) { return {a.context, a.context->b.CreateAnd(a.value, b.value)}; }
Truth operator|(Truth a, Truth b) { return {a.context, a.context->b.CreateOr(a.value, b.value)}; }
Truth operator^(Truth a, Truth b) { return {a.context, a.context->b.CreateXor(a.value, b.value)}; }
Truth operator!(Truth a) { return {a.context, a.context->b.CreateNot(a.value)}; }
Real select(Truth condition, Real a, Real b) {
  return real(a, a.context->b.CreateSelect(condition.value, a.value, b.value));
}
Real select(Truth condition, Real a, double b) { return select(condition, a, number(a, b)); }
Real select(Truth condition, double a, Real b) { return select(condition, number(b, a), b); }
Whole select(Truth condition, Whole a, Whole b) {
  return {a.context, a.context->b.CreateSelect(condition.value, a.value, b.value)};
}

Whole bits(Real a) { return {a.context, a.context->b.CreateBitCast(a.value, integer_like(a.value))}; }
Real from_bits(Real like, Whole a) { return real(like, a.context->b.CreateBitCast(a.value, like.value->getType())); }
Whole operator+(Whole a, Whole b) { return {a.context, a.context->b.CreateAdd(a.value, b.value)}; }
Whole operator-(Whole a, Whole b) { return {a.context, a.context->b.CreateSub(a.value, b.value)}; }
Whole operator&(Whole a, Whole b) { return {a.context, a.context->b.CreateAnd(a.value, b.value)}; }
Whole operator|(Whole a, Whole b) { return {a.context, a.context->b.CreateOr(a.value, b.value)}; }
Whole operator^(Whole a, Whole b) { return {a.context, a.context->b.CreateXor(a.value, b.value)}; }
Whole operator+(Whole a, int64_t b) { return a + whole(a, b); }
Whole operator-(Whole a, int64_t b) { return a - whole(a, b); }
Whole operator&(Whole a, int64_t b) { return a & whole(a, b); }
Whole operator|(Whole a, int64_t b) { return a | whole(a, b); }
Whole operator<<(Whole a, int n) { return {a.context, a.context->b.CreateShl(a.value, whole(a, n).value)}; }
Whole operator>>(Whole a, int n) { return {a.context, a.context->b.CreateAShr(a.value, whole(a, n).value)}; }
Whole shift_right_unsigned(Whole a, int n) { return {a.context, a.context->b.CreateLShr(a.value, whole(a, n).value)}; }
Truth operator==(Whole a, int64_t b) { return compare(a, llvm::CmpInst::ICMP_EQ, whole(a, b)); }
Truth operator!=(Whole a, int64_t b) { return compare(a, llvm::CmpInst::ICMP_NE, whole(a, b)); }
Truth operator>(Whole a, int64_t b) { return compare(a, llvm::CmpInst::ICMP_SGT, whole(a, b)); }
Truth operator<(Whole a, int64_t b) { return compare(a, llvm::CmpInst::ICMP_SLT, whole(a, b)); }
Real to_real(Real like, Whole a) { return real(like, a.context->b.CreateSIToFP(a.value, like.value->getType())); }

Real widen(Real a) { return real(a, a.context->b.CreateFPExt(a.value, real_like(a.value, true))); }
Real narrow(Real a) { return real(a, a.context->b.CreateFPTrunc(a.value, real_like(a.value, false))); }

namespace {

// Adding 1.5 * 2^(digits - 1) leaves the whole number in the low bits of the sum; with the exponent's bias, they are
// the exponent of that power of two.
double rounding_constant(Real like) { return like.is_double() ? 0x1.8p52 + 1023 : 0x1.8p23 + 127; }

Nearest nearest_of_sum(Real sum) {
  const double magic = rounding_constant(sum);
  return {sum - magic, bits(sum) - bits(number(sum, magic)), bits(sum)};
}

}  // namespace

Nearest nearest(Real a) { return nearest_of_sum(a + rounding_constant(a)); }
Nearest nearest_product(Real a, double b) {
  return nearest_of_sum(multiply_add(a, number(a, b), rounding_constant(a)));
}

Real power_of_two(Real like, Whole n) {
  return like.is_double() ? from_bits(like, (n + 1023) << 52) : from_bits(like, (n + 127) << 23);
}

// What `raw` holds above its low bits is shifted out.
Real power_of_two(Nearest n) { return from_bits(n.real, n.raw << (n.real.is_double() ? 52 : 23)); }

Real call_lanes(const char* name, Real a, Real b) {
  Context& context = *a.context;
  llvm::Module* module = context.b.GetInsertBlock()->getModule();
  llvm::Type* pointer = context.b.getPtrTy();
  llvm::FunctionCallee callee = module->getOrInsertFunction(
      std::string("tenon_lanes_") + name + (a.is_double() ? "_f64" : "_f32"),
      llvm::FunctionType::get(context.b.getVoidTy(), {pointer, pointer, pointer, context.b.getInt64Ty()}, false));
  llvm::cast<llvm::Function>(callee.getCallee())->setDoesNotThrow();
  llvm::Type* type = a.value->getType();
  Value* out = stack_slot(context, type);
  Value* in_a = stack_slot(context, type);
  Value* in_b = b.value ? stack_slot(context, type) : in_a;
  context.b.CreateStore(a.value, in_a);
  if (b.value) context.b.CreateStore(b.value, in_b);
  context.b.CreateCall(callee, {out, in_a, in_b, context.b.getInt64(static_cast<uint64_t>(lane_count(a.value)))});
  return real(a, context.b.CreateLoad(type, out));
}

Real call_lanes(const char* name, Real a) { return call_lanes(name, a, Real{a.context, nullptr}); }

Real call_lanes_where(Truth where, const char* name, Real a, Real usual) {
  return call_lanes_where(where, name, a, Real{a.context, nullptr}, usual);
}

Real call_lanes_where(Truth where, const char* name, Real a, Real b, Real usual) {
  llvm::IRBuilder<>& builder = a.context->b;
  llvm::BasicBlock* before = builder.GetInsertBlock();
  llvm::Function* function = before->getParent();
  llvm::BasicBlock* rare = llvm::BasicBlock::Create(builder.getContext(), "rare", function);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(builder.getContext(), "after", function);
  Value* any = where.value->getType()->isVectorTy() ? builder.CreateOrReduce(where.value) : where.value;
  builder.CreateCondBr(any, rare, after, llvm::MDBuilder(builder.getContext()).createBranchWeights(1, 1 << 20));
  builder.SetInsertPoint(rare);
  Real exact = select(where, call_lanes(name, a, b), usual);
  builder.CreateBr(after);
  builder.SetInsertPoint(after);
  llvm::PHINode* phi = builder.CreatePHI(usual.value->getType(), 2);
  phi->addIncoming(usual.value, before);
  phi->addIncoming(exact.value, rare);
  return real(a, phi);
}

}  // namespace tenon::codegen
