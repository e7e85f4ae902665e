#include "gradient_layout.h"

#include <tenon/ops/row.h>

#include <algorithm>
#include <map>
#include <set>

namespace tenon::aot {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

bool is_transpose(const Node& node) {
  if (ops::role_of(*node.op) != ops::Role::Permute) return false;
  SymInts order = std::get<dispatch::Value>(node.args[1]).sym_ints();
  return order.size() == 2 && order[0].same(1) && order[1].same(0);
}

class Rewriter {
 public:
  explicit Rewriter(Graph& graph) : graph_(graph), users_(graph::users_of(graph)), producer_(graph.values.size(), -1) {
    for (size_t at = 0; at < graph.nodes.size(); ++at)
      for (ValueId id : graph.nodes[at].outputs) producer_[static_cast<size_t>(id)] = static_cast<int>(at);
  }

  void run() {
    for (const graph::Argument& output : graph_.outputs)
      if (const auto* id = std::get_if<ValueId>(&output); id && *id != graph::kNoValue) rewrite(*id);
    std::vector<Node> nodes;
    for (size_t at = 0; at < graph_.nodes.size(); ++at) {
      auto found = in_front_.find(static_cast<int>(at));
      if (found != in_front_.end())
        for (Node& node : found->second) nodes.push_back(std::move(node));
      if (!removed_.contains(static_cast<int>(at))) nodes.push_back(std::move(graph_.nodes[at]));
    }
    graph_.nodes = std::move(nodes);
    graph::verify(graph_);
  }

 private:
  void rewrite(ValueId result) {
    int transpose_at = producer_[static_cast<size_t>(result)];
    if (transpose_at < 0 || removed_.contains(transpose_at) || !users_[static_cast<size_t>(result)].empty()) return;
    const Node& transpose = graph_.nodes[static_cast<size_t>(transpose_at)];
    if (!is_transpose(transpose)) return;
    auto product = std::get<ValueId>(transpose.args[0]);
    int product_at = producer_[static_cast<size_t>(product)];
    if (product_at < 0 || users_[static_cast<size_t>(product)].size() != 1 || is_output(product)) return;
    Node& multiply = graph_.nodes[static_cast<size_t>(product_at)];
    if (ops::role_of(*multiply.op) != ops::Role::Product || graph_.meta(product).dim() != 2 ||
        count_outputs(result) != 1)
      return;
    auto a = std::get<ValueId>(multiply.args[0]), b = std::get<ValueId>(multiply.args[1]);
    ValueId left = transposed(b, transpose, product_at), right = transposed(a, transpose, product_at);
    multiply.args = {left, right};
    multiply.outputs = {result};
    const Tensor meta = graph_.meta(result);
    graph_.values[static_cast<size_t>(result)].meta =
        core::make_view(meta, meta.sym_sizes(), core::contiguous_strides(meta.sym_sizes().span()), 0);
    removed_.insert(transpose_at);
  }

  // A transpose of a value, in front of the node at `before`; `pattern` is another transpose.
  ValueId transposed(ValueId id, const Node& pattern, int before) {
    const Tensor meta = graph_.meta(id);
    SymInts sizes = meta.sym_sizes(), strides = meta.sym_strides();
    std::swap(sizes[0], sizes[1]);
    std::swap(strides[0], strides[1]);
    Node node = pattern;
    node.args[0] = id;
    std::string name = graph_.values[static_cast<size_t>(id)].name + "_t";
    auto taken = [&] {
      return std::any_of(graph_.values.begin(), graph_.values.end(),
                         [&](const auto& value) { return value.name == name; });
    };
    while (taken()) name += "_";
    ValueId made = graph_.add_value(name, core::make_view(meta, sizes, strides, meta.sym_storage_offset()));
    node.outputs = {made};
    in_front_[before].push_back(std::move(node));
    return made;
  }

  int count_outputs(ValueId id) const {
    int count = 0;
    for (const graph::Argument& output : graph_.outputs)
      graph::each_reference(output, [&](ValueId each) { count += each == id; });
    return count;
  }
  bool is_output(ValueId id) const { return count_outputs(id) > 0; }

  Graph& graph_;
  std::vector<std::vector<int32_t>> users_;
  std::vector<int> producer_;                  // by value: the node's position, -1 for inputs
  std::map<int, std::vector<Node>> in_front_;  // new nodes, by the position that they come before
  std::set<int> removed_;
};

}  // namespace

void make_gradients_dense(Graph& backward) { Rewriter(backward).run(); }

}  // namespace tenon::aot
