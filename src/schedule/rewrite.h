// Graphs with other values in the place of some: the graph is run once more on fakes and recorded, and where a value is
// to be another one, operators are called that compute it. What nobody needs any more is left out.
#pragma once

#include <tenon/graph/graph.h>

#include <functional>
#include <map>

namespace tenon::schedule {

using graph::Graph;
using graph::ValueId;

// The tensor that stands for a value of the old graph. Those exist that were computed before.
using Values = std::function<const Tensor&(ValueId)>;
// By value: what takes its place, with the same sizes, strides and dtype.
using Instead = std::map<ValueId, std::function<Tensor(const Values&)>>;

Graph rewrite(const Graph& graph, const Instead& instead);

}  // namespace tenon::schedule
