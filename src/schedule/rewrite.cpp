#include "rewrite.h"

#include <tenon/fake/dynamic_size.h>
#include <tenon/fake/fake.h>
#include <tenon/graph/trace.h>

namespace tenon::schedule {

Graph rewrite(const Graph& graph, const Instead& instead) {
  graph::Recorder recorder(graph.env);
  recorder.graph().symbols = graph.symbols;
  recorder.graph().written = graph.written;
  std::vector<Tensor> values(graph.values.size()), inputs;
  for (ValueId id : graph.inputs) {
    // Each input stands for itself even if two share their metadata.
    Tensor meta = fake::like(graph.meta(id));
    recorder.add_input(meta, graph.values[static_cast<size_t>(id)].name, meta);
    inputs.push_back(meta);
    values[static_cast<size_t>(id)] = meta;
  }
  Values now = [&](ValueId id) -> const Tensor& { return values[static_cast<size_t>(id)]; };
  dispatch::ExcludeKeys below_autograd(KeySet{DispatchKey::Autograd, DispatchKey::ADInplaceOrView,
                                              DispatchKey::Functionalize, DispatchKey::Capture, DispatchKey::Autocast});
  graph::TraceMode trace(recorder);
  fake::DynamicSizes sizes(graph.env);
  graph::InterpretOptions options;
  options.seeds = false;
  options.before_node = [&](const graph::Node& node) { trace.origin = &node; };
  options.made = [&](ValueId id, Tensor& made) {
    if (auto found = instead.find(id); found != instead.end()) {
      Tensor other = found->second(now);
      TENON_ASSERT(other.dtype() == made.dtype() && other.dim() == made.dim(), "{} in place of {}", other.description(),
                   made.description());
      made = std::move(other);
    }
    values[static_cast<size_t>(id)] = made;
  };
  for (const dispatch::Value& output : graph::interpret(graph, inputs, options))
    recorder.graph().outputs.push_back(recorder.to_argument(output));
  graph::remove_dead_code(recorder.graph());
  return std::move(recorder.graph());
}

}  // namespace tenon::schedule
