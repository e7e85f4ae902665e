#include <tenon/graph/graph.h>

namespace tenon::graph {
namespace {

using dispatch::Value;

class Interpreter {
 public:
  Interpreter(const Graph& graph, std::span<const Tensor> inputs, const InterpretOptions& options)
      : graph_(graph), options_(options), tensors_(graph.values.size()) {
    TENON_ASSERT(inputs.size() == graph.inputs.size(), "{} inputs given, {} expected", inputs.size(), graph.inputs.size());
    for (size_t at = 0; at < inputs.size(); ++at) tensors_[static_cast<size_t>(graph.inputs[at])] = inputs[at];
    if (options.free_early) find_last_uses();
  }

  std::vector<Value> run() {
    for (size_t at = 0; at < graph_.nodes.size(); ++at) {
      const Node& node = graph_.nodes[at];
      if (options_.before_node) options_.before_node(node);
      run_node(node);
      if (options_.free_early)
        for (ValueId id : last_uses_[at]) tensors_[static_cast<size_t>(id)] = Tensor();
    }
    std::vector<Value> outputs;
    for (const Argument& output : graph_.outputs) outputs.push_back(resolve(output).own());
    return outputs;
  }

 private:
  void find_last_uses() {
    std::vector<int32_t> last(graph_.values.size(), -1);
    for (size_t at = 0; at < graph_.nodes.size(); ++at) {
      each_reference(graph_.nodes[at], [&](ValueId id) { last[static_cast<size_t>(id)] = static_cast<int32_t>(at); });
      for (ValueId id : graph_.nodes[at].outputs) last[static_cast<size_t>(id)] = static_cast<int32_t>(at);
    }
    for (const Argument& output : graph_.outputs) each_reference(output, [&](ValueId id) { last[static_cast<size_t>(id)] = -1; });
    last_uses_.resize(graph_.nodes.size());
    for (size_t id = 0; id < last.size(); ++id)
      if (last[id] >= 0) last_uses_[static_cast<size_t>(last[id])].push_back(static_cast<ValueId>(id));
  }

  SymInt resolve(const SymInt& number) {
    if (!number.is_symbolic() || options_.symbols.empty()) return number;
    return sym::evaluate(number.expr(), options_.symbols);
  }

  Value resolve(const Argument& argument) {
    if (const auto* id = std::get_if<ValueId>(&argument))
      return *id == kNoValue ? Value() : Value(tensors_[static_cast<size_t>(*id)]);
    if (const auto* list = std::get_if<ValueList>(&argument)) {
      if (list->optional) {
        std::vector<std::optional<Tensor>> tensors;
        for (ValueId id : list->ids)
          tensors.push_back(id == kNoValue ? std::nullopt : std::optional<Tensor>(tensors_[static_cast<size_t>(id)]));
        return Value(tensors).own();
      }
      std::vector<Tensor> tensors;
      for (ValueId id : list->ids) tensors.push_back(tensors_[static_cast<size_t>(id)]);
      return Value(tensors).own();
    }
    const Value& constant = std::get<Value>(argument);
    if (options_.symbols.empty()) return constant;
    if (constant.tag() == Value::Tag::Int) return Value(resolve(constant.sym_int())).own();
    if (constant.tag() == Value::Tag::SymInts) {
      SymInts numbers;
      for (const SymInt& number : constant.sym_ints()) numbers.push_back(resolve(number));
      return Value(numbers).own();
    }
    return constant;
  }

  void run_node(const Node& node) {
    dispatch::Values args;
    for (const Argument& argument : node.args) args.push_back(resolve(argument));
    dispatch::Results results = dispatch::call_boxed(*node.op, args);
    size_t at = 0;
    for (Value& result : results)
      result.each_tensor([&](const Tensor& tensor) {
        if (at < node.outputs.size()) tensors_[static_cast<size_t>(node.outputs[at++])] = tensor;
      });
  }

  const Graph& graph_;
  const InterpretOptions& options_;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<ValueId>> last_uses_;
};

}  // namespace

std::vector<Value> interpret(const Graph& graph, std::span<const Tensor> inputs, const InterpretOptions& options) {
  return Interpreter(graph, inputs, options).run();
}

}  // namespace tenon::graph
