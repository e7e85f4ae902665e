// Which values of a graph are computed from its parameters alone.
//
// No pass of this room looks at what a parameter holds, only at sizes and dtypes: so what was decided stays right when
// the parameters change, and only the computation of the constants is repeated. (The room's namespace is not `freeze`,
// because that is the function.)
#pragma once

#include <tenon/graph/graph.h>
#include <tenon/ops/row.h>
#include <tenon/support/decision.h>

#include <string>
#include <vector>

namespace tenon::freezing {

using graph::Graph;
using graph::Node;
using graph::ValueId;

// By input of the graph, as far as it is known: whether it may be taken for a constant. Refused without words: it is an
// argument.
using Parameters = std::vector<Decision>;
// What was folded, and what was not and why; a line each.
using Notes = std::vector<std::string>;
using Mask = std::vector<bool>;  // by value

// Whether the node's results depend on nothing but the values of its operands, and have sizes that are known.
Decision depends_on_operands_alone(const Graph& graph, const Node& node);

// By value: it is a parameter, or computed from parameters and numbers.
Mask find_constants(const Graph& graph, const Parameters& parameters);
// Nodes that compute constants come first, so that a constant can be used anywhere.
void put_constants_first(Graph& graph, const Mask& constants);

// By value: the caller gets its memory. It is a result, or a result is a view of it.
Mask find_shown(const Graph& graph);
bool is_view(const Node& node);
// What a value is a view of; itself, if it is none.
ValueId viewed_by(const Graph& graph, ValueId id);

// "%12 = aten::mul", "%weight"
std::string name_of(const Graph& graph, ValueId id);

}  // namespace tenon::freezing
