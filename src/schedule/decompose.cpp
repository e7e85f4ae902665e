#include <tenon/fake/dynamic_size.h>
#include <tenon/fake/fake.h>
#include <tenon/graph/trace.h>
#include <tenon/ops/row.h>
#include <tenon/schedule/schedule.h>

namespace tenon::schedule {
namespace {

bool needs_parts(const dispatch::Call& call) {
  const ops::Row* row = ops::row_of(call.op);
  if (!row || !row->decomposition) return false;
  if (row->kind == ops::Kind::Composite || row->kind == ops::Kind::View) return true;
  const auto& whole = row->kind == ops::Kind::Element ? row->element.whole : row->opaque.supports;
  return whole && !whole({call.op, call.args});
}

[[maybe_unused]] const bool registered = [] {
  graph::set_decomposition_source([](const dispatch::Operator& op) -> const dispatch::KernelFunction* {
    const ops::Row* row = ops::row_of(op);
    return row && row->decomposition ? &row->decomposition : nullptr;
  });
  return true;
}();

}  // namespace

graph::Graph decompose(const graph::Graph& graph) {
  graph::Recorder recorder(graph.env);
  recorder.graph().symbols = graph.symbols;
  recorder.graph().written = graph.written;
  std::vector<Tensor> inputs;
  for (graph::ValueId id : graph.inputs) {
    // Each input stands for itself even if two share their metadata.
    Tensor meta = fake::like(graph.meta(id));
    recorder.add_input(meta, graph.values[static_cast<size_t>(id)].name, meta);
    inputs.push_back(meta);
  }
  dispatch::ExcludeKeys below_autograd(KeySet{DispatchKey::Autograd, DispatchKey::ADInplaceOrView,
                                              DispatchKey::Functionalize, DispatchKey::Capture, DispatchKey::Autocast});
  graph::TraceMode trace(recorder, needs_parts);
  fake::DynamicSizes sizes(graph.env);
  graph::InterpretOptions options;
  options.seeds = false;
  options.before_node = [&](const graph::Node& node) { trace.origin = &node; };
  for (const dispatch::Value& output : graph::interpret(graph, inputs, options))
    recorder.graph().outputs.push_back(recorder.to_argument(output));
  graph::remove_dead_code(recorder.graph());
  return std::move(recorder.graph());
}

}  // namespace tenon::schedule
