#include <tenon/graph/graph.h>

namespace tenon::graph {
namespace {

dispatch::Value in_copy(const dispatch::Value& value, const sym::EnvCopy& copy) {
  switch (value.tag()) {
    case dispatch::Value::Tag::Int: return dispatch::Value(copy(value.sym_int())).own();
    case dispatch::Value::Tag::Real: return dispatch::Value(copy(value.sym_float())).own();
    case dispatch::Value::Tag::Bool: return dispatch::Value(copy(value.sym_bool())).own();
    case dispatch::Value::Tag::SymInts: return dispatch::Value(copy(value.sym_ints())).own();
    default: return value;
  }
}

Argument in_copy(const Argument& argument, const sym::EnvCopy& copy) {
  const auto* constant = std::get_if<dispatch::Value>(&argument);
  return constant ? Argument(in_copy(*constant, copy)) : argument;
}

Tensor in_copy(const Tensor& meta, const sym::EnvCopy& copy) {
  bool symbolic = false;
  each_symbol(meta, [&](int32_t) { symbolic = true; });
  if (!symbolic) return meta;
  SymInts sizes = copy(meta.sym_sizes()), strides = copy(meta.sym_strides());
  Tensor made = core::make_without_data(sizes, strides, meta.dtype(), meta.device(), KeySet{DispatchKey::Fake});
  SymInt offset = copy(meta.sym_storage_offset());
  return offset.same(0) ? made : core::make_view(made, sizes, strides, offset);
}

}  // namespace

Graph in_copy(const Graph& graph, const sym::EnvCopy& copy) {
  Graph made = graph;
  made.env = copy.env();
  for (ValueInfo& value : made.values) value.meta = in_copy(value.meta, copy);
  for (Node& node : made.nodes)
    for (Argument& argument : node.args) argument = in_copy(argument, copy);
  for (Argument& output : made.outputs) output = in_copy(output, copy);
  for (SeedEvent& event : made.seeds) event.seed = in_copy(event.seed, copy);
  return made;
}

std::vector<sym::EnvCopy::Bound> bound_symbols(const Graph& graph, bool known) {
  std::vector<sym::EnvCopy::Bound> bound;
  for (const Node& node : graph.nodes)
    for (const Binding& binding : node.binds) {
      const auto* read =
          binding.kind == Binding::Kind::Item && !node.args.empty() ? std::get_if<ValueId>(&node.args[0]) : nullptr;
      bound.push_back({binding.symbol, read && *read != kNoValue && graph.meta(*read).dtype() == Dtype::Bool, known});
    }
  return bound;
}

}  // namespace tenon::graph
