#include "passes.h"
#include "schedule/rewrite.h"

#include <fmt/format.h>

#include <bit>
#include <map>

namespace tenon::freezing {

using schedule::Instead;
using schedule::Values;
namespace {

// Equal texts: the same operator on the same values and numbers.
std::string text_of(const Node& node, const std::vector<ValueId>& becomes) {
  std::string text = fmt::format("{}", static_cast<const void*>(node.op.get()));
  for (const graph::Argument& argument : node.args) {
    text += ' ';
    if (const auto* constant = std::get_if<dispatch::Value>(&argument)) {
      // A number's text may be shorter than the number.
      bool is_real = constant->tag() == dispatch::Value::Tag::Real && !constant->sym_float().is_symbolic();
      text += fmt::format("{}:{}", static_cast<int>(constant->tag()),
                          is_real ? fmt::format("{:x}", std::bit_cast<uint64_t>(constant->real())) : constant->str());
      continue;
    }
    auto add = [&](ValueId id) {
      text += id == graph::kNoValue ? "none," : fmt::format("%{},", becomes[static_cast<size_t>(id)]);
    };
    if (const auto* id = std::get_if<ValueId>(&argument))
      add(*id);
    else
      for (ValueId each : std::get<graph::ValueList>(argument).ids) add(each);
  }
  return text;
}

}  // namespace

Graph share_values(const Graph& graph, const Parameters&, Notes& notes) {
  // The caller gets memory of its own for each result.
  Mask shown = find_shown(graph);
  std::vector<ValueId> becomes(graph.values.size());
  for (size_t id = 0; id < becomes.size(); ++id) becomes[id] = static_cast<ValueId>(id);
  std::map<std::string, ValueId> known;
  Instead instead;
  for (const Node& node : graph.nodes) {
    bool computes = node.draw < 0 && node.binds.empty() && !node.op->schema().is_mutable() && ops::row_of(*node.op);
    if (!computes || node.outputs.size() != 1) continue;
    ValueId id = node.outputs[0];
    auto [first, is_new] = known.try_emplace(text_of(node, becomes), id);
    if (is_new || shown[static_cast<size_t>(id)]) continue;
    ValueId same = first->second;
    becomes[static_cast<size_t>(id)] = same;
    instead[id] = [same](const Values& now) { return now(same); };
    if (!is_view(node)) notes.push_back(fmt::format("shared: {} is {}", name_of(graph, id), name_of(graph, same)));
  }
  return instead.empty() ? graph : schedule::rewrite(graph, instead);
}

}  // namespace tenon::freezing
