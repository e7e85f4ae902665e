#include "work.h"

#include <tenon/loop/builder.h>

#include <algorithm>

namespace tenon::schedule {
namespace {

constexpr int kRandom = 40;
constexpr int kTranscendental = 14;
constexpr int kElement = 4;  // of a place where an element may lie: comparing and adding indices

// The row's expression, on lanes that are loaded.
int pointwise_work(const ops::Row& row, const Graph& graph, const Node& node) {
  dispatch::Values values = node_values(graph, node);
  ops::Arguments arguments(*node.op, values);
  Dtype promoted = ops::pointwise_dtypes(row, arguments).compute, compute = compute_dtype(promoted);
  if (compute == kBool && row.pointwise.promotion != ops::Promotion::Logical) compute = kUInt8;
  loop::Builder builder("work");
  std::vector<loop::Lane> lanes;
  for (size_t at = 0; at < node.args.size(); ++at) {
    if (!ops::is_lane(row.schema.arguments[at])) continue;
    bool condition = row.pointwise.promotion == ops::Promotion::Branch && lanes.empty();
    Dtype dtype = condition ? kBool : compute;
    if (values[at].is_none())
      lanes.emplace_back();
    else
      lanes.push_back(loop::cast(
          builder.load(builder.buffer("x", dtype, loop::BufferRole::In), builder.pool().constant(0)), dtype));
  }
  (void)row.pointwise.body(lanes, promoted);
  int work = 0;
  for (const loop::Statement& statement : builder.kernel().body)
    if (const auto* op = std::get_if<loop::Op>(&statement)) work += instructions(*op);
  return work;
}

}  // namespace

int instructions(const loop::Op& op) {
  using loop::OpCode;
  switch (op.code) {
    case OpCode::Constant:
    case OpCode::Parameter:
    case OpCode::Index:
    case OpCode::Load:
    case OpCode::Store: return 0;
    case OpCode::Random: return kRandom;
    default: return loop::traits(op.code).transcendental ? kTranscendental : 1;
  }
}

int work_of(const Graph& graph, const Node& node) {
  const ops::Row& row = row_for(*node.op);
  switch (row.kind) {
    case ops::Kind::Pointwise: return pointwise_work(row, graph, node);
    case ops::Kind::Element: {
      if (row.element.random) return kRandom;
      size_t pieces = 1;
      for (const graph::Argument& argument : node.args)
        if (const auto* list = std::get_if<graph::ValueList>(&argument)) pieces = std::max(pieces, list->ids.size());
      return kElement * static_cast<int>(pieces);
    }
    case ops::Kind::Reduction: return 1;
    default: return 0;
  }
}

}  // namespace tenon::schedule
