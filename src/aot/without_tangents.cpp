#include "without_tangents.h"

#include "body.h"
#include "support/thread_context.h"

#include <tenon/fake/fake.h>
#include <tenon/generated/ops.h>
#include <tenon/ops/row.h>

#include <algorithm>

namespace tenon::aot {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

bool is_plain_sum(const Node& node) {
  if (ops::role_of(*node.op) != ops::Role::Add || !std::holds_alternative<ValueId>(node.args[1])) return false;
  const auto* alpha = std::get_if<dispatch::Value>(&node.args[2]);
  return alpha && alpha->is_number() && !alpha->scalar().is_symbolic() && alpha->scalar().to_double() == 1;
}

// `anyhow`: wherever the elements lie.
bool same_geometry(const Tensor& a, const Tensor& b, bool anyhow) {
  SymInts sizes = a.sym_sizes(), others = b.sym_sizes(), strides = a.sym_strides(), other_strides = b.sym_strides();
  if (a.dtype() != b.dtype() || sizes.size() != others.size()) return false;
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    if (!sizes[dim].same(others[dim]) || !(anyhow || strides[dim].same(other_strides[dim]))) return false;
  return true;
}

Tensor zeros_like_of(const Tensor& meta) {
  support::SwapContext apart(support::ThreadContext{});
  return zeros_like(meta);
}

}  // namespace

Graph without_tangents(const Graph& backward, size_t saved, const std::vector<bool>& given,
                       const std::vector<bool>& reached) {
  Graph result = backward;
  size_t count = backward.values.size();
  // What depends on a tangent, and what of it on missing ones alone. Backward is linear in its tangents, so the latter
  // are zero.
  std::vector<bool> dependent(count), zero(count);
  const std::vector<std::vector<int32_t>> users = graph::users_of(backward);
  std::vector<ValueId> becomes(count);
  for (size_t id = 0; id < count; ++id) becomes[id] = static_cast<ValueId>(id);
  result.inputs.assign(backward.inputs.begin(), backward.inputs.begin() + static_cast<ptrdiff_t>(saved));
  for (size_t at = 0; at < given.size(); ++at) {
    ValueId id = backward.inputs[saved + at];
    dependent[static_cast<size_t>(id)] = true;
    if (given[at])
      result.inputs.push_back(id);
    else
      zero[static_cast<size_t>(id)] = true;
  }
  result.nodes.clear();
  // In the order in memory of what they stand for: so is what is computed from them.
  auto materialised = [&](ValueId id, const Node& user) {
    static const dispatch::Operator &empty = dispatch::find_operator("aten::empty_strided"),
                                    &zeros_like = dispatch::find_operator("aten::zeros_like");
    const dispatch::Value none;
    Tensor meta = fake::like(backward.meta(id));
    auto add = [&](const dispatch::Operator& op, std::vector<graph::Argument> args, const Tensor& made) {
      Node node;
      node.op = &op;
      node.sequence = user.sequence;
      node.args = std::move(args);
      node.outputs = {result.add_value(std::to_string(result.values.size()) + "z", made)};
      result.nodes.push_back(node);
      return node.outputs[0];
    };
    ValueId like = add(empty,
                       {dispatch::Value(meta.sym_sizes()).own(), dispatch::Value(meta.sym_strides()).own(),
                        dispatch::Value(meta.dtype()), none, dispatch::Value(meta.device()), none},
                       meta);
    return add(zeros_like, {like, none, none, none, none, none}, zeros_like_of(meta));
  };
  for (const Node& node : backward.nodes) {
    // Results of loops and branches come from some of what these are given.
    const std::vector<std::vector<bool>> origins = origins_of_results(node);
    for (size_t which = 0; which < node.outputs.size(); ++which) {
      bool any = false, all_zero = true;
      size_t at = 0;
      graph::each_reference(node, [&](ValueId id) {
        const size_t place = at++;
        if (!dependent[static_cast<size_t>(id)] || (!origins.empty() && !origins[which][place])) return;
        any = true;
        all_zero &= zero[static_cast<size_t>(id)];
      });
      dependent[static_cast<size_t>(node.outputs[which])] = any;
      zero[static_cast<size_t>(node.outputs[which])] = any && all_zero;
    }
  }
  // What is left of a sum with a zero in it.
  auto left_of = [&](const Node& node) {
    if (!is_plain_sum(node)) return graph::kNoValue;
    auto a = std::get<ValueId>(node.args[0]), b = std::get<ValueId>(node.args[1]);
    return zero[static_cast<size_t>(a)] ? b : zero[static_cast<size_t>(b)] ? a : graph::kNoValue;
  };
  // Where the elements of a gradient lie matters to nobody inside, if it is handed out, or only such sums read it.
  std::vector<bool> lies_anyhow(count);
  for (size_t at = backward.nodes.size(); at-- > 0;)
    for (ValueId id : backward.nodes[at].outputs) {
      const std::vector<int32_t>& its = users[static_cast<size_t>(id)];
      lies_anyhow[static_cast<size_t>(id)] = std::all_of(its.begin(), its.end(), [&](int32_t user) {
        const Node& node = backward.nodes[static_cast<size_t>(user)];
        return left_of(node) == id && lies_anyhow[static_cast<size_t>(node.outputs[0])];
      });
    }
  for (const Node& original : backward.nodes) {
    if (!original.outputs.empty() && std::all_of(original.outputs.begin(), original.outputs.end(),
                                                 [&](ValueId id) { return zero[static_cast<size_t>(id)]; }))
      continue;
    Node node = original;
    if (ValueId kept = left_of(node);
        kept != graph::kNoValue && same_geometry(backward.meta(kept), backward.meta(node.outputs[0]),
                                                 lies_anyhow[static_cast<size_t>(node.outputs[0])])) {
      becomes[static_cast<size_t>(node.outputs[0])] = becomes[static_cast<size_t>(kept)];
      continue;
    }
    auto rename = [&](ValueId& id) {
      if (id == graph::kNoValue) return;
      id = zero[static_cast<size_t>(id)] ? materialised(id, original) : becomes[static_cast<size_t>(id)];
    };
    for (graph::Argument& argument : node.args) {
      if (auto* id = std::get_if<ValueId>(&argument)) rename(*id);
      if (auto* list = std::get_if<graph::ValueList>(&argument))
        for (ValueId& id : list->ids) rename(id);
    }
    result.nodes.push_back(std::move(node));
  }
  for (size_t at = 0; at < result.outputs.size(); ++at)
    if (auto* id = std::get_if<ValueId>(&result.outputs[at]); id && *id != graph::kNoValue) {
      bool is_zero = zero[static_cast<size_t>(*id)];
      // (Zeros that depend on nothing, the gradient of sign(), are as little reached as others.)
      *id = !reached[at] ? graph::kNoValue : is_zero ? materialised(*id, {}) : becomes[static_cast<size_t>(*id)];
    }
  graph::remove_dead_code(result);
  graph::verify(result);
  return result;
}

std::vector<bool> used_inputs(const Graph& graph) {
  std::vector<bool> used(graph.values.size());
  auto use = [&](ValueId id) {
    if (id != graph::kNoValue) used[static_cast<size_t>(id)] = true;
  };
  for (const Node& node : graph.nodes) graph::each_reference(node, use);
  for (const graph::Argument& output : graph.outputs)
    if (const auto* id = std::get_if<ValueId>(&output)) use(*id);
  std::vector<bool> inputs;
  for (ValueId id : graph.inputs) inputs.push_back(used[static_cast<size_t>(id)]);
  return inputs;
}

std::vector<bool> drop_unused_inputs(Graph& graph, size_t count) {
  const std::vector<bool> used = used_inputs(graph);
  std::vector<bool> kept;
  std::vector<ValueId> inputs;
  for (size_t at = 0; at < graph.inputs.size(); ++at) {
    bool keep = at >= count || used[at];
    if (at < count) kept.push_back(keep);
    if (keep) inputs.push_back(graph.inputs[at]);
  }
  graph.inputs = std::move(inputs);
  return kept;
}

}  // namespace tenon::aot
