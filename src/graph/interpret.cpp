#include "dispatch/inside_kernel.h"

#include <tenon/core/draws.h>
#include <tenon/core/given_up.h>
#include <tenon/core/random.h>
#include <tenon/graph/graph.h>

#include <optional>
#include <set>

namespace tenon::graph {
namespace {

using dispatch::Value;

class Interpreter {
 public:
  Interpreter(const Graph& graph, std::span<const Tensor> inputs, const InterpretOptions& options)
      : graph_(graph),
        options_(options),
        tensors_(graph.values.size()),
        symbols_(options.symbols.begin(), options.symbols.end()) {
    if (!symbols_.empty()) symbols_.resize(static_cast<size_t>(graph.env->pool().symbol_count()));
    TENON_ASSERT(inputs.size() == graph.inputs.size(), "{} inputs given, {} expected", inputs.size(),
                 graph.inputs.size());
    std::span<Tensor> ours = core::taken(inputs);
    for (size_t at = 0; at < inputs.size(); ++at)
      tensors_[static_cast<size_t>(graph.inputs[at])] = ours.empty() ? inputs[at] : std::move(ours[at]);
    if (options.free_early) find_last_uses();
  }

  std::vector<Value> run() {
    for (size_t at = 0; at < graph_.nodes.size(); ++at) {
      const Node& node = graph_.nodes[at];
      seed_before(at);
      if (options_.before_node) options_.before_node(node);
      run_node(node);
      if (options_.free_early)
        for (ValueId id : last_uses_[at]) tensors_[static_cast<size_t>(id)] = Tensor();
    }
    seed_before(graph_.nodes.size());
    std::vector<Value> outputs;
    for (const Argument& output : graph_.outputs) outputs.push_back(resolve(output).own());
    return outputs;
  }

 private:
  void seed_before(size_t position) {
    if (!options_.seeds) return;
    for (; next_seed_ < graph_.seeds.size() && graph_.seeds[next_seed_].position <= position; ++next_seed_)
      manual_seed(static_cast<uint64_t>(evaluate_numbers(graph_.seeds[next_seed_].seed, symbols_).integer()));
  }

  void find_last_uses() {
    std::vector<int32_t> last(graph_.values.size(), -1);
    for (size_t at = 0; at < graph_.nodes.size(); ++at) {
      each_reference(graph_.nodes[at], [&](ValueId id) { last[static_cast<size_t>(id)] = static_cast<int32_t>(at); });
      for (ValueId id : graph_.nodes[at].outputs) last[static_cast<size_t>(id)] = static_cast<int32_t>(at);
    }
    for (const Argument& output : graph_.outputs)
      each_reference(output, [&](ValueId id) { last[static_cast<size_t>(id)] = -1; });
    last_uses_.resize(graph_.nodes.size());
    for (size_t id = 0; id < last.size(); ++id)
      if (last[id] >= 0) last_uses_[static_cast<size_t>(last[id])].push_back(static_cast<ValueId>(id));
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
    return symbols_.empty() ? constant : evaluate_numbers(constant, symbols_);
  }

  void run_node(const Node& node) {
    dispatch::Values args;
    for (const Argument& argument : node.args) args.push_back(resolve(argument));
    std::optional<NumberedDraws> numbered;
    if (node.draw >= 0) numbered.emplace(node.draw);
    dispatch::AsInEager kernel(*node.op);
    dispatch::Results results =
        node.binds.empty() || !symbols_.empty() ? dispatch::call_boxed(*node.op, args) : call_again(node, args);
    size_t at = 0;
    for (Value& result : results)
      result.each_tensor([&](const Tensor& tensor) {
        if (at < node.outputs.size()) tensors_[static_cast<size_t>(node.outputs[at++])] = tensor;
      });
    if (options_.made)
      for (ValueId id : node.outputs) options_.made(id, tensors_[static_cast<size_t>(id)]);
    if (!symbols_.empty() && !node.binds.empty()) bind(node, results);
  }

  // On fakes: what the node bound when it was recorded, it binds again.
  dispatch::Results call_again(const Node& node, dispatch::Values& args) {
    std::vector<int32_t> ids;
    for (const Binding& binding : node.binds) ids.push_back(binding.symbol);
    sym::ShapeEnv::ReuseUnbacked reuse(*graph_.env, ids);
    return dispatch::call_boxed(*node.op, args);
  }

  void bind(const Node& node, const dispatch::Results& results) {
    std::vector<Tensor> outputs;
    for (ValueId id : node.outputs) outputs.push_back(tensors_[static_cast<size_t>(id)]);
    for (const Binding& binding : node.binds) {
      symbols_[static_cast<size_t>(binding.symbol)] = bound_value(binding, results.span(), outputs);
      bound_.insert(binding.symbol);
    }
    const auto& checks = graph_.env->deferred_checks();
    checked_.resize(checks.size());
    if (!checks.empty() && awaited_.empty())
      for (const Node& each : graph_.nodes)
        for (const Binding& binding : each.binds) awaited_.insert(binding.symbol);
    for (size_t at = 0; at < checks.size(); ++at) {
      if (checked_[at] || !is_bound(checks[at].condition)) continue;
      checked_[at] = true;
      TENON_CHECK(sym::evaluate(checks[at].condition, symbols_) != 0, "{}",
                  sym::failed_check(checks[at], *graph_.env, symbols_));
    }
  }

  // (What this graph binds counts as backed, too, once it has run.)
  bool is_bound(sym::Expr condition) const {
    for (int32_t id : sym::symbols_of(condition))
      if ((!graph_.env->is_backed(id) || awaited_.contains(id)) && !bound_.contains(id)) return false;
    return true;
  }

  const Graph& graph_;
  const InterpretOptions& options_;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<ValueId>> last_uses_;
  std::vector<int64_t> symbols_;  // by id; empty: symbolic numbers stay as they are
  std::set<int32_t> awaited_;     // symbols that nodes of the graph bind, if there are checks
  std::set<int32_t> bound_;       // those of them that have a value by now
  std::vector<bool> checked_;     // by deferred check
  size_t next_seed_ = 0;
};

}  // namespace

std::vector<Value> interpret(const Graph& graph, std::span<const Tensor> inputs, const InterpretOptions& options) {
  return Interpreter(graph, inputs, options).run();
}

}  // namespace tenon::graph
