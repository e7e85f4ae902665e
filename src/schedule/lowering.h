// From values of a graph to lanes of a kernel: what an element of a value is, and where it lies in memory. It opens no
// loops by itself: whoever writes the loops (survey.cpp, emit.cpp) sets the coordinates and asks.
#pragma once

#include "fusion.h"

#include <tenon/loop/builder.h>

#include <map>
#include <set>

namespace tenon::schedule {

// Why a group cannot be one loop nest.
struct Refused {
  std::string why;
};

class Lowering {
 public:
  Lowering(const Schedule& schedule, const Group& group, std::string name);
  Lowering(const Lowering&) = delete;

  const Group& group() const { return group_; }
  const Graph& graph() const { return graph_; }
  const Schedule& schedule() const { return schedule_; }
  loop::Builder& builder() { return builder_; }
  sym::ExprPool& pool() const { return const_cast<loop::Builder&>(builder_).pool(); }

  // ---- Roots of the group
  bool is_reduction(ValueId id) const;
  bool in_group(ValueId id) const;
  loop::ReduceKind reduce_kind(ValueId id) const;
  ValueId reduction_source(ValueId id) const { return std::get<ValueId>(schedule_.state(id).node->args[0]); }
  Dtype dtype_of(ValueId id) const { return graph_.meta(id).dtype(); }
  Dtype lane_dtype(ValueId id) const { return compute_dtype(dtype_of(id)); }
  bool over_full_domain(ValueId id) const;
  // How many stages must have ended before a value can be computed.
  int level(ValueId id);
  int last_level();

  // ---- Numbers
  Expr to_kernel(Expr expr);
  Expr to_kernel(const SymInt& number) { return to_kernel(to_expr(graph_, number)); }
  // Parameters are declared before any loop is opened, in the order in which the survey met them.
  void declare(std::span<const Expr> symbols);
  const std::vector<Expr>& integers() const { return integers_; }
  // What the parameters are for the sizes at capture; nothing for a number that comes from data.
  std::optional<int64_t> hint(Expr kernel_expr) const;

  // ---- Loops and coordinates
  Expr open(Expr extent, loop::LoopFlags flags);
  void close();
  int open_loops() const { return open_loops_; }
  std::vector<Expr> coordinates;  // by dimension of the domain
  // The survey: reductions are not made, and stand as 0 where they are read.
  bool surveying = false;
  int stage = 0;
  std::map<ValueId, loop::Lane> reduced;  // results of ended reductions
  std::map<ValueId, int> scratch;         // buffers of values that later stages read instead of computing them again
  Expr scratch_position;                  // where the element at hand lies in them

  // ---- Elements
  // The coordinates at which a root of this group is made.
  std::vector<Expr> own_index(ValueId id) const;
  loop::Lane emit(ValueId id, const std::vector<Expr>& index);
  // The same for a root, computed and not read from memory.
  loop::Lane emit_body(ValueId id, const std::vector<Expr>& index);
  void store(ValueId id, loop::Lane value);
  // Computes in the current scope whatever the targets need that does not vary with these dimensions, whose loops are
  // still to be opened.
  void hoist_before(std::span<const size_t> dims, const std::vector<ValueId>& targets);

  // A buffer of the kernel that is no value of the graph.
  int extra_buffer(std::string name, Dtype dtype, loop::BufferRole role, Expr extent, ValueId stands_for);
  EmittedKernel finish();
  // Of a survey, which has nothing to verify.
  const std::vector<ValueId>& buffer_values() const { return buffer_values_; }

 private:
  // A value, where it is read, and the condition under which it was made (loop::kNone: any).
  struct MemoKey {
    ValueId id;
    std::vector<const sym::ExprNode*> index;
    loop::ValueId condition;
    auto operator<=>(const MemoKey&) const = default;
  };
  class SourceIndex;
  class ElementContext;

  void put_scratch_last();
  Expr rebuild(Expr expr);
  loop::Lane number_lane(const Node& node, size_t at, const dispatch::Value& value, Dtype dtype);
  loop::Lane symbolic_lane(const Scalar& scalar, Dtype dtype);
  std::pair<loop::Lane, loop::Lane> random_parameters(const Node& node);

  Expr extent_of(const SymInts& sizes, const SymInts& strides);
  int buffer_of(ValueId base, loop::BufferRole role);
  Expr address(ValueId id, std::span<const Expr> index);
  // Where an element of a root of this group is stored: buffer and position.
  std::pair<int, Expr> home(ValueId id, std::span<const Expr> index);

  MemoKey memo_key(ValueId id, std::span<const Expr> index) const;
  const loop::Lane* remembered(MemoKey key) const;
  bool never_empty(ValueId id);
  loop::Lane emit_anew(ValueId id, const std::vector<Expr>& index);
  loop::Lane emit_pointwise(ValueId id, const std::vector<Expr>& index);
  loop::Lane emit_element(ValueId id, const std::vector<Expr>& index);
  std::vector<Expr> source_index(ValueId id, const std::vector<Expr>& index);
  std::vector<Expr> broadcast_index(ValueId input, const std::vector<Expr>& index);
  void hoist(ValueId id, const std::vector<Expr>& index, const std::set<int32_t>& pending, std::set<MemoKey>& seen);

  const Schedule& schedule_;
  const Graph& graph_;
  const Group& group_;
  loop::Builder builder_;
  int open_loops_ = 0;
  int stand_ins_ = 0;
  int doubtful_ = 0;  // values that may be empty, of those being emitted under a condition
  std::vector<std::map<MemoKey, loop::Lane>> memo_;  // by scope
  std::map<ValueId, int> levels_;
  std::unordered_map<int32_t, Expr> symbols_;  // the graph's symbols to the kernel's
  std::vector<Expr> integers_;                 // what is passed: symbols, and expressions computed before the launch
  std::unordered_map<Expr, Expr> computed_;    // the latter, by what they are in the graph
  std::unordered_map<Expr, int> scalar_parameters_;
  std::vector<Expr> scalar_exprs_;
  std::vector<Expr> numbers_;
  std::map<ValueId, int> buffers_;
  std::vector<ValueId> buffer_values_;
  std::map<std::pair<const Node*, size_t>, int> number_parameters_;
  std::map<const Node*, std::pair<int, int>> random_;
  std::vector<const Node*> random_nodes_;
  std::vector<runtime::ScalarSource> scalars_;
};

}  // namespace tenon::schedule
