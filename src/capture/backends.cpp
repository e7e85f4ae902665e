#include "backends.h"

#include "graph/on_data.h"

#include <tenon/aot/export.h>
#include <tenon/autograd/grad_mode.h>

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>

namespace tenon {
namespace capture {
GraphFunction replay_graph(const graph::Graph& graph) {
  auto kept = std::make_shared<graph::Graph>(graph);
  return [kept](std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
    autograd::SetGradMode restore(autograd::grad_enabled());
    graph::InterpretOptions options;
    const std::vector<int64_t> values = graph::symbols_on_data(*kept, symbols);
    options.symbols = values;
    options.before_node = [](const graph::Node& node) { autograd::set_grad_enabled(node.grad_enabled); };
    return graph::interpret(*kept, inputs, options);
  };
}

GraphFunction pass_on_inputs(const graph::Graph& graph) {
  struct Output {
    int32_t input = -1;
    dispatch::Value number;
  };
  std::vector<Output> outputs;
  for (const graph::Argument& argument : graph.outputs) {
    Output& output = outputs.emplace_back();
    if (const auto* id = std::get_if<graph::ValueId>(&argument))
      output.input =
          static_cast<int32_t>(std::find(graph.inputs.begin(), graph.inputs.end(), *id) - graph.inputs.begin());
    else
      output.number = std::get<dispatch::Value>(argument);
  }
  return [outputs, env = graph.env](std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
    std::vector<dispatch::Value> results;
    results.reserve(outputs.size());
    for (const Output& output : outputs)
      results.push_back(output.input >= 0 ? dispatch::Value(Tensor(inputs[static_cast<size_t>(output.input)]))
                                          : graph::evaluate_numbers(output.number, symbols));
    return results;
  };
}

std::string write_graph(const graph::Graph& graph) {
  std::string text = graph::to_string(graph);
  std::filesystem::path folder = std::filesystem::temp_directory_path();
  std::filesystem::path path = folder / fmt::format("tenon-graph-{:016x}.txt", std::hash<std::string>()(text));
  std::filesystem::path unfinished = path;
  unfinished += fmt::format(".{}", ::getpid());
  std::ofstream(unfinished) << text;
  std::error_code error;
  std::filesystem::rename(unfinished, path, error);
  return error ? "(it could not be written)" : path.string();
}

namespace {

struct Known {
  std::string_view name;
  aot::Compiled (*make)(const graph::Graph&, const std::vector<bool>&, bool, const aot::Options&);
};

constexpr std::array<Known, 3> kBackends = {{
    {"inductor",
     [](const graph::Graph& graph, const std::vector<bool>& requires_grad, bool grad_enabled,
        const aot::Options& options) {
       return aot::compile(graph, requires_grad, grad_enabled,
                           options.pad_products ? aot::scheduled_with_padding : aot::scheduled, options);
     }},
    {"aot_eager",
     [](const graph::Graph& graph, const std::vector<bool>& requires_grad, bool grad_enabled,
        const aot::Options& options) {
       return aot::compile(graph, requires_grad, grad_enabled, aot::interpreted, options);
     }},
    {"eager", [](const graph::Graph& graph, const std::vector<bool>&, bool,
                 const aot::Options&) { return aot::Compiled{.run = replay_graph(graph)}; }},
}};

}  // namespace

aot::Compiled compile_with(const Backend& backend, const graph::Graph& graph, const std::vector<bool>& requires_grad,
                           bool grad_enabled, const aot::Options& options) {
  if (backend.custom()) return {.run = backend.custom()(graph)};
  // The function may turn grad mode on itself.
  for (const graph::Node& node : graph.nodes) grad_enabled |= node.grad_enabled;
  for (const Known& known : kBackends)
    if (known.name == backend.name()) return known.make(graph, requires_grad, grad_enabled, options);
  TENON_ASSERT(false, "backend {}", backend.name());
  return {};
}

}  // namespace capture

Backend::Backend(std::function<GraphFunction(const graph::Graph&)> custom)
    : name_("custom"),
      serial_([] {
        static std::atomic<uint64_t> last{0};
        return ++last;
      }()),
      custom_(std::move(custom)) {}

Backend::Backend(std::string name) : name_(std::move(name)) {
  std::vector<std::string_view> names;
  for (const capture::Known& known : capture::kBackends) {
    if (known.name == name_) return;
    names.push_back(known.name);
  }
  fail("[compile] unknown backend '{}': expected one of {}, or a function from a graph to a callable", name_,
       fmt::join(names, ", "));
}

}  // namespace tenon
