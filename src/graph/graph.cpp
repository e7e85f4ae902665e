#include <tenon/graph/graph.h>

#include <set>

namespace tenon::graph {

ValueId Graph::add_value(std::string name, Tensor meta) {
  values.push_back({std::move(name), std::move(meta)});
  return static_cast<ValueId>(values.size() - 1);
}

void each_reference(const Argument& argument, const std::function<void(ValueId)>& visit) {
  if (const auto* id = std::get_if<ValueId>(&argument)) {
    if (*id != kNoValue) visit(*id);
  } else if (const auto* list = std::get_if<ValueList>(&argument)) {
    for (ValueId each : list->ids)
      if (each != kNoValue) visit(each);
  }
}

void each_reference(const Node& node, const std::function<void(ValueId)>& visit) {
  for (const Argument& argument : node.args) each_reference(argument, visit);
}

namespace {

std::string name_of(const Graph& graph, ValueId id) {
  return id == kNoValue ? "None" : "%" + graph.values[static_cast<size_t>(id)].name;
}

std::string to_text(const Graph& graph, const Argument& argument) {
  if (const auto* id = std::get_if<ValueId>(&argument)) return name_of(graph, *id);
  if (const auto* list = std::get_if<ValueList>(&argument)) {
    std::vector<std::string> words;
    for (ValueId each : list->ids) words.push_back(name_of(graph, each));
    return fmt::format("[{}]", fmt::join(words, ", "));
  }
  return std::get<dispatch::Value>(argument).str();
}

std::string type_of(const Tensor& meta) {
  std::string text = meta.description();
  if (!meta.is_contiguous()) text += fmt::format(" strides={}", str(meta.sym_strides()));
  return text;
}

}  // namespace

std::string to_string(const Graph& graph) {
  std::string text = "graph(";
  for (size_t at = 0; at < graph.inputs.size(); ++at)
    text += fmt::format("{}{}: {}", at ? ", " : "", name_of(graph, graph.inputs[at]), type_of(graph.meta(graph.inputs[at])));
  text += ")\n";
  for (const Node& node : graph.nodes) {
    std::vector<std::string> args, outputs, types;
    for (size_t at = 0; at < node.args.size(); ++at) {
      const schema::Argument& argument = node.op->schema().arguments[at];
      std::string word = to_text(graph, node.args[at]);
      args.push_back(argument.keyword_only ? fmt::format("{}={}", argument.name, word) : word);
    }
    for (ValueId id : node.outputs) {
      outputs.push_back(name_of(graph, id));
      types.push_back(type_of(graph.meta(id)));
    }
    text += "  ";
    if (!outputs.empty()) text += fmt::format("{} = ", fmt::join(outputs, ", "));
    text += fmt::format("{}({})", node.op->name(), fmt::join(args, ", "));
    if (!types.empty()) text += fmt::format(" : {}", fmt::join(types, ", "));
    if (!node.grad_enabled) text += "  [no_grad]";
    text += '\n';
  }
  std::vector<std::string> outputs;
  for (const Argument& output : graph.outputs) outputs.push_back(to_text(graph, output));
  return text + fmt::format("  return ({})\n", fmt::join(outputs, ", "));
}

void verify(const Graph& graph) {
  std::vector<bool> known(graph.values.size());
  auto require = [&](bool holds, const std::string& rule) { TENON_ASSERT(holds, "{} in\n{}", rule, to_string(graph)); };
  for (ValueId id : graph.inputs) known[static_cast<size_t>(id)] = true;
  for (const ValueInfo& value : graph.values) require(value.meta.defined(), "value %" + value.name + " has no metadata");
  for (const Node& node : graph.nodes) {
    require(node.args.size() == node.op->schema().arguments.size(), "arguments of " + node.op->name() + " fit its schema");
    each_reference(node, [&](ValueId id) {
      require(known[static_cast<size_t>(id)], node.op->name() + " reads " + name_of(graph, id) + " after it is made");
    });
    for (ValueId id : node.outputs) known[static_cast<size_t>(id)] = true;
  }
  for (const Argument& output : graph.outputs)
    each_reference(output, [&](ValueId id) { require(known[static_cast<size_t>(id)], "output " + name_of(graph, id) + " exists"); });
  if (graph.env)
    for (int32_t id = 0; id < graph.env->pool().symbol_count(); ++id)
      if (graph.env->is_backed(id) && static_cast<size_t>(id) < graph.symbols.size())
        require(graph.symbols[static_cast<size_t>(id)].kind != SymbolSource::Kind::None,
                "symbol " + graph.env->pool().symbol(id).name() + " has a source");
}

std::vector<std::vector<int32_t>> users_of(const Graph& graph) {
  std::vector<std::vector<int32_t>> users(graph.values.size());
  for (size_t at = 0; at < graph.nodes.size(); ++at)
    each_reference(graph.nodes[at], [&](ValueId id) { users[static_cast<size_t>(id)].push_back(static_cast<int32_t>(at)); });
  return users;
}

void remove_dead_code(Graph& graph) {
  std::vector<bool> live(graph.values.size());
  for (const Argument& output : graph.outputs) each_reference(output, [&](ValueId id) { live[static_cast<size_t>(id)] = true; });
  std::vector<Node> kept;
  for (size_t at = graph.nodes.size(); at-- > 0;) {
    Node& node = graph.nodes[at];
    bool needed = node.outputs.empty() || node.op->schema().is_mutable();
    for (ValueId id : node.outputs) needed |= live[static_cast<size_t>(id)];
    if (!needed) continue;
    each_reference(node, [&](ValueId id) { live[static_cast<size_t>(id)] = true; });
    kept.push_back(std::move(node));
  }
  graph.nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
}

std::vector<int64_t> bind_symbols(const Graph& graph, std::span<const Tensor> inputs, std::span<const int64_t> numbers) {
  std::vector<int64_t> values(graph.symbols.size());
  for (size_t id = 0; id < graph.symbols.size(); ++id) {
    const SymbolSource& source = graph.symbols[id];
    auto input = static_cast<size_t>(source.input), dim = static_cast<size_t>(source.dim);
    switch (source.kind) {
      case SymbolSource::Kind::None: break;
      case SymbolSource::Kind::Size: values[id] = inputs[input].sizes()[dim]; break;
      case SymbolSource::Kind::Stride: values[id] = inputs[input].strides()[dim]; break;
      case SymbolSource::Kind::Number: values[id] = numbers[input]; break;
    }
  }
  return values;
}

}  // namespace tenon::graph
