#include <tenon/graph/graph.h>
#include <tenon/sym/size_rules.h>

#include <fmt/format.h>

#include <bit>
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

void each_symbol(const Argument& argument, const std::function<void(int32_t)>& visit) {
  const auto* constant = std::get_if<dispatch::Value>(&argument);
  if (!constant) return;
  auto visit_all = [&](sym::Expr expr) {
    for (int32_t id : sym::symbols_of(expr)) visit(id);
  };
  switch (constant->tag()) {
    case dispatch::Value::Tag::Int:
      if (SymInt number = constant->sym_int(); number.is_symbolic()) visit_all(number.expr());
      break;
    case dispatch::Value::Tag::Real:
      if (SymFloat number = constant->sym_float(); number.is_symbolic()) visit_all(number.expr());
      break;
    case dispatch::Value::Tag::Bool:
      if (SymBool flag = constant->sym_bool(); flag.is_symbolic()) visit_all(flag.expr());
      break;
    case dispatch::Value::Tag::SymInts:
      for (const SymInt& number : constant->sym_ints())
        if (number.is_symbolic()) visit_all(number.expr());
      break;
    default: break;
  }
}

void each_symbol(const Tensor& meta, const std::function<void(int32_t)>& visit) {
  if (!meta.has_symbolic_sizes()) return;
  auto visit_all = [&](const SymInt& number) {
    if (number.is_symbolic())
      for (int32_t id : sym::symbols_of(number.expr())) visit(id);
  };
  for (const SymInt& size : meta.sym_sizes()) visit_all(size);
  for (const SymInt& stride : meta.sym_strides()) visit_all(stride);
  visit_all(meta.sym_storage_offset());
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

// Known to be; a text asks nothing, and says the same whatever the hints are.
bool is_known_contiguous(const Tensor& meta) {
  if (!meta.has_symbolic_sizes()) return meta.is_contiguous();
  SymInts sizes = meta.sym_sizes(), strides = meta.sym_strides();
  SymInt expected = 1;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    if (is_one(sizes[dim])) continue;
    if (!strides[dim].same(expected) && !statically_true(strides[dim] == expected)) return false;
    expected *= sizes[dim];
  }
  return true;
}

std::string type_of(const Tensor& meta) {
  std::string text = meta.description();
  if (!is_known_contiguous(meta)) text += fmt::format(" strides={}", str(meta.sym_strides()));
  return text;
}

}  // namespace

std::string to_string(const Graph& graph) {
  std::string text = "graph(";
  for (size_t at = 0; at < graph.inputs.size(); ++at)
    text += fmt::format("{}{}: {}", at ? ", " : "", name_of(graph, graph.inputs[at]),
                        type_of(graph.meta(graph.inputs[at])));
  text += ")\n";
  auto seeds = [&, next = size_t{0}](size_t position) mutable {
    for (; next < graph.seeds.size() && graph.seeds[next].position <= position; ++next)
      text += fmt::format("  manual_seed({})\n", graph.seeds[next].seed.str());
  };
  for (const Node& node : graph.nodes) {
    seeds(static_cast<size_t>(&node - graph.nodes.data()));
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
    for (const Binding& binding : node.binds)
      if (binding.kind == Binding::Kind::Item) outputs.push_back(graph.env->pool().symbol(binding.symbol).name());
    if (!outputs.empty()) text += fmt::format("{} = ", fmt::join(outputs, ", "));
    text += fmt::format("{}({})", node.op->name(), fmt::join(args, ", "));
    if (!types.empty()) text += fmt::format(" : {}", fmt::join(types, ", "));
    if (!node.grad_enabled) text += "  [no_grad]";
    text += '\n';
  }
  seeds(graph.nodes.size());
  std::vector<std::string> outputs;
  for (const Argument& output : graph.outputs) outputs.push_back(to_text(graph, output));
  for (const Written& each : graph.written)
    outputs[static_cast<size_t>(each.output)] +=
        " into " + name_of(graph, graph.inputs[static_cast<size_t>(each.input)]);
  return text + fmt::format("  return ({})\n", fmt::join(outputs, ", "));
}

void verify(const Graph& graph) {
  std::vector<bool> known(graph.values.size());
  auto require = [&](bool holds, const std::string& rule) { TENON_ASSERT(holds, "{} in\n{}", rule, to_string(graph)); };
  for (ValueId id : graph.inputs) known[static_cast<size_t>(id)] = true;
  for (const ValueInfo& value : graph.values)
    require(value.meta.defined(), "value %" + value.name + " has no metadata");
  for (const Node& node : graph.nodes) {
    require(node.args.size() == node.op->schema().arguments.size(),
            "arguments of " + node.op->name() + " fit its schema");
    each_reference(node, [&](ValueId id) {
      require(known[static_cast<size_t>(id)], node.op->name() + " reads " + name_of(graph, id) + " after it is made");
    });
    for (ValueId id : node.outputs) known[static_cast<size_t>(id)] = true;
  }
  for (const Argument& output : graph.outputs)
    each_reference(output, [&](ValueId id) {
      require(known[static_cast<size_t>(id)], "output " + name_of(graph, id) + " exists");
    });
  for (const Written& each : graph.written)
    require(static_cast<size_t>(each.output) < graph.outputs.size() &&
                static_cast<size_t>(each.input) < graph.inputs.size(),
            "an output that goes into an input exists, and so does the input");
  if (graph.env)
    for (int32_t id = 0; id < graph.env->pool().symbol_count(); ++id)
      if (!graph.env->is_from_data(id) && static_cast<size_t>(id) < graph.symbols.size())
        require(graph.symbols[static_cast<size_t>(id)].kind != SymbolSource::Kind::None,
                "symbol " + graph.env->pool().symbol(id).name() + " has a source");
}

std::vector<std::vector<int32_t>> users_of(const Graph& graph) {
  std::vector<std::vector<int32_t>> users(graph.values.size());
  for (size_t at = 0; at < graph.nodes.size(); ++at)
    each_reference(graph.nodes[at],
                   [&](ValueId id) { users[static_cast<size_t>(id)].push_back(static_cast<int32_t>(at)); });
  return users;
}

void remove_dead_code(Graph& graph) {
  std::vector<bool> live(graph.values.size());
  std::set<int32_t> symbols;
  auto use = [&](int32_t id) { symbols.insert(id); };
  if (graph.env)
    for (const sym::Guard& check : graph.env->deferred_checks())
      for (int32_t id : sym::symbols_of(check.condition)) use(id);
  for (const Argument& output : graph.outputs) {
    each_reference(output, [&](ValueId id) { live[static_cast<size_t>(id)] = true; });
    each_symbol(output, use);
  }
  std::vector<Node> kept;
  for (size_t at = graph.nodes.size(); at-- > 0;) {
    Node& node = graph.nodes[at];
    bool needed = (node.outputs.empty() && node.binds.empty()) || node.op->schema().is_mutable();
    for (ValueId id : node.outputs) needed |= live[static_cast<size_t>(id)];
    for (const Binding& binding : node.binds) needed |= symbols.contains(binding.symbol);
    if (!needed) continue;
    each_reference(node, [&](ValueId id) { live[static_cast<size_t>(id)] = true; });
    for (const Argument& argument : node.args) each_symbol(argument, use);
    for (ValueId id : node.outputs) each_symbol(graph.meta(id), use);
    kept.push_back(std::move(node));
  }
  graph.nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
}

std::vector<int64_t> bind_symbols(const Graph& graph, std::span<const Tensor> inputs,
                                  std::span<const int64_t> numbers) {
  std::vector<int64_t> values(graph.symbols.size());
  for (size_t id = 0; id < graph.symbols.size(); ++id) {
    const SymbolSource& source = graph.symbols[id];
    auto input = static_cast<size_t>(source.input), dim = static_cast<size_t>(source.dim);
    switch (source.kind) {
      case SymbolSource::Kind::None: break;
      case SymbolSource::Kind::Size:
      case SymbolSource::Kind::AnySize: values[id] = inputs[input].sizes()[dim]; break;
      case SymbolSource::Kind::Stride: values[id] = inputs[input].strides()[dim]; break;
      case SymbolSource::Kind::Number: values[id] = numbers[input]; break;
    }
  }
  return values;
}

int64_t symbol_bits(const dispatch::Value& number) {
  switch (number.tag()) {
    case dispatch::Value::Tag::Real: return std::bit_cast<int64_t>(number.real());
    case dispatch::Value::Tag::Bool: return number.boolean() ? 1 : 0;
    default: return number.integer();
  }
}

int64_t bound_value(const Binding& binding, std::span<const dispatch::Value> results, std::span<const Tensor> outputs) {
  auto dim = static_cast<size_t>(binding.dim);
  switch (binding.kind) {
    case Binding::Kind::Item: return symbol_bits(results[dim]);
    case Binding::Kind::Size: return outputs[static_cast<size_t>(binding.output)].sizes()[dim];
    case Binding::Kind::Stride: return outputs[static_cast<size_t>(binding.output)].strides()[dim];
    case Binding::Kind::Offset: return outputs[static_cast<size_t>(binding.output)].storage_offset();
    case Binding::Kind::Hidden: return 0;
  }
  return 0;
}

dispatch::Value evaluate_number(sym::Expr expr, std::span<const int64_t> symbols) {
  if (expr.is_real()) return sym::evaluate_real(expr, symbols);
  int64_t value = sym::evaluate(expr, symbols);
  return expr.is_boolean() ? dispatch::Value(value != 0) : dispatch::Value(value);
}

dispatch::Value evaluate_numbers(const dispatch::Value& value, std::span<const int64_t> symbols) {
  switch (value.tag()) {
    case dispatch::Value::Tag::Int: {
      SymInt number = value.sym_int();
      return number.is_symbolic() ? evaluate_number(number.expr(), symbols) : dispatch::Value(number.plain());
    }
    case dispatch::Value::Tag::Real: {
      SymFloat number = value.sym_float();
      return number.is_symbolic() ? evaluate_number(number.expr(), symbols) : dispatch::Value(number.plain());
    }
    case dispatch::Value::Tag::Bool: {
      SymBool flag = value.sym_bool();
      return flag.is_symbolic() ? evaluate_number(flag.expr(), symbols) : dispatch::Value(bool(flag));
    }
    case dispatch::Value::Tag::SymInts: {
      SymInts numbers;
      for (const SymInt& number : value.sym_ints())
        numbers.push_back(number.is_symbolic() ? sym::evaluate(number.expr(), symbols) : number.plain());
      return dispatch::Value(numbers).own();
    }
    default: return value;
  }
}

}  // namespace tenon::graph
