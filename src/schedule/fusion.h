// What fusion decides: which values get memory, and which kernels compute them.
//
// Every pointwise, element and view value starts virtual: an expression that its readers inline. A *root* gets memory:
// outputs of the graph, operands of opaque calls, reductions, and values that several nodes read. Roots are put, in
// order, into steps; a step is an opaque call or a group of roots that one loop nest computes. A root whose readers all
// sit in its own group loses its memory again.
#pragma once

#include <tenon/graph/graph.h>
#include <tenon/ops/row.h>
#include <tenon/schedule/schedule.h>
#include <tenon/support/decision.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace tenon::schedule {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using sym::Expr;

struct ValueState {
  const Node* node = nullptr;  // null: an input
  const ops::Row* row = nullptr;
  ValueId base = graph::kNoValue;    // of a view: the value whose memory it shows; else itself
  ValueId source = graph::kNoValue;  // of a view: what it views
  bool root = false;                 // computed by a step of its own right
  bool stored = false;               // has memory
  int step = -1;                     // the step that computes a root
  ValueId memory = graph::kNoValue;  // of what an input becomes, updated in place (in_place.h): that input
};

// Elements that are stored into the memory of an input.
struct Write {
  ValueId value = graph::kNoValue;  // a root
  Tensor place;                     // sizes, strides and offset of where they go: a fake view of the input's
};

// An input that is updated where it lies.
struct Update {
  size_t written = 0;  // position in `Graph::written`
  ValueId input = graph::kNoValue;
  std::vector<Write> writes;  // in the order in which they happen
  ValueId result =
      graph::kNoValue;  // the value that stands for the input's memory afterwards; kNoValue: nobody reads it
};

// One loop nest, or one opaque call.
struct Group {
  const Node* call = nullptr;  // the opaque call; then `roots` are its outputs
  // What the call does to each element of its result besides; `roots[0]` is what comes of it.
  dispatch::Epilogue epilogue = dispatch::Epilogue::None;
  std::vector<ValueId> roots;
  std::vector<Expr> domain;   // extents of the iteration space, in the graph's pool
  std::vector<bool> reduced;  // by dimension; all false: no reduction
  bool has_reduction() const { return std::find(reduced.begin(), reduced.end(), true) != reduced.end(); }
};

struct Schedule {
  const Graph& graph;
  Options options;
  std::vector<ValueState> values;  // by ValueId
  std::vector<Group> groups;       // in the order in which they run
  std::vector<Decision> refusals;  // why roots were not fused
  std::vector<Update> updates;     // inputs that are written in place

  Schedule(const Graph& source, const Options& chosen, std::vector<Update> updated = {});
  ValueState& state(ValueId id) { return values[static_cast<size_t>(id)]; }
  const ValueState& state(ValueId id) const { return values[static_cast<size_t>(id)]; }
  bool is_input(ValueId id) const { return state(id).node == nullptr; }
  // Where a root is stored if that is an input's memory; null: it has memory of its own, if any.
  struct Place {
    ValueId input;
    const Tensor* place;
  };
  std::optional<Place> place_of(ValueId root) const;
  // Whether the group stores into the memory of this input.
  bool is_written_by(const Group& group, ValueId input) const;

 private:
  std::unordered_map<ValueId, std::pair<size_t, size_t>> places_;  // root → its update, its write
};

// Takes out operators that change nothing.
void remove_identities(Graph& graph);

Schedule fuse(const Graph& graph, const Options& options, std::vector<Update> updates = {});

// The row of an operator; an operator that is not in the table (a custom one) is opaque: its kernel is called through
// the dispatcher.
const ops::Row& row_for(const dispatch::Operator& op);

// Sizes as expressions of the graph's pool.
std::vector<Expr> size_exprs(const Graph& graph, ValueId id);
Expr to_expr(const Graph& graph, const SymInt& number);
// The arguments of a node with metadata in place of tensors.
dispatch::Values node_values(const Graph& graph, const Node& node);

// Whether a view shows places of which only memory knows what lies there: the value that it looks into must have some.
bool needs_memory(const Schedule& schedule, ValueId view);

struct EmittedKernel {
  loop::Kernel kernel;
  std::vector<ValueId> buffers;  // what each buffer holds
  std::vector<Expr> integers;    // the graph's expressions to pass
  std::vector<runtime::ScalarSource>
      scalars;  // Expr indices refer to `scalar_exprs`; Seed and Offset to `random_nodes`
  std::vector<Expr> scalar_exprs;
  std::vector<Expr> numbers;  // computed of sizes by the kernel itself: before it runs they are seen to fit 64 bits
  std::vector<const Node*> random_nodes;
};

}  // namespace tenon::schedule
