// What is made of a captured graph.
#pragma once

#include <tenon/capture/compiled_function.h>

namespace tenon::capture {

aot::Compiled compile_with(const Backend& backend, const graph::Graph& graph, const std::vector<bool>& requires_grad,
                           bool grad_enabled, const aot::Options& options);

// The captured graph as it is, run by the interpreter: autograd sees every operator.
GraphFunction replay_graph(const graph::Graph& graph);
// Of a graph without nodes: its outputs are inputs, or numbers.
GraphFunction pass_on_inputs(const graph::Graph& graph);
// Writes the graph as text into a file of the temporary folder; its path.
std::string write_graph(const graph::Graph& graph);

}  // namespace tenon::capture
