// Kernel → LLVM IR.
//
// Inside a vector loop a value is uniform (one scalar) or varying: `parts` vectors of `lanes` lanes, one per unrolled
// copy of the body. The loop is emitted twice: over whole steps of parts*lanes iterations without masks, and over the
// rest, one vector at a time, with a mask.
//
// Code goes into scopes: the function, then for every loop its entry (run once, only if there is an iteration) and its
// body. What does not depend on the body goes into the entry: a loop-invariant load is not repeated, and not made when
// the loop is empty.
#pragma once

#include "analysis.h"
#include "math/formula.h"
#include "target.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>

#include <optional>

namespace tenon::codegen {

void emit_kernel(const loop::Kernel& kernel, const TargetSpec& target, llvm::Module& module);

// A value: one scalar, or one vector per part of the current vector loop. `level` is the scope from which on it is
// known.
struct Parts {
  llvm::SmallVector<llvm::Value*, 4> parts;
  int level = 0;
};

// A sum or product of floats.
bool is_ordered(const loop::Op& reduce);

class Emitter {
 public:
  Emitter(const loop::Kernel& kernel, const TargetSpec& target, llvm::Module& module);
  void run();

 private:
  struct Scope {
    bool is_entry = false;
    llvm::BasicBlock* block = nullptr;  // of an entry; it ends in a branch
    std::unordered_map<const sym::ExprNode*, llvm::Value*> scalars;
    std::unordered_map<const sym::ExprNode*, llvm::SmallVector<llvm::Value*, 4>> vectors;
  };
  struct VectorLoop {
    int32_t symbol = -1;
    int level = 0;  // of its body
    int parts = 1;
    llvm::Value* index = nullptr;  // of lane 0 of part 0
    llvm::Value* mask = nullptr;   // of the lanes that exist; null: all
    bool streaming = false;        // stores to streaming buffers are aligned to vectors
  };
  // One `Reduce` of a loop that is being emitted. Sums and products of floats keep the order of kernel.h: over the
  // vector loop their 32 accumulators are lanes of registers that take turns; in a plain loop they lie in memory, and
  // so do the levels of a pairwise loop. All others run in a register per part.
  struct Reduction {
    const loop::Op* op;
    enum Place { Registers, Accumulators, Levels } place = Registers;
    llvm::SmallVector<llvm::Value*, 8> running, next;  // Registers: of the iteration; the first are used next
    llvm::Value* memory = nullptr;                     // Accumulators, Levels: rows of one value per part
    llvm::Type* type = nullptr;                        // of one part
    int parts = 1;
    llvm::SmallVector<llvm::Value*, 4> collected;  // of an unrolled loop: the values, part by part
  };
  // Where an access goes, as seen from lane 0 of part 0.
  struct Address {
    enum Kind { Uniform, Contiguous, Strided, Scattered } kind;
    llvm::Value* pointer = nullptr;              // all but Scattered
    llvm::Value* lane_offsets = nullptr;         // Strided: elements, a vector
    llvm::Value* part_step = nullptr;            // Strided: elements from one part to the next
    llvm::SmallVector<llvm::Value*, 4> indices;  // Scattered: vectors
    int level = 0;
  };
  struct Product {
    int64_t constant;
    llvm::SmallVector<sym::Expr, 2> factors;
  };
  // index = sum(rest) + stride * (the vector loop's index)
  struct Affine {
    llvm::SmallVector<sym::Expr, 4> rest;
    int64_t constant_stride = 0;
    llvm::SmallVector<Product, 2> stride_products;
  };

  // emit_loops.cpp
  void emit_block(const loop::Block& block);
  void emit_loop(const loop::Loop& loop, llvm::Value* begin, llvm::Value* end);
  void emit_plain_loop(const loop::Loop& loop, llvm::Value* begin, llvm::Value* end);
  void emit_vector_loop(const loop::Loop& loop, llvm::Value* begin, llvm::Value* end);
  void emit_streaming_loop(const loop::Loop& loop, llvm::Value* begin, llvm::Value* end, int parts);
  void counted_loop(const loop::Loop& loop, llvm::Value* begin, llvm::Value* end, VectorLoop* vector,
                    std::vector<Reduction>& reductions);
  llvm::Value* whole_steps_end(llvm::Value* begin, llvm::Value* end, int64_t step);
  int choose_parts(const loop::Loop& loop);
  std::vector<const loop::Op*> streaming_stores(const loop::Loop& loop);

  // emit_reductions.cpp
  // `parts`: of the vector loop; `over_vector`: it is the loop itself.
  std::vector<Reduction> start_reductions(const loop::Loop& loop, int parts, bool over_vector);
  void emit_reduce(const loop::Op& op);
  // After the loop, which ran `count` times.
  void finish_reduction(Reduction& reduction, llvm::Value* count);
  void add_to_accumulators(Reduction& reduction, llvm::ArrayRef<llvm::Value*> values);
  void add_to_levels(Reduction& reduction, llvm::ArrayRef<llvm::Value*> values);
  llvm::SmallVector<llvm::Value*, 4> fold_accumulators(Reduction& reduction, llvm::Value* count);
  llvm::SmallVector<llvm::Value*, 4> fold_levels(Reduction& reduction, llvm::Value* count);
  llvm::SmallVector<llvm::Value*, 4> fold_collected(Reduction& reduction);
  llvm::Value* row_pointer(const Reduction& reduction, llvm::Value* row, int part);
  // A loop of ours for index = begin; holds(index); index = next(index); gives the block after it.
  template <typename Holds, typename Next, typename Body>
  void small_loop(llvm::Value* begin, Holds holds, Next next, Body body);
  int accumulator_registers() const;  // in which 32 of them fit
  bool unrolls(const loop::Loop& loop) const;
  void emit_unrolled_loop(const loop::Loop& loop);
  llvm::Value* identity(const loop::Op& op, bool vector);
  llvm::Value* combine(const loop::Op& op, llvm::Value* a, llvm::Value* b);
  llvm::Value* combine_lanes(const loop::Op& op, llvm::Value* vector);

  // emit_squares.cpp
  // Loads of a plain loop inside the vector loop over `lanes` that are dense along the plain loop, not along the lanes.
  std::vector<const loop::Op*> loads_along(const loop::Loop& loop, int32_t lanes);
  bool walks_along(const loop::Loop& vector_loop);
  void emit_squares(const loop::Loop& loop, llvm::Value* end, const std::vector<const loop::Op*>& loads);
  void emit_square_loop(const loop::Loop& loop, llvm::Value* whole, const std::vector<const loop::Op*>& loads);
  llvm::Value* stores_are_aligned(const loop::Loop& loop);
  llvm::SmallVector<llvm::Value*, 16> load_square(const loop::Op& op);

  // emit_index.cpp
  int level_of(sym::Expr expr);
  int place_of(int level) const;
  llvm::Value* scalar_index(sym::Expr expr);
  // `small`: of a division, that vectors of doubles hold the dividend.
  llvm::Value* index_operation(sym::Expr expr, llvm::ArrayRef<llvm::Value*> args, bool small);
  llvm::Value* build_scalar(sym::Expr expr);
  llvm::Value* sum_of(llvm::ArrayRef<sym::Expr> terms, int* level);
  llvm::Value* vector_index(sym::Expr expr, int part);
  llvm::Value* build_vector(sym::Expr expr, int part);
  llvm::Value* lane_numbers();
  int magnitude_bits(sym::Expr expr) const;
  std::optional<Affine> affine(sym::Expr expr);
  llvm::Value* stride_value(const Affine& form, int* level);
  template <typename Make>
  auto at(int place, Make make) {
    if (place == top()) return make();
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(scopes_[static_cast<size_t>(place)].block->getTerminator());
    return make();
  }
  int top() const { return static_cast<int>(scopes_.size()) - 1; }

  // emit_memory.cpp
  Address address(int32_t buffer, sym::Expr index);
  void emit_load(const loop::Op& op);
  std::vector<int32_t> loop_indices(sym::Expr index) const;
  void prefetch(const Address& from, const loop::Op& op);
  void prefetch_rows(const Address& from, const loop::Op& op);
  void emit_store(const loop::Op& op);
  // `wanted`: null, or whether (for each lane) there is something to load.
  llvm::Value* load_part(const Address& from, const loop::Buffer& buffer, int part, llvm::Value* wanted);
  // A place of zeros for a vector of any dtype.
  llvm::Value* zeros();
  void store_part(const Address& to, const loop::Buffer& buffer, int part, llvm::Value* value);
  llvm::Value* part_pointer(const Address& address, llvm::Type* element, int part);
  llvm::Value* lane_pointers(const Address& address, const loop::Buffer& buffer, llvm::Value* base, int part);
  void check_bounds(const loop::Op& op);

  // emit_ops.cpp
  void emit_op(const loop::Op& op);
  void emit_check(const loop::Op& op);
  void emit_bind_index(const loop::Op& op);
  void emit_computation(const loop::Op& op);
  llvm::Value* emit_one(const loop::Op& op, llvm::ArrayRef<llvm::Value*> operands);
  void emit_random(const loop::Op& op);
  llvm::Value* constant_of(const loop::Op& op);
  llvm::Value* parameter_of(const loop::Op& op);
  llvm::Value* splat(llvm::Value* scalar, int level);
  // A part of a value; the same for every part of one that does not vary.
  static llvm::Value* part_of(const Parts& value, int part) {
    return value.parts[value.parts.size() == 1 ? 0 : static_cast<size_t>(part)];
  }
  // Parts of a value as vectors, uniform ones repeated.
  llvm::Value* vector_part(const Parts& value, int part);
  // Lanes that exist and fulfil `condition` (i1 or vector of i1): is there one?
  llvm::Value* any_lane(llvm::Value* condition);
  void define(loop::ValueId id, Parts parts) { values_[static_cast<size_t>(id)] = std::move(parts); }
  const Parts& value(loop::ValueId id) const { return values_[static_cast<size_t>(id)]; }
  // Branches to a block that is almost never run, and leaves the builder there; `end_rare` returns to the main path.
  llvm::BasicBlock* begin_rare(llvm::Value* condition);
  void end_rare(llvm::BasicBlock* after);

  const loop::Kernel& kernel_;
  const TargetSpec& target_;
  llvm::Module& module_;
  Analysis analysis_;
  llvm::IRBuilder<> b_;
  Context context_;
  llvm::Function* function_ = nullptr;
  std::vector<Scope> scopes_;
  std::vector<llvm::Value*> buffers_, scalars_;
  std::vector<Parts> symbols_;       // by symbol id
  std::vector<int> symbol_levels_;   // by symbol id
  std::vector<bool> is_loop_index_;  // by symbol id
  std::unordered_map<const sym::ExprNode*, int> levels_;
  std::vector<Parts> values_;
  std::vector<std::vector<Reduction>*> reductions_;  // of the loops around, innermost last
  std::vector<const loop::Loop*> loops_;             // those loops
  std::optional<VectorLoop> vector_;
  bool wrote_streaming_ = false;
  std::vector<int32_t> streamed_over_;  // the loop indices of a streaming store
  bool crowded_ = false;                // more than two streams are read, and rows that are the same for all of them
};

}  // namespace tenon::codegen
