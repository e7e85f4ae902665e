#include "split.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

namespace tenon::freezing {
namespace {

int64_t bytes_of(const Tensor& meta) {
  SymInt count = meta.numel();
  return count.maybe_constant().value_or(0) * meta.element_size();
}

class Splitter {
 public:
  Splitter(const Graph& graph, const Parameters& parameters, Notes& notes)
      : graph_(graph),
        notes_(notes),
        constants_(find_constants(graph, parameters)),
        made_by_(graph.values.size(), -1),
        kept_(graph.values.size()),
        runs_(graph.nodes.size()) {
    for (size_t at = 0; at < graph.nodes.size(); ++at)
      for (ValueId id : graph.nodes[at].outputs) made_by_[static_cast<size_t>(id)] = static_cast<int32_t>(at);
    for (size_t at = 0; at < graph.nodes.size(); ++at) runs_[at] = !is_constant(graph.nodes[at]);
  }

  Split go() {
    find_kept();
    say_what_stays();
    Split split;
    make_frozen(split);
    make_units(split);
    return split;
  }

 private:
  bool is_constant(const Node& node) const {
    return !node.outputs.empty() && constants_[static_cast<size_t>(node.outputs[0])];
  }

  // Which constants are computed once; the nodes of others run at every call.
  void find_kept() {
    std::vector<ValueId> needed;
    auto need = [&](ValueId id) {
      if (constants_[static_cast<size_t>(id)]) needed.push_back(id);
    };
    for (size_t at = 0; at < graph_.nodes.size(); ++at)
      if (runs_[at]) graph::each_reference(graph_.nodes[at], need);
    for (const graph::Argument& output : graph_.outputs) graph::each_reference(output, need);
    Mask seen(graph_.values.size());
    while (!needed.empty()) {
      ValueId id = needed.back();
      needed.pop_back();
      if (seen[static_cast<size_t>(id)] || made_by_[static_cast<size_t>(id)] < 0) continue;
      seen[static_cast<size_t>(id)] = true;
      auto at = static_cast<size_t>(made_by_[static_cast<size_t>(id)]);
      if (worth_keeping(graph_.nodes[at], id)) {
        kept_[static_cast<size_t>(id)] = true;
        continue;
      }
      runs_[at] = true;
      graph::each_reference(graph_.nodes[at], need);
    }
  }

  bool worth_keeping(const Node& node, ValueId id) {
    bool has_operands = false;
    int64_t operands = 0;
    graph::each_reference(node, [&](ValueId each) {
      has_operands = true;
      operands += bytes_of(graph_.meta(each));
    });
    if (!has_operands || is_view(node)) return false;
    ops::Kind kind = ops::row_of(*node.op)->kind;
    bool is_cheap = kind == ops::Kind::Pointwise || kind == ops::Kind::Element;
    int64_t bytes = bytes_of(graph_.meta(id));
    if (!is_cheap || bytes <= operands || is_read_whole(id)) return true;
    notes_.push_back(
        fmt::format("not folded: {}: it has {} bytes and is computed from {}", name_of(graph_, id), bytes, operands));
    return false;
  }

  // By a library call, which needs it in memory.
  bool is_read_whole(ValueId id) const {
    for (const Node& node : graph_.nodes) {
      bool reads = false;
      graph::each_reference(node, [&](ValueId each) { reads |= each == id; });
      const ops::Row* row = ops::row_of(*node.op);
      if (reads && (!row || row->kind == ops::Kind::Opaque || row->kind == ops::Kind::Composite)) return true;
    }
    return false;
  }

  // Of what could be computed once if its sizes were known, or if it drew no random numbers.
  void say_what_stays() {
    for (const Node& node : graph_.nodes) {
      if (node.outputs.empty() || is_constant(node)) continue;
      bool all = true;
      graph::each_reference(node, [&](ValueId id) { all &= constants_[static_cast<size_t>(id)]; });
      if (Decision decision = depends_on_operands_alone(graph_, node); all && !decision)
        notes_.push_back(fmt::format("not folded: {}: {}", name_of(graph_, node.outputs[0]), decision.why()));
    }
  }

  void make_frozen(Split& split) {
    Graph& frozen = split.frozen;
    frozen = graph_;
    frozen.nodes.clear();
    place_.assign(graph_.values.size(), 0);
    // The caller gets memory of its own, not that of a constant.
    Mask shown = find_shown(graph_);
    std::vector<ValueId> becomes(graph_.values.size());
    std::iota(becomes.begin(), becomes.end(), ValueId{0});
    std::vector<Node> copies;
    for (size_t id = 0; id < kept_.size(); ++id) {
      if (!kept_[id]) continue;
      place_[id] = split.constants;
      auto constant = static_cast<ValueId>(id);
      frozen.values[id].name = fmt::format("constant{}", split.constants++);
      frozen.inputs.push_back(constant);
      if (!shown[id]) continue;
      Node copy;
      copy.op = &dispatch::find_operator("aten::clone");
      copy.args = {constant, dispatch::Value()};
      copy.outputs = {frozen.add_value(fmt::format("copy{}", split.constants - 1), graph_.meta(constant))};
      becomes[id] = copy.outputs[0];
      copies.push_back(std::move(copy));
    }
    auto rename = [&](ValueId& id) {
      if (id != graph::kNoValue) id = becomes[static_cast<size_t>(id)];
    };
    auto rename_all = [&](graph::Argument& argument) {
      if (auto* id = std::get_if<ValueId>(&argument)) rename(*id);
      if (auto* list = std::get_if<graph::ValueList>(&argument))
        for (ValueId& id : list->ids) rename(id);
    };
    frozen.nodes = std::move(copies);
    for (size_t at = 0; at < graph_.nodes.size(); ++at) {
      if (!runs_[at]) continue;
      frozen.nodes.push_back(graph_.nodes[at]);
      for (graph::Argument& argument : frozen.nodes.back().args) rename_all(argument);
    }
    for (graph::Argument& output : frozen.outputs) rename_all(output);
    graph::remove_dead_code(frozen);
    keep_what_is_read(split);
    graph::verify(frozen);
  }

  // Inputs that are folded are not passed to what runs at every call. Those that it writes to are, and stay where it
  // writes to them.
  void keep_what_is_read(Split& split) const {
    Graph& frozen = split.frozen;
    std::set<ValueId> read;
    for (const Node& node : frozen.nodes) graph::each_reference(node, [&](ValueId id) { read.insert(id); });
    for (const graph::Argument& output : frozen.outputs)
      graph::each_reference(output, [&](ValueId id) { read.insert(id); });
    for (const graph::Written& each : frozen.written) read.insert(graph_.inputs[static_cast<size_t>(each.input)]);
    std::vector<int32_t> place(graph_.inputs.size(), -1);
    std::vector<ValueId> taken;
    for (size_t at = 0; at < graph_.inputs.size(); ++at) {
      split.names.push_back(graph_.values[static_cast<size_t>(graph_.inputs[at])].name);
      split.reads.push_back(read.contains(graph_.inputs[at]));
      if (!split.reads[at]) continue;
      place[at] = static_cast<int32_t>(taken.size());
      split.inputs.push_back(static_cast<int32_t>(at));
      taken.push_back(graph_.inputs[at]);
    }
    taken.insert(taken.end(), frozen.inputs.begin() + static_cast<ptrdiff_t>(graph_.inputs.size()),
                 frozen.inputs.end());
    frozen.inputs = std::move(taken);
    for (graph::Written& each : frozen.written) each.input = place[static_cast<size_t>(each.input)];
    // Their values are given; nobody looks for them among the inputs.
    frozen.symbols.clear();
  }

  // Everything that a kept value is computed from; units that meet in a value are one.
  void make_units(Split& split) const {
    std::vector<int32_t> unit(graph_.nodes.size(), -1);  // by node: the first node of its unit, found by `root`
    auto root = [&](int32_t at) {
      while (unit[static_cast<size_t>(at)] != at) at = unit[static_cast<size_t>(at)];
      return at;
    };
    for (size_t id = 0; id < kept_.size(); ++id) {
      if (!kept_[id]) continue;
      std::vector<int32_t> open = {made_by_[id]};
      int32_t first = made_by_[id];
      if (unit[static_cast<size_t>(first)] < 0) unit[static_cast<size_t>(first)] = first;
      while (!open.empty()) {
        int32_t at = open.back();
        open.pop_back();
        graph::each_reference(graph_.nodes[static_cast<size_t>(at)], [&](ValueId each) {
          int32_t from = made_by_[static_cast<size_t>(each)];
          if (from < 0) return;
          bool is_new = unit[static_cast<size_t>(from)] < 0;
          if (is_new) unit[static_cast<size_t>(from)] = from;
          unit[static_cast<size_t>(root(from))] = root(first);
          if (is_new) open.push_back(from);
        });
      }
    }
    std::vector<int32_t> roots;
    for (size_t at = 0; at < unit.size(); ++at)
      if (unit[at] >= 0 && root(static_cast<int32_t>(at)) == static_cast<int32_t>(at))
        roots.push_back(static_cast<int32_t>(at));
    for (int32_t each : roots)
      split.units.push_back(
          make_unit([&](size_t at) { return unit[at] >= 0 && root(static_cast<int32_t>(at)) == each; }));
  }

  template <typename Belongs>
  FoldUnit make_unit(Belongs&& belongs) const {
    FoldUnit made;
    made.graph = graph_;
    made.graph.nodes.clear();
    made.graph.inputs.clear();
    made.graph.outputs.clear();
    made.graph.written.clear();
    std::set<ValueId> read;
    for (size_t at = 0; at < graph_.nodes.size(); ++at) {
      if (!belongs(at)) continue;
      made.graph.nodes.push_back(graph_.nodes[at]);
      graph::each_reference(graph_.nodes[at], [&](ValueId id) { read.insert(id); });
      for (ValueId id : graph_.nodes[at].outputs)
        if (kept_[static_cast<size_t>(id)]) {
          made.graph.outputs.emplace_back(id);
          made.outputs.push_back(place_[static_cast<size_t>(id)]);
        }
    }
    for (size_t at = 0; at < graph_.inputs.size(); ++at)
      if (read.contains(graph_.inputs[at])) {
        made.graph.inputs.push_back(graph_.inputs[at]);
        made.parameters.push_back(static_cast<int32_t>(at));
      }
    // Its sizes are numbers.
    made.graph.symbols.clear();
    graph::verify(made.graph);
    return made;
  }

  const Graph& graph_;
  Notes& notes_;
  Mask constants_;
  std::vector<int32_t> made_by_;  // by value: its node; -1: an input
  Mask kept_;                     // by value: computed once
  std::vector<bool> runs_;        // by node: at every call
  std::vector<size_t> place_;     // by kept value: which constant it is
};

}  // namespace

Split split_constants(const Graph& graph, const Parameters& parameters, Notes& notes) {
  return Splitter(graph, parameters, notes).go();
}

}  // namespace tenon::freezing
