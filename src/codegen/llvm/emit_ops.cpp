// Operations: each is emitted once per part, in the outermost scope where its operands are known.
#include "arithmetic.h"
#include "convert.h"
#include "emitter.h"

#include <tenon/core/philox.h>

#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

namespace tenon::codegen {

using llvm::Value;
using loop::Op;
using loop::OpCode;

Value* Emitter::splat(Value* scalar, int level) {
  return at(place_of(level), [&] { return b_.CreateVectorSplat(static_cast<unsigned>(target_.lanes), scalar); });
}

Value* Emitter::vector_part(const Parts& value, int part) {
  if (!value.parts[0]->getType()->isVectorTy()) return splat(value.parts[0], value.level);
  return value.parts[static_cast<size_t>(part)];
}

Value* Emitter::constant_of(const Op& op) {
  llvm::Type* type = compute_type(context_, op.dtype);
  if (is_floating(op.dtype)) return llvm::ConstantFP::get(type, op.number.to_real());
  const int64_t number = op.number.to_integer();
  return llvm::ConstantInt::get(type, op.dtype == Dtype::Bool ? number != 0 : static_cast<uint64_t>(number), true);
}

Value* Emitter::parameter_of(const Op& op) {
  Value* raw = scalars_[static_cast<size_t>(op.parameter)];
  if (!is_floating(op.dtype)) return cast_value(context_, Dtype::Int64, op.dtype, raw);
  return cast_value(context_, Dtype::Float64, op.dtype, b_.CreateBitCast(raw, b_.getDoubleTy()));
}

Value* Emitter::any_lane(Value* condition) {
  if (!condition->getType()->isVectorTy()) return condition;
  if (vector_->mask) condition = b_.CreateAnd(condition, vector_->mask);
  return b_.CreateOrReduce(condition);
}

llvm::BasicBlock* Emitter::begin_rare(Value* condition) {
  llvm::BasicBlock* rare = llvm::BasicBlock::Create(b_.getContext(), "rare", function_);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(b_.getContext(), "after", function_);
  b_.CreateCondBr(condition, rare, after, llvm::MDBuilder(b_.getContext()).createBranchWeights(1, 1 << 20));
  b_.SetInsertPoint(rare);
  return after;
}

void Emitter::end_rare(llvm::BasicBlock* after) {
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

void Emitter::emit_check(const Op& op) {
  llvm::FunctionCallee report = module_.getOrInsertFunction(
      "tenon_check_failed", llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), b_.getInt64Ty()}, false));
  llvm::cast<llvm::Function>(report.getCallee())->setDoesNotThrow();
  const Parts& condition = value(op.operands[0]);
  Value* failed = nullptr;
  for (Value* part : condition.parts) {
    Value* wrong = b_.CreateNot(part);
    failed = failed ? b_.CreateOr(failed, wrong) : wrong;
  }
  llvm::BasicBlock* after = begin_rare(any_lane(failed));
  b_.CreateCall(report, {function_->getArg(5), b_.getInt64(static_cast<uint64_t>(op.parameter))});
  end_rare(after);
}

void Emitter::emit_bind_index(const Op& op) {
  // The symbol belongs to the scope that holds the operation, so that its level is the same in every copy of the body.
  const size_t id = static_cast<size_t>(op.index.symbol_id());
  symbols_[id] = value(op.operands[0]);
  symbols_[id].level = symbol_levels_[id] = top();
}

void Emitter::emit_op(const Op& op) {
  switch (op.code) {
    case OpCode::Load: return emit_load(op);
    case OpCode::Store: return emit_store(op);
    case OpCode::Check: return emit_check(op);
    case OpCode::BindIndex: return emit_bind_index(op);
    case OpCode::Reduce: return emit_reduce(op);
    case OpCode::Constant: return define(op.result, {{constant_of(op)}, 0});
    case OpCode::Parameter: return define(op.result, {{at(place_of(0), [&] { return parameter_of(op); })}, 0});
    case OpCode::Index: {
      Parts result;
      result.level = level_of(op.index);
      if (!analysis_.varying(op.index)) {
        result.parts.push_back(scalar_index(op.index));
      } else {
        for (int part = 0; part < vector_->parts; ++part) result.parts.push_back(vector_index(op.index, part));
      }
      return define(op.result, std::move(result));
    }
    case OpCode::Random: return emit_random(op);
    default: return emit_computation(op);
  }
}

Value* Emitter::emit_one(const Op& op, llvm::ArrayRef<Value*> operands) {
  const Dtype dtype = analysis_.dtype(op.operands[0]);
  if (op.code == OpCode::Select) return b_.CreateSelect(operands[0], operands[1], operands[2]);
  if (op.code == OpCode::Cast) return cast_value(context_, dtype, op.has_rounding ? op.rounded : op.dtype, operands[0]);
  if (operands.size() == 1) return unary_operation(context_, op.code, dtype, operands[0]);
  return binary_operation(context_, op.code, dtype, operands[0], operands[1]);
}

void Emitter::emit_computation(const Op& op) {
  const int count = loop::traits(op.code).operands;
  Parts result;
  for (int i = 0; i < count; ++i) result.level = std::max(result.level, value(op.operands[i]).level);
  if (makes_branches(op)) result.level = top();
  const bool varying = analysis_.varying(op.result);
  at(place_of(result.level), [&] {
    for (int part = 0; part < (varying ? vector_->parts : 1); ++part) {
      llvm::SmallVector<Value*, 3> operands;
      for (int i = 0; i < count; ++i) {
        const Parts& operand = value(op.operands[i]);
        operands.push_back(varying ? vector_part(operand, part) : operand.parts[0]);
      }
      result.parts.push_back(emit_one(op, operands));
    }
  });
  define(op.result, std::move(result));
}

// One word of a block of four: every lane computes its own block, and keeps the word that it wants.
void Emitter::emit_random(const Op& op) {
  const bool varying = analysis_.varying(op.result);
  Parts result;
  result.level = std::max({level_of(op.index), value(op.operands[0]).level, value(op.operands[1]).level});
  auto number = [&](Value* like, uint64_t bits) { return llvm::ConstantInt::get(like->getType(), bits); };
  // Everything is in the low halves of 64-bit lanes: x86 multiplies 32×32→64 there.
  auto low = [&](Value* v) { return b_.CreateAnd(v, number(v, 0xFFFFFFFFu)); };
  auto high = [&](Value* v) { return b_.CreateLShr(v, number(v, 32)); };
  at(place_of(result.level), [&] {
    for (int part = 0; part < (varying ? vector_->parts : 1); ++part) {
      auto operand = [&](int i) {
        const Parts& given = value(op.operands[i]);
        return varying ? vector_part(given, part) : given.parts[0];
      };
      Value* element = varying ? vector_index(op.index, part) : scalar_index(op.index);
      Value *seed = operand(0), *offset = operand(1);
      Value* block = b_.CreateLShr(element, number(element, 2));
      Value* counter[4] = {low(block), high(block), low(offset), high(offset)};
      Value* key[2] = {low(seed), high(seed)};
      for (int round = 0; round < kPhiloxRounds; ++round) {
        Value* product0 = b_.CreateMul(counter[0], number(element, kPhiloxMultiplier0));
        Value* product1 = b_.CreateMul(counter[2], number(element, kPhiloxMultiplier1));
        Value* next[4] = {b_.CreateXor(b_.CreateXor(high(product1), counter[1]), key[0]), low(product1),
                          b_.CreateXor(b_.CreateXor(high(product0), counter[3]), key[1]), low(product0)};
        std::copy(next, next + 4, counter);
        key[0] = low(b_.CreateAdd(key[0], number(element, kPhiloxWeyl0)));
        key[1] = low(b_.CreateAdd(key[1], number(element, kPhiloxWeyl1)));
      }
      auto bit = [&](uint64_t mask) {
        return b_.CreateICmpNE(b_.CreateAnd(element, number(element, mask)), number(element, 0));
      };
      Value* first = b_.CreateSelect(bit(1), counter[1], counter[0]);
      Value* second = b_.CreateSelect(bit(1), counter[3], counter[2]);
      result.parts.push_back(b_.CreateSelect(bit(2), second, first));
    }
  });
  define(op.result, std::move(result));
}

}  // namespace tenon::codegen
