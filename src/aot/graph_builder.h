// Appends calls to a graph, for the bodies of loops and branches.
#pragma once

#include <tenon/fake/fake.h>
#include <tenon/graph/graph.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tenon::aot {

class Builder {
 public:
  explicit Builder(graph::Graph& graph) : graph_(graph) {}

  graph::ValueId input(const Tensor& meta) {
    graph::ValueId id = graph_.add_value(fmt::format("in{}", graph_.values.size()), fake::like(meta));
    graph_.inputs.push_back(id);
    return id;
  }
  graph::ValueId call(const char* name, std::vector<graph::Argument> args, const Tensor& meta) {
    return call(dispatch::find_operator(name), std::move(args), meta);
  }
  graph::ValueId call(const dispatch::Operator& op, std::vector<graph::Argument> args, const Tensor& meta) {
    graph::Node node;
    node.op = dispatch::OperatorRef(op);
    node.args = std::move(args);
    graph::ValueId id = graph_.add_value(std::to_string(graph_.values.size()), meta);
    node.outputs.push_back(id);
    graph_.nodes.push_back(std::move(node));
    return id;
  }
  graph::ValueId zeros(const Tensor& like) {
    return call("aten::zeros",
                {dispatch::Value(like.sym_sizes()).own(), dispatch::Value(like.dtype()), dispatch::Value(),
                 dispatch::Value(like.device()), dispatch::Value()},
                dense_like(like));
  }
  // Memory that nobody has written to.
  graph::ValueId empty(const Tensor& like) {
    return call("aten::empty.memory_format",
                {dispatch::Value(like.sym_sizes()).own(), dispatch::Value(like.dtype()), dispatch::Value(),
                 dispatch::Value(like.device()), dispatch::Value(), dispatch::Value()},
                dense_like(like));
  }
  graph::ValueId copy(graph::ValueId id) { return call("aten::clone", {id, dispatch::Value()}, graph_.meta(id)); }
  graph::ValueId dense(graph::ValueId id) { return contiguous(id); }
  graph::ValueId sum(graph::ValueId a, graph::ValueId b) {
    return call("aten::add.Tensor", {a, b, dispatch::Value(int64_t{1})}, dense_like(graph_.meta(a)));
  }
  // In the order of its memory: contiguous. A value that is contiguous in no order is copied.
  graph::ValueId permuted(graph::ValueId id, const std::vector<int64_t>& order) {
    if (std::is_sorted(order.begin(), order.end())) return contiguous(id);
    return call("aten::permute", {id, dispatch::Value(SymInts(order.begin(), order.end())).own()},
                permuted_meta(graph_.meta(id), order));
  }
  // The other way: a new first value from which all reads of `id`, which was given, are computed.
  graph::ValueId given_permuted(graph::ValueId id, const std::vector<int64_t>& order) {
    if (std::is_sorted(order.begin(), order.end())) return given_dense(id);
    graph::ValueId given = graph_.add_value(fmt::format("kept{}", graph_.values.size()),
                                            dense_like(permuted_meta(graph_.meta(id), order)));
    std::vector<int64_t> back(order.size());
    for (size_t at = 0; at < order.size(); ++at) back[static_cast<size_t>(order[at])] = static_cast<int64_t>(at);
    graph::Node node;
    node.op = dispatch::OperatorRef(dispatch::find_operator("aten::permute"));
    node.args = {given, dispatch::Value(SymInts(back.begin(), back.end())).own()};
    node.outputs = {id};
    graph_.nodes.insert(graph_.nodes.begin(), std::move(node));
    return given;
  }
  graph::ValueId given_dense(graph::ValueId id) {
    Tensor& meta = graph_.values[static_cast<size_t>(id)].meta;
    meta = dense_like(meta);
    return id;
  }
  // A result of the body: no input, and none that there is already.
  void result(graph::ValueId id) {
    const bool is_input = std::find(graph_.inputs.begin(), graph_.inputs.end(), id) != graph_.inputs.end();
    const bool is_taken = std::any_of(graph_.outputs.begin(), graph_.outputs.end(), [&](const graph::Argument& output) {
      const auto* other = std::get_if<graph::ValueId>(&output);
      return other && *other == id;
    });
    if (is_input || is_taken)
      id = call("aten::clone", {id, dispatch::Value(MemoryFormat::Contiguous)}, dense_like(graph_.meta(id)));
    graph_.outputs.push_back(id);
  }

  static Tensor dense_like(const Tensor& meta) {
    SymInts sizes = meta.sym_sizes();
    return fake::make(sizes, core::contiguous_strides(sizes.span()), meta.dtype(), meta.device());
  }

 private:
  graph::ValueId contiguous(graph::ValueId id) {
    if (is_contiguous(graph_.meta(id))) return id;
    return call("aten::clone", {id, dispatch::Value(MemoryFormat::Contiguous)}, dense_like(graph_.meta(id)));
  }
  static Tensor permuted_meta(const Tensor& meta, const std::vector<int64_t>& order) {
    SymInts sizes, strides;
    for (int64_t dim : order) {
      sizes.push_back(meta.sym_sizes()[static_cast<size_t>(dim)]);
      strides.push_back(meta.sym_strides()[static_cast<size_t>(dim)]);
    }
    return fake::make(sizes, strides, meta.dtype(), meta.device());
  }
  static bool is_contiguous(const Tensor& meta) {
    SymInts sizes = meta.sym_sizes(), strides = meta.sym_strides(), dense = core::contiguous_strides(sizes.span());
    for (size_t dim = 0; dim < sizes.size(); ++dim)
      if (!strides[dim].same(dense[dim])) return false;
    return true;
  }

  graph::Graph& graph_;
};

}  // namespace tenon::aot
