// The backward graph for a call of which only some results were differentiated.
#pragma once

#include <tenon/graph/graph.h>

namespace tenon::aot {

// `given`: by tangent, whether it has a value. Inputs of the result are the saved values and those tangents alone; an
// output that no given tangent reaches is None (graph::kNoValue), or zeros where eager has some (`reached`, by output).
// Zeros in place of missing tangents would not do: 0 times an infinite derivative is NaN, where eager does not go that
// way at all.
graph::Graph without_tangents(const graph::Graph& backward, size_t saved, const std::vector<bool>& given,
                              const std::vector<bool>& reached);

// By input: whether a node or a result takes it.
std::vector<bool> used_inputs(const graph::Graph& graph);

// Removes those of the first `count` inputs that nothing reads. Tells which stay.
std::vector<bool> drop_unused_inputs(graph::Graph& graph, size_t count);

}  // namespace tenon::aot
