// Reductions: where their running values live, and the order of sums and products of floats (see loop/kernel.h).
#include "arithmetic.h"
#include "convert.h"
#include "emitter.h"

#include <tenon/loop/evaluate.h>

#include <llvm/IR/Module.h>

namespace tenon::codegen {

using llvm::BasicBlock;
using llvm::SmallVector;
using llvm::Value;
using loop::Loop;
using loop::Op;
using loop::OpCode;
using loop::ReduceKind;

namespace {

constexpr int kLevels = 44;       // of a pairwise tree: no loop runs 2^44 times
constexpr int kUnrolled = 4;      // iterations of a small loop that is written out
constexpr int kUnrolledOps = 48;  // instructions, at most

}  // namespace

// Rounding makes the order of these visible.
bool is_ordered(const Op& op) {
  return is_floating(op.dtype) && (op.reduce == ReduceKind::Sum || op.reduce == ReduceKind::Product);
}

int Emitter::accumulator_registers() const { return static_cast<int>(loop::kAccumulators) / target_.lanes; }

Value* Emitter::identity(const Op& op, bool vector) {
  Op constant{.code = OpCode::Constant, .dtype = op.dtype};
  constant.number = loop::identity_of(op.reduce, op.dtype);
  Value* one = constant_of(constant);
  return vector ? b_.CreateVectorSplat(static_cast<unsigned>(target_.lanes), one) : one;
}

Value* Emitter::combine(const Op& op, Value* a, Value* b) {
  constexpr OpCode codes[] = {OpCode::Add, OpCode::Mul, OpCode::Max, OpCode::Min, OpCode::Or, OpCode::And};
  return binary_operation(context_, codes[static_cast<int>(op.reduce)], op.dtype, a, b);
}

Value* Emitter::combine_lanes(const Op& op, Value* vector) {
  for (int width = target_.lanes / 2; width > 0; width /= 2) {
    SmallVector<int, 16> low, high;
    for (int i = 0; i < width; ++i) {
      low.push_back(i);
      high.push_back(i + width);
    }
    vector = combine(op, b_.CreateShuffleVector(vector, low), b_.CreateShuffleVector(vector, high));
  }
  return b_.CreateExtractElement(vector, uint64_t{0});
}

std::vector<Emitter::Reduction> Emitter::start_reductions(const Loop& loop, int parts, bool over_vector) {
  std::vector<Reduction> result;
  for (const loop::Statement& statement : loop.body) {
    auto* op = std::get_if<Op>(&statement);
    if (!op || op->code != OpCode::Reduce) continue;
    const bool vector = over_vector || analysis_.varying(op->result);
    Reduction& made = result.emplace_back();
    made.op = op;
    made.parts = vector ? parts : 1;
    Value* start = identity(*op, vector);
    made.type = start->getType();
    if (over_vector || !is_ordered(*op)) {
      const int registers = is_ordered(*op) ? accumulator_registers() : made.parts;
      made.next.assign(static_cast<size_t>(registers), start);
      continue;
    }
    made.place = loop.pairwise ? Reduction::Levels : Reduction::Accumulators;
    const int64_t rows = loop.pairwise ? kLevels : loop::kAccumulators;
    // In the function's first block: the stack grows once.
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    BasicBlock& first = function_->getEntryBlock();
    b_.SetInsertPoint(&first, first.getFirstInsertionPt());
    llvm::AllocaInst* memory = b_.CreateAlloca(made.type, b_.getInt64(static_cast<uint64_t>(rows * made.parts)));
    memory->setAlignment(llvm::Align(64));
    made.memory = memory;
  }
  return result;
}

Value* Emitter::row_pointer(const Reduction& reduction, Value* row, int part) {
  const auto parts = static_cast<uint64_t>(reduction.parts);
  Value* at = parts == 1 ? row : b_.CreateMul(row, b_.getInt64(parts));
  if (part > 0) at = b_.CreateAdd(at, b_.getInt64(static_cast<uint64_t>(part)));
  return b_.CreateGEP(reduction.type, reduction.memory, at);
}

template <typename Holds, typename Next, typename Body>
void Emitter::small_loop(Value* begin, Holds holds, Next next, Body body) {
  llvm::LLVMContext& context = b_.getContext();
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* head = BasicBlock::Create(context, "head", function_);
  BasicBlock* inside = BasicBlock::Create(context, "inside", function_);
  BasicBlock* after = BasicBlock::Create(context, "after", function_);
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* index = b_.CreatePHI(b_.getInt64Ty(), 2);
  index->addIncoming(begin, before);
  b_.CreateCondBr(holds(index), inside, after);
  b_.SetInsertPoint(inside);
  body(index);
  index->addIncoming(next(index), b_.GetInsertBlock());
  b_.CreateBr(head);
  b_.SetInsertPoint(after);
}

void Emitter::emit_reduce(const Op& op) {
  for (Reduction& reduction : *reductions_.back()) {
    if (reduction.op != &op) continue;
    const Parts& given = value(op.operands[0]);
    // Only the vector loop itself leaves out lanes; inside another loop, lanes that do not exist come to nothing.
    const bool over_vector = vector_ && vector_->level == top();
    const int parts = over_vector ? vector_->parts : reduction.parts;
    SmallVector<Value*, 4> values;
    for (int part = 0; part < parts; ++part) {
      Value* next = reduction.type->isVectorTy() ? vector_part(given, part) : given.parts[0];
      if (over_vector && vector_->mask) next = b_.CreateSelect(vector_->mask, next, identity(op, true));
      values.push_back(next);
    }
    if (loops_.back() == nullptr) {
      reduction.collected.append(values.begin(), values.end());
    } else if (reduction.place == Reduction::Accumulators) {
      add_to_accumulators(reduction, values);
    } else if (reduction.place == Reduction::Levels) {
      add_to_levels(reduction, values);
    } else {
      // The accumulators take turns: those that were used go to the end.
      reduction.next.clear();
      for (size_t at = values.size(); at < reduction.running.size(); ++at)
        reduction.next.push_back(reduction.running[at]);
      for (size_t at = 0; at < values.size(); ++at)
        reduction.next.push_back(combine(op, reduction.running[at], values[at]));
    }
    return;
  }
  TENON_ASSERT(false, "a reduction outside its loop:\n{}", loop::to_string(kernel_));
}

// Row i mod 32; the first 32 iterations find nothing there yet.
void Emitter::add_to_accumulators(Reduction& reduction, llvm::ArrayRef<Value*> values) {
  Value* index = symbols_[static_cast<size_t>(loops_.back()->index.symbol_id())].parts[0];
  Value* row = b_.CreateAnd(index, b_.getInt64(loop::kAccumulators - 1));
  Value* fresh = b_.CreateICmpULT(index, b_.getInt64(loop::kAccumulators));
  for (int part = 0; part < reduction.parts; ++part) {
    Value* pointer = row_pointer(reduction, row, part);
    Value* before = b_.CreateSelect(fresh, identity(*reduction.op, reduction.type->isVectorTy()),
                                    b_.CreateLoad(reduction.type, pointer));
    b_.CreateStore(combine(*reduction.op, before, values[static_cast<size_t>(part)]), pointer);
  }
}

// As a counter carries: for every 1 at the end of the iteration's number two trees of one size become one.
void Emitter::add_to_levels(Reduction& reduction, llvm::ArrayRef<Value*> values) {
  llvm::LLVMContext& context = b_.getContext();
  Value* index = symbols_[static_cast<size_t>(loops_.back()->index.symbol_id())].parts[0];
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* head = BasicBlock::Create(context, "level", function_);
  BasicBlock* carry = BasicBlock::Create(context, "carry", function_);
  BasicBlock* after = BasicBlock::Create(context, "carried", function_);
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* level = b_.CreatePHI(b_.getInt64Ty(), 2);
  level->addIncoming(b_.getInt64(0), before);
  SmallVector<llvm::PHINode*, 4> trees;
  for (Value* each : values) {
    trees.push_back(b_.CreatePHI(reduction.type, 2));
    trees.back()->addIncoming(each, before);
  }
  Value* bit = b_.CreateAnd(b_.CreateLShr(index, level), b_.getInt64(1));
  b_.CreateCondBr(b_.CreateICmpNE(bit, b_.getInt64(0)), carry, after);
  b_.SetInsertPoint(carry);
  for (int part = 0; part < reduction.parts; ++part) {
    Value* there = b_.CreateLoad(reduction.type, row_pointer(reduction, level, part));
    auto* tree = trees[static_cast<size_t>(part)];
    tree->addIncoming(combine(*reduction.op, there, tree), carry);
  }
  level->addIncoming(b_.CreateAdd(level, b_.getInt64(1)), carry);
  b_.CreateBr(head);
  b_.SetInsertPoint(after);
  for (int part = 0; part < reduction.parts; ++part)
    b_.CreateStore(trees[static_cast<size_t>(part)], row_pointer(reduction, level, part));
}

SmallVector<Value*, 4> Emitter::fold_accumulators(Reduction& reduction, Value* count) {
  Value* used = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, count, b_.getInt64(loop::kAccumulators));
  small_loop(
      b_.getInt64(loop::kAccumulators / 2), [&](Value* width) { return b_.CreateICmpNE(width, b_.getInt64(0)); },
      [&](Value* width) { return b_.CreateLShr(width, b_.getInt64(1)); },
      [&](Value* width) {
        // Rows that nothing was added to would add nothing.
        Value* rows = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, width, b_.CreateSub(used, width));
        small_loop(
            b_.getInt64(0), [&](Value* row) { return b_.CreateICmpSLT(row, rows); },
            [&](Value* row) { return b_.CreateAdd(row, b_.getInt64(1)); },
            [&](Value* row) {
              for (int part = 0; part < reduction.parts; ++part) {
                Value* pointer = row_pointer(reduction, row, part);
                Value* low = b_.CreateLoad(reduction.type, pointer);
                Value* high = b_.CreateLoad(reduction.type, row_pointer(reduction, b_.CreateAdd(row, width), part));
                b_.CreateStore(combine(*reduction.op, low, high), pointer);
              }
            });
      });
  SmallVector<Value*, 4> results;
  Value* any = b_.CreateICmpSGT(count, b_.getInt64(0));
  for (int part = 0; part < reduction.parts; ++part)
    results.push_back(b_.CreateSelect(any, b_.CreateLoad(reduction.type, row_pointer(reduction, b_.getInt64(0), part)),
                                      identity(*reduction.op, reduction.type->isVectorTy())));
  return results;
}

// The trees that are left, the smallest first: where the number of iterations has a 1. Its row is the running one.
SmallVector<Value*, 4> Emitter::fold_levels(Reduction& reduction, Value* count) {
  Value* lowest = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, count, b_.getFalse());
  Value* levels = b_.CreateSub(b_.getInt64(64), b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, count, b_.getFalse()));
  SmallVector<Value*, 4> results;
  small_loop(
      b_.CreateAdd(lowest, b_.getInt64(1)), [&](Value* level) { return b_.CreateICmpULT(level, levels); },
      [&](Value* level) { return b_.CreateAdd(level, b_.getInt64(1)); },
      [&](Value* level) {
        Value* there = b_.CreateICmpNE(b_.CreateAnd(b_.CreateLShr(count, level), b_.getInt64(1)), b_.getInt64(0));
        BasicBlock* join = BasicBlock::Create(b_.getContext(), "join", function_);
        BasicBlock* after = BasicBlock::Create(b_.getContext(), "joined", function_);
        b_.CreateCondBr(there, join, after);
        b_.SetInsertPoint(join);
        for (int part = 0; part < reduction.parts; ++part) {
          Value* running = row_pointer(reduction, lowest, part);
          Value* larger = b_.CreateLoad(reduction.type, row_pointer(reduction, level, part));
          b_.CreateStore(combine(*reduction.op, larger, b_.CreateLoad(reduction.type, running)), running);
        }
        b_.CreateBr(after);
        b_.SetInsertPoint(after);
      });
  Value* any = b_.CreateICmpSGT(count, b_.getInt64(0));
  Value* row = b_.CreateSelect(any, lowest, b_.getInt64(0));
  for (int part = 0; part < reduction.parts; ++part)
    results.push_back(b_.CreateSelect(any, b_.CreateLoad(reduction.type, row_pointer(reduction, row, part)),
                                      identity(*reduction.op, reduction.type->isVectorTy())));
  return results;
}

void Emitter::finish_reduction(Reduction& reduction, Value* count) {
  SmallVector<Value*, 4> results;
  if (reduction.place == Reduction::Accumulators)
    results = fold_accumulators(reduction, count);
  else if (reduction.place == Reduction::Levels)
    results = fold_levels(reduction, count);
  else
    results.assign(reduction.next.begin(), reduction.next.end());
  define(reduction.op->result, {results, top()});
}

// Small loops, written out
// ---------------------------------------------------------------------------------------------

bool Emitter::unrolls(const Loop& loop) const {
  if (!loop.reduction || !loop.extent.is_constant()) return false;
  const int64_t count = loop.extent.constant();
  if (count < 1 || count > kUnrolled || (vector_ ? vector_->parts : 1) * cost(loop.body) * count > kUnrolledOps)
    return false;
  for (const loop::Statement& statement : loop.body)
    if (!std::holds_alternative<Op>(statement)) return false;
  return true;
}

SmallVector<Value*, 4> Emitter::fold_collected(Reduction& reduction) {
  const size_t parts = static_cast<size_t>(reduction.parts), count = reduction.collected.size() / parts;
  const bool pairwise = reduction.place == Reduction::Levels;
  SmallVector<Value*, 4> results;
  for (size_t part = 0; part < parts; ++part) {
    SmallVector<Value*, 8> values;
    for (size_t at = 0; at < count; ++at) {
      Value* each = reduction.collected[at * parts + part];
      values.push_back(pairwise ? each
                                : combine(*reduction.op, identity(*reduction.op, reduction.type->isVectorTy()), each));
    }
    if (pairwise) {
      // At most four leaves: neighbours first.
      for (; values.size() > 1;) {
        SmallVector<Value*, 8> above;
        for (size_t at = 0; at < values.size(); at += 2)
          above.push_back(at + 1 < values.size() ? combine(*reduction.op, values[at], values[at + 1]) : values[at]);
        values = above;
      }
    } else {
      for (size_t width = kUnrolled; width > 0; width /= 2)
        for (size_t at = 0; at < width && at + width < values.size(); ++at)
          values[at] = combine(*reduction.op, values[at], values[at + width]);
    }
    results.push_back(values[0]);
  }
  return results;
}

void Emitter::emit_unrolled_loop(const Loop& loop) {
  std::vector<Reduction> reductions;
  for (const loop::Statement& statement : loop.body) {
    const Op& op = std::get<Op>(statement);
    if (op.code != OpCode::Reduce) continue;
    Reduction& made = reductions.emplace_back();
    made.op = &op;
    const bool vector = analysis_.varying(op.result);
    made.parts = vector ? vector_->parts : 1;
    made.type = identity(op, vector)->getType();
    made.place = loop.pairwise ? Reduction::Levels : Reduction::Accumulators;
  }
  const size_t id = static_cast<size_t>(loop.index.symbol_id());
  for (int64_t at = 0; at < loop.extent.constant(); ++at) {
    BasicBlock* entry = BasicBlock::Create(b_.getContext(), "entry", function_);
    BasicBlock* body = BasicBlock::Create(b_.getContext(), "copy", function_);
    b_.CreateBr(entry);
    b_.SetInsertPoint(entry);
    b_.CreateBr(body);
    b_.SetInsertPoint(body);
    scopes_.emplace_back();
    scopes_.back().is_entry = true;
    scopes_.back().block = entry;
    scopes_.emplace_back();
    symbols_[id].parts = {b_.getInt64(static_cast<uint64_t>(at))};
    symbol_levels_[id] = top();
    reductions_.push_back(&reductions);
    loops_.push_back(nullptr);
    emit_block(loop.body);
    reductions_.pop_back();
    loops_.pop_back();
    scopes_.pop_back();
    scopes_.pop_back();
  }
  for (Reduction& reduction : reductions) define(reduction.op->result, {fold_collected(reduction), top()});
}

}  // namespace tenon::codegen
