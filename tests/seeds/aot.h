// What the cases of ahead-of-time autograd share: both backends that it stands behind, and comparing with eager.
#pragma once

#include "../unit/capture/testing.h"

#include <tenon/aot/export.h>
#include <tenon/autograd/function.h>
#include <tenon/capture/trace.h>

#include <gmock/gmock.h>

namespace tenon::testing {

using ::testing::HasSubstr;

// Runs the case for each of them.
template <typename Case>
void on_both_backends(Case body) {
  for (const char* backend : {"aot_eager", "inductor"}) {
    SCOPED_TRACE(backend);
    autograd::SetGradMode as_it_begins(true);
    body(backend);
  }
}

// Why the last recompile was needed; empty: there was none.
struct Reason {
  std::string text;
  CompileOptions options(const char* backend, std::vector<std::string> names) {
    CompileOptions made{.backend = backend};
    made.argument_names = std::move(names);
    made.guard_fail = [this](const std::string& why) { text = why; };
    return made;
  }
};

inline Tensor leaf(const Ints& sizes) { return randn(SymInts(sizes.span())).set_requires_grad(); }

// A tensor that requires grad and is no leaf, so that it may be written to.
inline Tensor copy_of(const Tensor& tensor) { return tensor.clone(); }

// A graph of operators as it is, each with the grad mode that it was called with.
inline std::vector<dispatch::Value> run_graph(const graph::Graph& graph, const std::vector<Tensor>& inputs) {
  autograd::SetGradMode restore(autograd::grad_enabled());
  graph::InterpretOptions options;
  options.before_node = [](const graph::Node& node) { autograd::set_grad_enabled(node.grad_enabled); };
  return graph::interpret(graph, inputs, options);
}

// Keeps every graph that it is handed, and interprets it.
inline Backend recording(std::vector<graph::Graph>& graphs) {
  return [&graphs](const graph::Graph& graph) -> GraphFunction {
    graphs.push_back(graph);
    return [graph](std::span<const Tensor> inputs, std::span<const int64_t>) {
      return run_graph(graph, {inputs.begin(), inputs.end()});
    };
  };
}

}  // namespace tenon::testing
