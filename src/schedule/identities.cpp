// Operators that change nothing are taken out: x * 1, x / 1, x - 0, a sum with an integer 0, a cast to the dtype that x
// has, a copy of what lies as it is to lie. The result's dtype and sizes must be those of the operand, and its bits: x
// + 0.0 stays, because it turns -0.0 into 0.0; but not after a product of matrices, of whose zeros nothing tells the
// sign.
#include "fusion.h"

#include <tenon/sym/size_rules.h>

#include <cmath>

namespace tenon::schedule {
namespace {

using ops::Role;

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
  switch (row_for(*node->op).role) {
    case Role::Zeros: return 0;
    case Role::Ones: return 1;
    case Role::Full: return uniform_value(graph, producer, node->args[1]);
    case Role::Clone:
    case Role::Reshape:
    case Role::Expand: return uniform_value(graph, producer, node->args[0]);
    default: return std::nullopt;
  }
}

bool agree(const SymInt& a, const SymInt& b) { return a.same(b) || statically_true(a == b); }

// A product of matrices: its elements are sums, in an order that the library chooses.
bool is_product(const Node* node) {
  if (!node) return false;
  const Role role = row_for(*node->op).role;
  return role == Role::Product || role == Role::AddedProduct;
}

bool alpha_is_one(const Node& node) {
  return node.args.size() < 3 || (std::holds_alternative<dispatch::Value>(node.args[2]) &&
                                  std::get<dispatch::Value>(node.args[2]).is_number() &&
                                  !std::get<dispatch::Value>(node.args[2]).scalar().is_symbolic() &&
                                  std::get<dispatch::Value>(node.args[2]).scalar().to_double() == 1);
}

// The operand that the node passes on unchanged; kNoValue if there is none.
ValueId passed_on(const Graph& graph, const std::vector<const Node*>& producer, const Node& node) {
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
  auto may_lose_a_zero = [&](size_t at) {
    const ValueId id = operand(at);
    return is_integer || (id != graph::kNoValue && is_product(producer[static_cast<size_t>(id)]));
  };
  switch (row_for(*node.op).role) {
    case Role::Multiply: kept = other_is(1, 1) ? operand(0) : other_is(0, 1) ? operand(1) : kept; break;
    case Role::Divide:
      if (other_is(1, 1)) kept = operand(0);
      break;
    case Role::Subtract:
      if (alpha_is_one(node) && other_is(1, 0)) kept = operand(0);
      break;
    case Role::Add:
      if (!alpha_is_one(node)) break;
      kept = other_is(1, 0) && may_lose_a_zero(0)   ? operand(0)
             : other_is(0, 0) && may_lose_a_zero(1) ? operand(1)
                                                    : kept;
      break;
    case Role::Convert: kept = operand(0); break;
    case Role::Copy: kept = operand(1); break;
    default: break;
  }
  if (kept == graph::kNoValue) return kept;
  const Tensor &from = graph.meta(kept), &to = graph.meta(node.outputs[0]);
  if (from.dtype() != to.dtype() || from.dim() != to.dim()) return graph::kNoValue;
  SymInts sizes = from.sym_sizes(), wanted = to.sym_sizes(), strides = from.sym_strides(), shown = to.sym_strides();
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    if (!agree(sizes[dim], wanted[dim]) || (!is_one(sizes[dim]) && !agree(strides[dim], shown[dim])))
      return graph::kNoValue;
  // Views of the result count from where it begins.
  return agree(from.sym_storage_offset(), to.sym_storage_offset()) ? kept : graph::kNoValue;
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
    if (kept == graph::kNoValue) continue;
    const auto made = static_cast<size_t>(node.outputs[0]);
    if (fixed[made]) {
      // What becomes a result must have memory of its own, as this had.
      const Node* origin = producer[static_cast<size_t>(kept)];
      if (fixed[static_cast<size_t>(kept)] || !origin || !ops::row_of(*origin->op) ||
          row_for(*origin->op).kind == ops::Kind::View)
        continue;
      fixed[static_cast<size_t>(kept)] = true;
    }
    becomes[made] = kept;
  }
  for (graph::Argument& output : graph.outputs)
    if (auto* id = std::get_if<ValueId>(&output)) rename(*id);
  graph::remove_dead_code(graph);
}

}  // namespace tenon::schedule
