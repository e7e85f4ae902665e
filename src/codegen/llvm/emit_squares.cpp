// Squares that are turned in registers: inside a vector loop, a plain loop along which a load is dense. As many
// iterations as there are lanes are taken together: each lane's row is one vector load, and the square of them, turned,
// is what the iterations want.
#include "convert.h"
#include "emitter.h"

namespace tenon::codegen {

using llvm::BasicBlock;
using llvm::SmallVector;
using llvm::Value;
using loop::Loop;
using loop::Op;
using loop::OpCode;

namespace {
constexpr int kLongestBody = 12;  // instructions: the body is written out once a lane
}  // namespace

std::vector<const Op*> Emitter::loads_along(const Loop& loop, int32_t lanes) {
  std::vector<const Op*> found;
  if (loop.reduction || loop.vector || cost(loop.body) > kLongestBody) return found;
  for (const loop::Statement& statement : loop.body) {
    const auto* op = std::get_if<Op>(&statement);
    if (!op || op->code == OpCode::BindIndex || op->code == OpCode::Check) return {};
    if (op->code != OpCode::Load || op->operands[0] != loop::kNone || analysis_.is_stored(op->buffer)) continue;
    // One element further with every iteration, and further than that from lane to lane.
    sym::ExprPool& pool = *kernel_.pool;
    sym::Expr step = pool.substitute(op->index, {{loop.index.symbol_id(), loop.index + 1}}) - op->index;
    if (!step.is_constant(1)) continue;
    const std::optional<VectorLoop> before = vector_;
    vector_ = VectorLoop{.symbol = lanes};
    std::optional<Affine> form = affine(op->index);
    vector_ = before;
    if (!form || (form->stride_products.empty() && (form->constant_stride == 0 || form->constant_stride == 1)))
      continue;
    found.push_back(op);
  }
  return found;
}

bool Emitter::walks_along(const Loop& vector_loop) {
  for (const loop::Statement& statement : vector_loop.body)
    if (const auto* inner = std::get_if<std::unique_ptr<Loop>>(&statement))
      if (!loads_along(**inner, vector_loop.index.symbol_id()).empty()) return true;
  return false;
}

// The rows of all lanes, turned: the first result is the first element of every row.
SmallVector<Value*, 16> Emitter::load_square(const Op& op) {
  const loop::Buffer& buffer = kernel_.buffers[static_cast<size_t>(op.buffer)];
  llvm::Type* element = storage_type(context_, buffer.dtype);
  const auto lanes = static_cast<unsigned>(target_.lanes);
  llvm::Type* row_type = llvm::FixedVectorType::get(element, lanes);
  const llvm::Align alignment(static_cast<uint64_t>(size_of(buffer.dtype)));
  Address from = address(op.buffer, op.index);
  int level = 0;
  Value* stride = stride_value(*affine(op.index), &level);
  SmallVector<Value*, 16> rows;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    Value* pointer = b_.CreateGEP(element, from.pointer, b_.CreateMul(stride, b_.getInt64(lane)));
    rows.push_back(b_.CreateAlignedLoad(row_type, pointer, alignment));
  }
  // A row and the one half the square below it are interleaved; after as many rounds as the number of lanes has bits
  // each element has gone to its place.
  SmallVector<int, 32> low, high;
  for (unsigned lane = 0; lane < lanes; ++lane)
    (lane < lanes / 2 ? low : high).append({static_cast<int>(lane), static_cast<int>(lane + lanes)});
  for (unsigned width = 1; width < lanes; width *= 2) {
    SmallVector<Value*, 16> next;
    for (unsigned row = 0; row < lanes / 2; ++row) {
      next.push_back(b_.CreateShuffleVector(rows[row], rows[row + lanes / 2], low));
      next.push_back(b_.CreateShuffleVector(rows[row], rows[row + lanes / 2], high));
    }
    rows = next;
  }
  return rows;
}

// Whether stores of streaming results hit whole lines in every iteration; null if there are none.
Value* Emitter::stores_are_aligned(const Loop& loop) {
  Value* all = nullptr;
  for (const loop::Statement& statement : loop.body) {
    const Op& op = std::get<Op>(statement);
    if (op.code != OpCode::Store || !kernel_.buffers[static_cast<size_t>(op.buffer)].streaming) continue;
    std::optional<Affine> form = affine(op.index);
    sym::ExprPool& pool = *kernel_.pool;
    sym::Expr step = pool.substitute(op.index, {{loop.index.symbol_id(), loop.index + 1}}) - op.index;
    if (!form || !form->stride_products.empty() || form->constant_stride != 1 || analysis_.varying(step))
      return nullptr;
    for (int32_t symbol : sym::symbols_of(step))
      if (symbol == loop.index.symbol_id()) return nullptr;
    const loop::Buffer& buffer = kernel_.buffers[static_cast<size_t>(op.buffer)];
    const int64_t size = size_of(buffer.dtype);
    Value* place = buffers_[static_cast<size_t>(op.buffer)];
    sym::Expr first = pool.substitute(op.index, {{loop.index.symbol_id(), pool.constant(0)}});
    int level;
    place = b_.CreateGEP(storage_type(context_, buffer.dtype), place,
                         b_.CreateAdd(sum_of(affine(first)->rest, &level), vector_->index));
    Value* bits = b_.CreateOr(b_.CreatePtrToInt(place, b_.getInt64Ty()),
                              b_.CreateMul(scalar_index(step), b_.getInt64(static_cast<uint64_t>(size))));
    const int64_t bytes = std::min<int64_t>(target_.bits / 8, target_.lanes * size);
    Value* aligned = b_.CreateICmpEQ(b_.CreateAnd(bits, b_.getInt64(static_cast<uint64_t>(bytes - 1))), b_.getInt64(0));
    all = all ? b_.CreateAnd(all, aligned) : aligned;
  }
  return all;
}

void Emitter::emit_squares(const Loop& loop, Value* end, const std::vector<const Op*>& loads) {
  Value* whole = whole_steps_end(b_.getInt64(0), end, target_.lanes);
  if (Value* aligned = stores_are_aligned(loop)) {
    llvm::LLVMContext& context = b_.getContext();
    BasicBlock* past = BasicBlock::Create(context, "past", function_);
    BasicBlock* cached = BasicBlock::Create(context, "cached", function_);
    BasicBlock* done = BasicBlock::Create(context, "done", function_);
    b_.CreateCondBr(aligned, past, cached);
    b_.SetInsertPoint(past);
    vector_->streaming = true;
    emit_square_loop(loop, whole, loads);
    vector_->streaming = false;
    b_.CreateBr(done);
    b_.SetInsertPoint(cached);
    emit_square_loop(loop, whole, loads);
    b_.CreateBr(done);
    b_.SetInsertPoint(done);
  } else {
    emit_square_loop(loop, whole, loads);
  }
  std::vector<Reduction> none;
  counted_loop(loop, whole, end, nullptr, none);
}

void Emitter::emit_square_loop(const Loop& loop, Value* whole, const std::vector<const Op*>& loads) {
  llvm::LLVMContext& context = b_.getContext();
  const auto id = static_cast<size_t>(loop.index.symbol_id());
  BasicBlock* entry = BasicBlock::Create(context, "entry", function_);
  BasicBlock* body = BasicBlock::Create(context, "square", function_);
  BasicBlock* exit = BasicBlock::Create(context, "exit", function_);
  b_.CreateCondBr(b_.CreateICmpSLT(b_.getInt64(0), whole), entry, exit);
  b_.SetInsertPoint(entry);
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
  llvm::PHINode* index = b_.CreatePHI(b_.getInt64Ty(), 2, loop.index.name());
  index->addIncoming(b_.getInt64(0), entry);
  scopes_.emplace_back();
  scopes_.back().is_entry = true;
  scopes_.back().block = entry;
  scopes_.emplace_back();
  symbols_[id].parts = {index};
  symbol_levels_[id] = top();
  std::vector<SmallVector<Value*, 16>> squares;
  for (const Op* op : loads) squares.push_back(load_square(*op));
  for (int lane = 0; lane < target_.lanes; ++lane) {
    BasicBlock* ahead = BasicBlock::Create(context, "entry", function_);
    BasicBlock* copy = BasicBlock::Create(context, "copy", function_);
    Value* at_lane = b_.CreateAdd(index, b_.getInt64(static_cast<uint64_t>(lane)));
    b_.CreateBr(ahead);
    b_.SetInsertPoint(ahead);
    b_.CreateBr(copy);
    b_.SetInsertPoint(copy);
    scopes_.emplace_back();
    scopes_.back().is_entry = true;
    scopes_.back().block = ahead;
    scopes_.emplace_back();
    symbols_[id].parts = {at_lane};
    symbol_levels_[id] = top();
    levels_.clear();
    for (const loop::Statement& statement : loop.body) {
      const Op& op = std::get<Op>(statement);
      const auto found = std::find(loads.begin(), loads.end(), &op);
      if (found == loads.end()) {
        emit_op(op);
        continue;
      }
      Value* turned = squares[static_cast<size_t>(found - loads.begin())][static_cast<size_t>(lane)];
      define(op.result,
             {{from_storage(context_, kernel_.buffers[static_cast<size_t>(op.buffer)].dtype, turned)}, top()});
    }
    scopes_.pop_back();
    scopes_.pop_back();
  }
  levels_.clear();
  scopes_.pop_back();
  scopes_.pop_back();
  BasicBlock* last = b_.GetInsertBlock();
  Value* next = b_.CreateNSWAdd(index, b_.getInt64(static_cast<uint64_t>(target_.lanes)));
  b_.CreateCondBr(b_.CreateICmpSLT(next, whole), body, exit);
  index->addIncoming(next, last);
  b_.SetInsertPoint(exit);
}

}  // namespace tenon::codegen
