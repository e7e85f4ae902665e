#include "constants.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::freezing {

bool is_view(const Node& node) {
  const ops::Row* row = ops::row_of(*node.op);
  return row && row->kind == ops::Kind::View;
}

std::string name_of(const Graph& graph, ValueId id) {
  for (const Node& node : graph.nodes)
    if (std::find(node.outputs.begin(), node.outputs.end(), id) != node.outputs.end())
      return fmt::format("{} (%{})", node.op->brief_name(), graph.values[static_cast<size_t>(id)].name);
  return "%" + graph.values[static_cast<size_t>(id)].name;
}

Decision depends_on_operands_alone(const Graph& graph, const Node& node) {
  if (node.draw >= 0) return Decision::forbid("it draws random numbers");
  if (node.op->schema().is_mutable()) return Decision::forbid("it writes to its operands");
  if (!ops::row_of(*node.op)) return Decision::forbid("a custom operator may do more than compute");
  if (!node.binds.empty() || node.outputs.empty()) return Decision::forbid("its sizes, or numbers, come from data");
  // A guard may have given a symbol its one value: that of a parameter's size.
  bool symbolic = false;
  auto note = [&](int32_t id) {
    sym::Expr symbol = graph.env->pool().symbol(id);
    symbolic |= symbol.is_real() || !graph.env->pool().simplify(symbol).is_constant();
  };
  for (const graph::Argument& argument : node.args) graph::each_symbol(argument, note);
  for (ValueId id : node.outputs) graph::each_symbol(graph.meta(id), note);
  if (symbolic) return Decision::forbid("its sizes are symbols");
  return Decision::allow();
}

Mask find_constants(const Graph& graph, const Parameters& parameters) {
  Mask constants(graph.values.size());
  for (size_t at = 0; at < graph.inputs.size() && at < parameters.size(); ++at)
    constants[static_cast<size_t>(graph.inputs[at])] = static_cast<bool>(parameters[at]);
  for (const Node& node : graph.nodes) {
    bool all = static_cast<bool>(depends_on_operands_alone(graph, node));
    graph::each_reference(node, [&](ValueId id) { all &= constants[static_cast<size_t>(id)]; });
    for (ValueId id : node.outputs) constants[static_cast<size_t>(id)] = all;
  }
  return constants;
}

void put_constants_first(Graph& graph, const Mask& constants) {
  std::stable_partition(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return !node.outputs.empty() && constants[static_cast<size_t>(node.outputs[0])];
  });
}

ValueId viewed_by(const Graph& graph, ValueId id) {
  for (size_t at = graph.nodes.size(); at-- > 0;) {
    const Node& node = graph.nodes[at];
    if (is_view(node) && node.outputs[0] == id) id = std::get<ValueId>(node.args[0]);
  }
  return id;
}

Mask find_shown(const Graph& graph) {
  Mask shown(graph.values.size());
  for (const graph::Argument& output : graph.outputs)
    graph::each_reference(output, [&](ValueId id) { shown[static_cast<size_t>(id)] = true; });
  for (size_t at = graph.nodes.size(); at-- > 0;) {
    const Node& node = graph.nodes[at];
    if (!is_view(node)) continue;
    for (ValueId id : node.outputs)
      if (shown[static_cast<size_t>(id)]) shown[static_cast<size_t>(std::get<ValueId>(node.args[0]))] = true;
  }
  return shown;
}

}  // namespace tenon::freezing
