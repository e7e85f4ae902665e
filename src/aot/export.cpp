#include <tenon/aot/export.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/runtime/plan.h>
#include <tenon/schedule/schedule.h>

#include "dispatch/profile_scope.h"
#include "graph/on_data.h"

namespace tenon::aot {
namespace {

std::vector<bool> required_by_metadata(const graph::Graph& graph) {
  std::vector<bool> required;
  for (graph::ValueId id : graph.inputs) required.push_back(graph.meta(id).requires_grad());
  return required;
}

}  // namespace

GraphFunction interpreted(const graph::Graph& graph) {
  auto kept = std::make_shared<graph::Graph>(graph);
  return [kept](std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
    graph::InterpretOptions options;
    const std::vector<int64_t> values = graph::symbols_on_data(*kept, symbols);
    options.symbols = values;
    return graph::interpret(*kept, inputs, options);
  };
}

namespace {
GraphFunction scheduled_with(const graph::Graph& graph, const schedule::Options& options) {
  std::shared_ptr<const runtime::Plan> plan = schedule::compile_graph(graph, options);
  return [plan](std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
    dispatch::ProfileScope profiled("compiled graph", {});
    return runtime::run(*plan, inputs, symbols);
  };
}
}  // namespace

GraphFunction scheduled(const graph::Graph& graph) { return scheduled_with(graph, {}); }
GraphFunction scheduled_with_padding(const graph::Graph& graph) {
  return scheduled_with(graph, {.pad_products = true});
}

Compiled compile(const graph::Graph& captured, const GraphCompiler& compiler) {
  return compile(captured, required_by_metadata(captured), autograd::grad_enabled(), compiler);
}

JointGraph export_joint(const graph::Graph& captured, bool with_backward) {
  JointGraph joint = trace_joint({captured, required_by_metadata(captured), {}, with_backward});
  auto name = [&](int32_t input) {
    return captured.values[static_cast<size_t>(captured.inputs[static_cast<size_t>(input)])].name;
  };
  TENON_CHECK(joint.mutated.empty(), "[export_joint] the function writes to its input {}: clone it first",
              name(joint.mutated.front()));
  for (const OutputPlan& plan : joint.outputs)
    TENON_CHECK(plan.kind == OutputPlan::Kind::Value || plan.kind == OutputPlan::Kind::Number,
                "[export_joint] the function returns its input {}, or a view of it: clone it first", name(plan.index));
  return joint;
}

}  // namespace tenon::aot
