// Operators that change nothing are taken out: x * 1, x / 1, x - 0, a sum with an integer 0, a cast to the dtype that x
// has. The result's dtype and sizes must be those of the operand, and its bits: x + 0.0 stays, because it turns -0.0
// into 0.0.
#include "fusion.h"

#include <cmath>

namespace tenon::schedule {
namespace {

// The number that a value is known to be in every element.
std::optional<double> uniform_value(const Graph& graph, const std::vector<const Node*>& producer,
                                    const graph::Argument& argument) {
  if (const auto* constant = std::get_if<dispatch::Value>(&argument)) {
    if (!constant->is_number()) return std::nullopt;
    Scalar scalar = constant->scalar();
    return scalar.is_symbolic() ? std::nullopt : std::optional(scalar.to_double());
  }
  const auto* id = std::get_if<ValueId>(&argument);
  if (!id || *id == graph::kNoValue) return std::nullopt;
  const Node* node = producer[static_cast<size_t>(*id)];
  if (!node) return std::nullopt;
  const std::string& name = node->op->schema().name;
  if (name == "zeros" || name == "zeros_like") return 0;
  if (name == "ones" || name == "ones_like") return 1;
  if (name == "full") return uniform_value(graph, producer, node->args[1]);
  if (name == "expand" || name == "view" || name == "clone") return uniform_value(graph, producer, node->args[0]);
  return std::nullopt;
}

bool alpha_is_one(const Node& node) {
  return node.args.size() < 3 || (std::holds_alternative<dispatch::Value>(node.args[2]) &&
                                  std::get<dispatch::Value>(node.args[2]).is_number() &&
                                  !std::get<dispatch::Value>(node.args[2]).scalar().is_symbolic() &&
                                  std::get<dispatch::Value>(node.args[2]).scalar().to_double() == 1);
}

// The operand that the node passes on unchanged; kNoValue if there is none.
ValueId passed_on(const Graph& graph, const std::vector<const Node*>& producer, const Node& node) {
  const std::string& name = node.op->schema().name;
  if (node.outputs.size() != 1 || node.args.size() < 2 || node.op->schema().is_mutable()) return graph::kNoValue;
  bool is_integer = !is_floating(graph.meta(node.outputs[0]).dtype());
  auto operand = [&](size_t at) {
    const auto* id = std::get_if<ValueId>(&node.args[at]);
    return id ? *id : graph::kNoValue;
  };
  auto other_is = [&](size_t at, double number) {
    std::optional<double> value = uniform_value(graph, producer, node.args[at]);
    return value && *value == number && !std::signbit(*value);
  };
  ValueId kept = graph::kNoValue;
  if (name == "mul") {
    kept = other_is(1, 1) ? operand(0) : other_is(0, 1) ? operand(1) : kept;
  } else if (name == "div" && node.op->schema().overload != "Tensor_mode") {
    if (other_is(1, 1)) kept = operand(0);
  } else if (name == "sub" && alpha_is_one(node)) {
    if (other_is(1, 0)) kept = operand(0);
  } else if (name == "add" && is_integer && alpha_is_one(node)) {
    kept = other_is(1, 0) ? operand(0) : other_is(0, 0) ? operand(1) : kept;
  } else if (name == "to" || name == "_to_copy") {
    kept = operand(0);
  }
  if (kept == graph::kNoValue) return kept;
  const Tensor &from = graph.meta(kept), &to = graph.meta(node.outputs[0]);
  if (from.dtype() != to.dtype() || from.dim() != to.dim()) return graph::kNoValue;
  SymInts sizes = from.sym_sizes(), wanted = to.sym_sizes(), strides = from.sym_strides(), shown = to.sym_strides();
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    if (!sizes[dim].same(wanted[dim]) || !strides[dim].same(shown[dim])) return graph::kNoValue;
  // Views of the result count from where it begins.
  return from.sym_storage_offset().same(to.sym_storage_offset()) ? kept : graph::kNoValue;
}

}  // namespace

void remove_identities(Graph& graph) {
  std::vector<const Node*> producer(graph.values.size());
  std::vector<ValueId> becomes(graph.values.size());
  for (size_t id = 0; id < becomes.size(); ++id) becomes[id] = static_cast<ValueId>(id);
  // A result of the graph has memory of its own, and so has what a result looks into.
  std::vector<bool> fixed(graph.values.size());
  for (const graph::Argument& output : graph.outputs)
    graph::each_reference(output, [&](ValueId id) { fixed[static_cast<size_t>(id)] = true; });
  for (size_t at = graph.nodes.size(); at-- > 0;) {
    const Node& node = graph.nodes[at];
    if (row_for(*node.op).kind != ops::Kind::View) continue;
    for (ValueId id : node.outputs)
      if (fixed[static_cast<size_t>(id)]) fixed[static_cast<size_t>(std::get<ValueId>(node.args[0]))] = true;
  }
  auto rename = [&](ValueId& id) {
    if (id != graph::kNoValue) id = becomes[static_cast<size_t>(id)];
  };
  for (Node& node : graph.nodes) {
    for (graph::Argument& argument : node.args) {
      if (auto* id = std::get_if<ValueId>(&argument)) rename(*id);
      if (auto* list = std::get_if<graph::ValueList>(&argument))
        for (ValueId& id : list->ids) rename(id);
    }
    for (ValueId id : node.outputs) producer[static_cast<size_t>(id)] = &node;
    ValueId kept = passed_on(graph, producer, node);
    if (kept != graph::kNoValue && !fixed[static_cast<size_t>(node.outputs[0])])
      becomes[static_cast<size_t>(node.outputs[0])] = kept;
  }
  graph::remove_dead_code(graph);
}

}  // namespace tenon::schedule
