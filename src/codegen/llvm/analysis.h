// What the emitter wants to know of a kernel before it emits: which values and symbols differ between the lanes of the
// vector loop that they stand in, which loops can be vectors at all, and the dtype of every value.
#pragma once

#include <tenon/loop/kernel.h>

#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tenon::codegen {

class Analysis {
 public:
  explicit Analysis(const loop::Kernel& kernel);

  bool varying(loop::ValueId value) const { return varying_values_[static_cast<size_t>(value)]; }
  bool varying(sym::Expr expr) const;
  Dtype dtype(loop::ValueId value) const { return dtypes_[static_cast<size_t>(value)]; }
  // A loop marked `vector` is emitted as one unless the extent of a loop inside it differs between lanes.
  bool is_vector(const loop::Loop& loop) const { return loop.vector && !demoted_.count(&loop); }
  bool is_stored(int32_t buffer) const { return stored_[static_cast<size_t>(buffer)]; }

 private:
  void visit(const loop::Block& block, const loop::Loop* vector_loop);
  bool extents_vary(const loop::Block& block) const;

  std::vector<bool> varying_values_, stored_;
  std::vector<Dtype> dtypes_;
  std::unordered_set<int32_t> varying_symbols_;
  std::unordered_set<const loop::Loop*> demoted_;
  mutable std::unordered_map<const sym::ExprNode*, bool> varying_exprs_;
};

// A rough count of instructions of a block, per vector: it decides how far loops are unrolled.
int cost(const loop::Block& block);

}  // namespace tenon::codegen
