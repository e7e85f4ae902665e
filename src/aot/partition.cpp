// Splits a joint graph. A value may be recomputed in backward if its operator is cheap (pointwise, a view, a factory
// that draws no random numbers); everything else that backward needs must be saved somewhere on its way. Which values
// to save is a minimum cut between the inputs and the backward part, weighed by bytes; of several that weigh the same,
// the one nearest to backward, which leaves more of the forward free to be fused.
#include "max_flow.h"

#include <tenon/aot/aot.h>
#include <tenon/ops/row.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace tenon::aot {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

bool is_cheap(const Node& node) {
  const ops::Row* row = ops::row_of(*node.op);
  if (!row) return false;
  switch (row->kind) {
    case ops::Kind::Pointwise:
    case ops::Kind::View: return true;
    case ops::Kind::Element: return !row->element.random;
    default: return false;
  }
}

class Partitioner {
 public:
  explicit Partitioner(const JointGraph& joint) : joint_(joint), graph_(joint.graph) {
    producer_.assign(graph_.values.size(), -1);
    memory_.resize(graph_.values.size());
    std::iota(memory_.begin(), memory_.end(), ValueId{0});
    for (size_t at = 0; at < graph_.nodes.size(); ++at) {
      const Node& node = graph_.nodes[at];
      for (ValueId id : node.outputs) producer_[static_cast<size_t>(id)] = static_cast<int>(at);
      if (const ops::Row* row = ops::row_of(*node.op); row && row->kind == ops::Kind::View)
        memory_[static_cast<size_t>(node.outputs[0])] = memory_of(std::get<ValueId>(node.args[0]));
    }
    find_exposed();
  }

  Partition run() {
    find_backward_part();
    find_restricted();
    choose_saved();
    Partition result;
    result.saved = saved_;
    std::vector<graph::Argument> forward_outputs(
        graph_.outputs.begin(), graph_.outputs.begin() + static_cast<ptrdiff_t>(joint_.forward_outputs));
    for (ValueId id : saved_) forward_outputs.push_back(id);
    // What forward learns from data, backward and the wrapper are told as numbers.
    for (const Node& node : graph_.nodes)
      for (const graph::Binding& binding : node.binds)
        if (binding.kind != graph::Binding::Kind::Hidden && !backward_symbols_.contains(binding.symbol)) {
          result.bound.push_back(binding.symbol);
          forward_outputs.push_back(symbol_value(binding.symbol));
        }
    std::vector<ValueId> primals(graph_.inputs.begin(), graph_.inputs.begin() + static_cast<ptrdiff_t>(joint_.primals));
    result.forward = extract(primals, forward_outputs, true);
    for (size_t at = 0; at < joint_.mutated.size(); ++at)
      if (may_be_written_early(static_cast<int32_t>(at)))
        result.forward.written.push_back({static_cast<int32_t>(at), joint_.mutated[at]});
    std::vector<ValueId> backward_inputs = saved_;
    backward_inputs.insert(backward_inputs.end(), graph_.inputs.begin() + static_cast<ptrdiff_t>(joint_.primals),
                           graph_.inputs.end());
    result.backward =
        extract(backward_inputs,
                {graph_.outputs.begin() + static_cast<ptrdiff_t>(joint_.forward_outputs), graph_.outputs.end()}, false);
    for (ValueId id : saved_) {
      auto found = std::find(primals.begin(), primals.end(), id);
      result.saved_inputs.push_back(found == primals.end() ? -1 : static_cast<int32_t>(found - primals.begin()));
      result.saved_is_results.push_back(exposed_[static_cast<size_t>(memory_of(id))]);
    }
    return result;
  }

 private:
  dispatch::Value symbol_value(int32_t id) const {
    sym::Expr symbol = graph_.env->pool().symbol(id);
    if (symbol.is_real()) return dispatch::Value(SymFloat(symbol, graph_.env)).own();
    return dispatch::Value(SymInt(symbol, graph_.env)).own();
  }

  // Whether the forward graph may write a new value where it belongs. What has a history is written by the wrapper, and
  // so is what gradients are computed from, of which the old value is copied first, and what is a result besides.
  bool may_be_written_early(int32_t output) const {
    const auto input = static_cast<size_t>(joint_.mutated[static_cast<size_t>(output)]);
    if (!joint_.tangents.empty() && (input >= joint_.read.size() || joint_.read[input])) return false;
    if (std::find(joint_.tangents.begin(), joint_.tangents.end(), output) != joint_.tangents.end()) return false;
    return std::none_of(joint_.outputs.begin(), joint_.outputs.end(),
                        [&](const OutputPlan& plan) {
                          return plan.history == output ||
                                 (plan.kind == OutputPlan::Kind::Value && plan.index == output);
                        }) &&
           std::none_of(joint_.remade.begin(), joint_.remade.end(),
                        [&](const RemadeView& view) { return view.output == output || view.history == output; });
  }

  // Values, and symbols, that depend on a tangent.
  void find_backward_part() {
    backward_.assign(graph_.values.size(), false);
    for (size_t at = joint_.primals; at < graph_.inputs.size(); ++at)
      backward_[static_cast<size_t>(graph_.inputs[at])] = true;
    for (const Node& node : graph_.nodes) {
      bool any = false;
      graph::each_reference(node, [&](ValueId id) { any |= backward_[static_cast<size_t>(id)]; });
      for (const graph::Argument& argument : node.args)
        graph::each_symbol(argument, [&](int32_t symbol) { any |= backward_symbols_.contains(symbol); });
      // A backward that draws random numbers does so when it runs.
      any |= node.draw >= joint_.forward_draws;
      for (ValueId id : node.outputs) backward_[static_cast<size_t>(id)] = any;
      if (any)
        for (const graph::Binding& binding : node.binds) backward_symbols_.insert(binding.symbol);
    }
  }

  // What the caller holds, eager keeps it for some tangents and our backward for others too, may be changed before the
  // gradients of those others are computed: for them it is not read.
  void find_restricted() {
    std::map<ValueId, const std::vector<int32_t>*> partly;  // by memory: the tangents that eager keeps it for
    auto note = [&](const graph::Argument& argument, const std::vector<int32_t>& needed_by) {
      if (!needed_by.empty() && needed_by.size() < joint_.tangents.size())
        graph::each_reference(argument, [&](ValueId id) { partly.emplace(memory_of(id), &needed_by); });
    };
    for (size_t at = 0; at < joint_.primals_needed_by.size(); ++at)
      if (!joint_.leaves[at]) note(graph_.inputs[at], joint_.primals_needed_by[at]);
    for (size_t at = joint_.mutated.size(); at < joint_.needed_by.size(); ++at)
      note(graph_.outputs[at], joint_.needed_by[at]);
    if (partly.empty()) return;
    std::vector<std::set<int32_t>> tangents = tangents_by_value();
    for (const Node& node : graph_.nodes) {
      if (node.outputs.empty() || backward_[static_cast<size_t>(node.outputs[0])]) continue;
      graph::each_reference(node, [&](ValueId id) {
        auto found = partly.find(memory_of(id));
        if (found == partly.end()) return;
        for (ValueId result : node.outputs) {
          const std::set<int32_t>& used_for = tangents[static_cast<size_t>(result)];
          if (memory_of(result) != memory_of(id) &&
              !std::includes(found->second->begin(), found->second->end(), used_for.begin(), used_for.end()))
            restricted_.insert(result);
        }
      });
    }
  }

  // By value: the tangents whose gradients are computed from it; by value of backward, those that it depends on.
  std::vector<std::set<int32_t>> tangents_by_value() const {
    std::vector<std::set<int32_t>> tangents(graph_.values.size());
    auto of = [&](ValueId id) -> std::set<int32_t>& { return tangents[static_cast<size_t>(id)]; };
    for (size_t at = joint_.primals; at < graph_.inputs.size(); ++at)
      of(graph_.inputs[at]) = {static_cast<int32_t>(at - joint_.primals)};
    auto is_backward = [&](const Node& node) {
      return !node.outputs.empty() && backward_[static_cast<size_t>(node.outputs[0])];
    };
    for (const Node& node : graph_.nodes)
      if (is_backward(node))
        graph::each_reference(node, [&](ValueId id) {
          for (ValueId result : node.outputs) of(result).insert(of(id).begin(), of(id).end());
        });
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node)
      graph::each_reference(*node, [&](ValueId id) {
        if (!backward_[static_cast<size_t>(id)])
          for (ValueId result : node->outputs) of(id).insert(of(result).begin(), of(result).end());
      });
    return tangents;
  }

  static constexpr int64_t kLastResort = int64_t{1} << 40;

  // A cost: larger than any memory is as good as larger still.
  int64_t bytes(ValueId id) const {
    const Tensor& meta = graph_.meta(id);
    return std::clamp<int64_t>(meta.numel().hint().value_or(4096), 1, kLastResort / 64) * meta.element_size();
  }

  // The value whose memory a value shows.
  ValueId memory_of(ValueId id) const { return memory_[static_cast<size_t>(id)]; }

  // The caller gets the memory of results, and may change it before backward comes, unless eager keeps it too.
  void find_exposed() {
    exposed_.assign(graph_.values.size(), false);
    for (bool kept : {false, true})
      for (size_t at = joint_.mutated.size(); at < joint_.forward_outputs; ++at)
        if (joint_.outputs_kept[at] == kept)
          graph::each_reference(graph_.outputs[at],
                                [&](ValueId id) { exposed_[static_cast<size_t>(memory_of(id))] = !kept; });
  }

  // An input is alive anyway, so that saving it costs less than saving anything else: unless the function writes to it,
  // for which it is copied. One that eager does not keep may be changed by anybody before backward comes: it is kept
  // only if there is no other way.
  int64_t cost_of_input(ValueId id) const {
    auto at = static_cast<size_t>(std::find(graph_.inputs.begin(), graph_.inputs.end(), id) - graph_.inputs.begin());
    if (std::find(joint_.mutated.begin(), joint_.mutated.end(), static_cast<int32_t>(at)) != joint_.mutated.end())
      return 4 * bytes(id);
    return at < joint_.leaves.size() && !joint_.leaves[at] && !joint_.kept_by_eager[at] ? kLastResort : bytes(id);
  }

  // Of values that are as large, one that forward computes for its own sake is better than one made for backward alone.
  // A view of an input is as good as the input, but for being one thing more.
  int64_t cost_of_saving(ValueId id, bool in_forward) const {
    ValueId memory = memory_of(id);
    if (producer_[static_cast<size_t>(memory)] < 0) return cost_of_input(memory) + (memory == id ? 0 : 1);
    if (exposed_[static_cast<size_t>(memory)]) return kLastResort;
    return 4 * bytes(id) + (in_forward ? 0 : 1);
  }

  std::vector<bool> needed_by_forward() const {
    std::vector<bool> needed(graph_.values.size());
    auto mark = [&](ValueId id) { needed[static_cast<size_t>(id)] = true; };
    for (size_t at = 0; at < joint_.forward_outputs; ++at) graph::each_reference(graph_.outputs[at], mark);
    for (size_t at = graph_.nodes.size(); at-- > 0;) {
      const Node& node = graph_.nodes[at];
      bool any = std::any_of(node.outputs.begin(), node.outputs.end(),
                             [&](ValueId id) { return needed[static_cast<size_t>(id)]; });
      if (any) graph::each_reference(node, mark);
    }
    return needed;
  }

  void choose_saved() {
    // Node 2v is "v is computed in forward", 2v+1 "v reaches backward"; cutting between them saves v.
    size_t count = graph_.values.size();
    std::vector<bool> in_forward = needed_by_forward();
    FlowNetwork network(2 * count + 2);
    size_t source = 2 * count, sink = 2 * count + 1;
    auto in = [](ValueId id) { return static_cast<size_t>(id) * 2; };
    auto out = [](ValueId id) { return static_cast<size_t>(id) * 2 + 1; };
    for (ValueId id = 0; id < static_cast<ValueId>(count); ++id) {
      if (backward_[static_cast<size_t>(id)]) continue;
      bool input = producer_[static_cast<size_t>(id)] < 0;
      bool from_forward = input || restricted_.contains(id) ||
                          !is_cheap(graph_.nodes[static_cast<size_t>(producer_[static_cast<size_t>(id)])]);
      if (from_forward) network.add_edge(source, in(id), FlowNetwork::kUnlimited);
      network.add_edge(in(id), out(id), cost_of_saving(id, in_forward[static_cast<size_t>(id)]));
    }
    auto reaches = [&](ValueId id) {
      if (!backward_[static_cast<size_t>(id)]) network.add_edge(out(id), sink, FlowNetwork::kUnlimited);
    };
    for (const Node& node : graph_.nodes) {
      bool is_backward = !node.outputs.empty() && backward_[static_cast<size_t>(node.outputs[0])];
      graph::each_reference(node, [&](ValueId id) {
        if (is_backward)
          reaches(id);
        else if (is_cheap(node))
          for (ValueId result : node.outputs)
            if (!restricted_.contains(result)) network.add_edge(out(id), in(result), FlowNetwork::kUnlimited);
      });
    }
    for (size_t at = joint_.forward_outputs; at < graph_.outputs.size(); ++at)
      graph::each_reference(graph_.outputs[at], reaches);
    network.run(source, sink);
    for (ValueId id = 0; id < static_cast<ValueId>(count); ++id)
      if (!backward_[static_cast<size_t>(id)] && network.before_cut(in(id)) && !network.before_cut(out(id)))
        saved_.push_back(id);
  }

  // The part of the graph that computes `outputs` from `inputs`. Forward's symbols are given to backward, not bound
  // again.
  Graph extract(const std::vector<ValueId>& inputs, const std::vector<graph::Argument>& outputs, bool is_forward) {
    std::vector<bool> given(graph_.values.size()), needed(graph_.values.size());
    for (ValueId id : inputs) given[static_cast<size_t>(id)] = true;
    for (const graph::Argument& output : outputs)
      graph::each_reference(output, [&](ValueId id) { needed[static_cast<size_t>(id)] = true; });
    std::vector<const Node*> kept;
    for (size_t at = graph_.nodes.size(); at-- > 0;) {
      const Node& node = graph_.nodes[at];
      bool wanted = false;
      for (ValueId id : node.outputs) wanted |= needed[static_cast<size_t>(id)] && !given[static_cast<size_t>(id)];
      for (const graph::Binding& binding : node.binds)
        wanted |= is_forward != backward_symbols_.contains(binding.symbol);
      if (!wanted) continue;
      graph::each_reference(node, [&](ValueId id) { needed[static_cast<size_t>(id)] = true; });
      kept.push_back(&node);
    }
    Graph part;
    part.env = graph_.env;
    part.symbols = graph_.symbols;
    std::vector<ValueId> renamed(graph_.values.size(), graph::kNoValue);
    auto rename = [&](ValueId id) {
      ValueId& to = renamed[static_cast<size_t>(id)];
      if (to == graph::kNoValue) to = part.add_value(graph_.values[static_cast<size_t>(id)].name, graph_.meta(id));
      return to;
    };
    auto rename_argument = [&](const graph::Argument& argument) -> graph::Argument {
      if (const auto* id = std::get_if<ValueId>(&argument)) return *id == graph::kNoValue ? *id : rename(*id);
      if (const auto* list = std::get_if<graph::ValueList>(&argument)) {
        graph::ValueList copy = *list;
        for (ValueId& each : copy.ids)
          if (each != graph::kNoValue) each = rename(each);
        return copy;
      }
      return argument;
    };
    for (ValueId id : inputs) part.inputs.push_back(rename(id));
    for (size_t at = kept.size(); at-- > 0;) {
      Node node = *kept[at];
      for (graph::Argument& argument : node.args) argument = rename_argument(argument);
      for (ValueId& id : node.outputs) id = rename(id);
      part.nodes.push_back(std::move(node));
    }
    for (const graph::Argument& output : outputs) part.outputs.push_back(rename_argument(output));
    graph::remove_dead_code(part);
    graph::verify(part);
    return part;
  }

  const JointGraph& joint_;
  const Graph& graph_;
  std::vector<int> producer_;           // by value: the node's position, -1 for inputs
  std::vector<ValueId> memory_;         // by value: `memory_of`
  std::vector<bool> backward_;          // by value
  std::vector<bool> exposed_;           // by value: the caller gets its memory
  std::set<ValueId> restricted_;        // values that backward does not compute again
  std::set<int32_t> backward_symbols_;  // unbacked symbols that the backward part binds
  std::vector<ValueId> saved_;
};

}  // namespace

Partition partition(const JointGraph& joint) { return Partitioner(joint).run(); }

}  // namespace tenon::aot
