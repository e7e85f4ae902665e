// The function and its loops.
#include "arithmetic.h"
#include "convert.h"
#include "emitter.h"
#include "load/object.h"

#include "../bounds.h"
#include "loop/iterations.h"

#include <tenon/loop/evaluate.h>

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

namespace tenon::codegen {

using llvm::BasicBlock;
using llvm::Value;
using loop::Loop;
using loop::Op;
using loop::OpCode;
using loop::ReduceKind;

void emit_kernel(const loop::Kernel& kernel, const TargetSpec& target, llvm::Module& module) {
  Emitter(kernel, target, module).run();
}

Emitter::Emitter(const loop::Kernel& kernel, const TargetSpec& target, llvm::Module& module)
    : kernel_(kernel),
      target_(target),
      module_(module),
      analysis_(kernel),
      b_(module.getContext()),
      context_{b_, target_},
      symbols_(static_cast<size_t>(kernel.pool->symbol_count())),
      symbol_levels_(symbols_.size()),
      is_loop_index_(symbols_.size()),
      values_(static_cast<size_t>(kernel.value_count)) {}

void Emitter::run() {
  llvm::Type *pointer = b_.getPtrTy(), *integer = b_.getInt64Ty();
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer, pointer, integer, integer, pointer}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, load::kEntryName, module_);
  function_->setDoesNotThrow();
  const std::string width = std::to_string(target_.bits);
  function_->addFnAttr("prefer-vector-width", width);
  function_->addFnAttr("min-legal-vector-width", width);
  b_.SetInsertPoint(BasicBlock::Create(b_.getContext(), "start", function_));
  auto load_at = [&](unsigned argument, llvm::Type* element, size_t i) {
    return b_.CreateLoad(element, b_.CreateConstGEP1_64(element, function_->getArg(argument), i));
  };
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) buffers_.push_back(load_at(0, pointer, i));
  for (size_t i = 0; i < kernel_.integers.size(); ++i)
    symbols_[static_cast<size_t>(kernel_.integers[i].symbol_id())].parts = {load_at(1, integer, i)};
  for (size_t i = 0; i < kernel_.scalars.size(); ++i) scalars_.push_back(load_at(2, integer, i));

  scopes_.emplace_back();
  auto* only = kernel_.body.size() == 1 ? std::get_if<std::unique_ptr<Loop>>(&kernel_.body[0]) : nullptr;
  if (only && (*only)->parallel)
    emit_loop(**only, function_->getArg(3), function_->getArg(4));
  else
    emit_block(kernel_.body);
  // Non-temporal stores are weakly ordered; other threads read the results after the launch.
  if (wrote_streaming_) b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  b_.CreateRetVoid();
}

void Emitter::emit_block(const loop::Block& block) {
  for (const loop::Statement& statement : block) {
    if (auto* inner = std::get_if<std::unique_ptr<Loop>>(&statement))
      emit_loop(**inner, b_.getInt64(0), scalar_index(loop::iterations(**inner, *kernel_.pool)));
    else
      emit_op(std::get<Op>(statement));
  }
}

void Emitter::emit_loop(const Loop& loop, Value* begin, Value* end) {
  is_loop_index_[static_cast<size_t>(loop.index.symbol_id())] = true;
  if (analysis_.is_vector(loop) && !vector_)
    emit_vector_loop(loop, begin, end);
  else
    emit_plain_loop(loop, begin, end);
}

// Runs the body for begin <= index < end; `reductions` enter with their initial values in `next` and leave with their
// results there.
void Emitter::counted_loop(const Loop& loop, Value* begin, Value* end, VectorLoop* vector,
                           std::vector<Reduction>& reductions) {
  llvm::LLVMContext& context = b_.getContext();
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* entry = BasicBlock::Create(context, "entry", function_);
  BasicBlock* body = BasicBlock::Create(context, "body", function_);
  BasicBlock* exit = BasicBlock::Create(context, "exit", function_);
  b_.CreateCondBr(b_.CreateICmpSLT(begin, end), entry, exit);
  b_.SetInsertPoint(entry);
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
  llvm::PHINode* index = b_.CreatePHI(b_.getInt64Ty(), 2, loop.index.name());
  index->addIncoming(begin, entry);
  std::vector<std::vector<Value*>> initial;
  std::vector<std::vector<llvm::PHINode*>> carried;
  for (Reduction& reduction : reductions) {
    initial.emplace_back(reduction.next.begin(), reduction.next.end());
    carried.emplace_back();
    reduction.running.clear();
    for (Value* start : reduction.next) {
      llvm::PHINode* phi = b_.CreatePHI(start->getType(), 2);
      phi->addIncoming(start, entry);
      carried.back().push_back(phi);
      reduction.running.push_back(phi);
    }
  }

  scopes_.emplace_back();
  scopes_.back().is_entry = true;
  scopes_.back().block = entry;
  scopes_.emplace_back();
  const size_t id = static_cast<size_t>(loop.index.symbol_id());
  symbols_[id].parts = {index};
  symbol_levels_[id] = top();
  reductions_.push_back(&reductions);
  loops_.push_back(&loop);
  int64_t step = 1;
  if (vector) {
    step = int64_t{vector->parts} * target_.lanes;
    vector->index = index;
    vector->level = top();
    if (vector->mask) {
      // Lanes below what is left; the type of lane numbers is that of the narrowest fast comparison.
      Value* left = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateSub(end, index),
                                             b_.getInt64(static_cast<uint64_t>(target_.lanes)));
      Value* limit = b_.CreateVectorSplat(static_cast<unsigned>(target_.lanes), b_.CreateTrunc(left, b_.getInt32Ty()));
      vector->mask = b_.CreateICmpULT(b_.CreateTrunc(lane_numbers(), limit->getType()), limit);
    }
    vector_ = *vector;
  }
  emit_block(loop.body);
  if (vector) vector_.reset();
  reductions_.pop_back();
  loops_.pop_back();
  scopes_.pop_back();
  scopes_.pop_back();

  BasicBlock* last = b_.GetInsertBlock();
  Value* next = b_.CreateNSWAdd(index, b_.getInt64(static_cast<uint64_t>(step)));
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), body, exit);
  index->addIncoming(next, last);
  b_.SetInsertPoint(exit);
  for (size_t i = 0; i < reductions.size(); ++i) {
    for (size_t part = 0; part < reductions[i].next.size(); ++part) {
      carried[i][part]->addIncoming(reductions[i].next[part], last);
      llvm::PHINode* result = b_.CreatePHI(initial[i][part]->getType(), 2);
      result->addIncoming(initial[i][part], before);
      result->addIncoming(reductions[i].next[part], last);
      reductions[i].next[part] = result;
    }
  }
}

void Emitter::emit_plain_loop(const Loop& loop, Value* begin, Value* end) {
  if (unrolls(loop)) return emit_unrolled_loop(loop);
  if (vector_ && !vector_->mask && vector_->parts == 1 && !bounds_checks())
    if (std::vector<const Op*> loads = loads_along(loop, vector_->symbol); !loads.empty())
      return emit_squares(loop, end, loads);
  std::vector<Reduction> reductions = start_reductions(loop, vector_ ? vector_->parts : 1, false);
  counted_loop(loop, begin, end, nullptr, reductions);
  for (Reduction& reduction : reductions) finish_reduction(reduction, end);
}

int Emitter::choose_parts(const Loop& loop) {
  if (walks_along(loop)) return 1;
  const int work = cost(loop.body);
  int parts = work <= 8 ? 4 : work <= 14 ? 2 : 1;
  for (const loop::Statement& statement : loop.body)
    if (auto* op = std::get_if<Op>(&statement); op && op->code == OpCode::Reduce && is_ordered(*op))
      parts = std::min(parts, accumulator_registers());
  return parts;
}

Value* Emitter::whole_steps_end(Value* begin, Value* end, int64_t step) {
  Value* count = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b_.CreateSub(end, begin), b_.getInt64(0));
  return b_.CreateAdd(begin, b_.CreateAnd(count, b_.getInt64(~static_cast<uint64_t>(step - 1))));
}

void Emitter::emit_vector_loop(const Loop& loop, Value* begin, Value* end) {
  const int parts = choose_parts(loop);
  if (!streaming_stores(loop).empty()) return emit_streaming_loop(loop, begin, end, parts);
  VectorLoop main{.symbol = loop.index.symbol_id(), .parts = parts};
  std::vector<Reduction> reductions = start_reductions(loop, parts, true);
  Value* middle = begin;
  // With AVX-512 masks are free beside a long body, and one copy of it compiles in half the time.
  if (parts > 1 || target_.bits < 512 || walks_along(loop)) {
    middle = whole_steps_end(begin, end, int64_t{parts} * target_.lanes);
    counted_loop(loop, begin, middle, &main, reductions);
  }
  VectorLoop rest{.symbol = loop.index.symbol_id(), .parts = 1, .mask = b_.getTrue()};
  counted_loop(loop, middle, end, &rest, reductions);
  for (Reduction& reduction : reductions) {
    // Halves are folded until one register is left; it does not matter which of them is the first.
    auto& sums = reduction.next;
    for (size_t width = sums.size() / 2; width > 0; width /= 2)
      for (size_t i = 0; i < width; ++i) sums[i] = combine(*reduction.op, sums[i], sums[i + width]);
    define(reduction.op->result, {{combine_lanes(*reduction.op, sums[0])}, top()});
  }
}

std::vector<const Op*> Emitter::streaming_stores(const Loop& loop) {
  std::vector<const Op*> found;
  for (const loop::Statement& statement : loop.body) {
    auto* op = std::get_if<Op>(&statement);
    if (!op) return {};
    if (op->code == OpCode::Reduce || op->code == OpCode::BindIndex) return {};
    if (op->code != OpCode::Store || !kernel_.buffers[static_cast<size_t>(op->buffer)].streaming) continue;
    vector_ = VectorLoop{.symbol = loop.index.symbol_id()};
    std::optional<Affine> form = affine(op->index);
    vector_.reset();
    if (!form || !form->stride_products.empty() || form->constant_stride != 1) return {};
    found.push_back(op);
  }
  return found;
}

// As other vector loops, but the masked part comes first, so that the stores of the main part are aligned and may pass
// by the cache: it runs once up to the first aligned address and, after the main part, once for the rest. If the stores
// cannot all be aligned it does everything.
void Emitter::emit_streaming_loop(const Loop& loop, Value* begin, Value* end, int parts) {
  Value* first = nullptr;
  for (const Op* op : streaming_stores(loop)) {
    const loop::Buffer& buffer = kernel_.buffers[static_cast<size_t>(op->buffer)];
    const int64_t size = size_of(buffer.dtype);
    const int64_t bytes = std::min<int64_t>(target_.bits / 8, target_.lanes * size);
    vector_ = VectorLoop{.symbol = loop.index.symbol_id()};
    std::optional<Affine> form = affine(op->index);
    vector_.reset();
    int level;
    Value* rest = sum_of(form->rest, &level);
    Value* start = b_.CreateGEP(storage_type(context_, buffer.dtype), buffers_[static_cast<size_t>(op->buffer)],
                                b_.CreateAdd(rest, first ? first : begin));
    Value* address = b_.CreatePtrToInt(start, b_.getInt64Ty());
    Value* short_of = b_.CreateAnd(b_.CreateNeg(address), b_.getInt64(static_cast<uint64_t>(bytes - 1)));
    if (!first) {
      Value* elements =
          b_.CreateLShr(short_of, b_.getInt64(static_cast<uint64_t>(__builtin_ctzll(static_cast<uint64_t>(size)))));
      first = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateAdd(begin, elements), end);
    } else {
      first = b_.CreateSelect(b_.CreateICmpEQ(short_of, b_.getInt64(0)), first, end);
    }
  }
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* pass = BasicBlock::Create(b_.getContext(), "pass", function_);
  BasicBlock* whole = BasicBlock::Create(b_.getContext(), "whole", function_);
  BasicBlock* done = BasicBlock::Create(b_.getContext(), "done", function_);
  b_.CreateBr(pass);
  b_.SetInsertPoint(pass);
  llvm::PHINode* from = b_.CreatePHI(b_.getInt64Ty(), 2);
  llvm::PHINode* to = b_.CreatePHI(b_.getInt64Ty(), 2);
  from->addIncoming(begin, before);
  to->addIncoming(first, before);
  std::vector<Reduction> none;
  VectorLoop rest{.symbol = loop.index.symbol_id(), .parts = 1, .mask = b_.getTrue()};
  counted_loop(loop, from, to, &rest, none);
  b_.CreateCondBr(b_.CreateICmpSGE(to, end), done, whole);
  b_.SetInsertPoint(whole);
  VectorLoop main{.symbol = loop.index.symbol_id(), .parts = parts, .streaming = true};
  streamed_over_ = loop_indices(streaming_stores(loop)[0]->index);
  int streams = 0, shared = 0;
  for (const loop::Statement& statement : loop.body)
    if (const Op& op = std::get<Op>(statement); op.code == OpCode::Load)
      ++(loop_indices(op.index) == streamed_over_ ? streams : shared);
  crowded_ = streams > 2 && shared > 0;
  Value* middle = whole_steps_end(to, end, int64_t{parts} * target_.lanes);
  counted_loop(loop, to, middle, &main, none);
  from->addIncoming(middle, b_.GetInsertBlock());
  to->addIncoming(end, b_.GetInsertBlock());
  b_.CreateBr(pass);
  b_.SetInsertPoint(done);
}

}  // namespace tenon::codegen
