#include "freeze.h"

#include "passes.h"

#include <tenon/support/log.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tenon::freezing {
namespace {

struct Pass {
  const char* name;
  Graph (*run)(const Graph& graph, const Parameters& parameters, Notes& notes);
};

constexpr std::array<Pass, 3> kPasses = {{
    {"share_values", share_values},
    {"fold_channels", fold_channels},
    {"stack_products", stack_products},
}};

// What the passes may take apart: a graph that they record again must be the same one.
Decision can_be_rewritten(const Graph& graph) {
  if (!graph.seeds.empty()) return Decision::forbid("it seeds the generator");
  for (const Node& node : graph.nodes)
    if (!node.binds.empty()) return Decision::forbid("{} takes sizes or numbers from data", node.op->brief_name());
  return Decision::allow();
}

}  // namespace

std::shared_ptr<Frozen> freeze(const Graph& graph, const Parameters& asked, std::vector<bool> may_hold,
                               const GraphCompiler& compiler) {
  Notes notes;
  Parameters parameters = asked;
  parameters.resize(std::min(parameters.size(), graph.inputs.size()), Decision::allow());
  for (const graph::Written& each : graph.written)
    if (auto at = static_cast<size_t>(each.input); at < parameters.size() && parameters[at])
      parameters[at] = Decision::forbid("the function writes to it");
  for (size_t at = 0; at < parameters.size(); ++at)
    if (!parameters[at] && !parameters[at].why().empty())
      notes.push_back(fmt::format("not frozen: {}: {}", name_of(graph, graph.inputs[at]), parameters[at].why()));
  Graph now = graph;
  if (Decision decision = can_be_rewritten(graph)) {
    for (const Pass& pass : kPasses) {
      now = pass.run(now, parameters, notes);
      TENON_LOG(Graph, "after {}:\n{}", pass.name, graph::to_string(now));
    }
  } else {
    notes.push_back(fmt::format("folded as it is: the graph cannot be rewritten: {}", decision.why()));
  }
  Split split = split_constants(now, parameters, notes);
  for (const std::string& note : notes) TENON_LOG(Fusion, "{}", note);
  return std::make_shared<Frozen>(std::move(split), parameters, std::move(may_hold), std::move(notes), compiler);
}

}  // namespace tenon::freezing
