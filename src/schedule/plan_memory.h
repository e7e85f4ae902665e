// A pass: which values take over the memory of others that die in the kernel that makes them.
#pragma once

#include "schedule_loops.h"

namespace tenon::schedule {

// Bytes from a value's first element to the end of its last, in the graph's pool.
Expr bytes_of(const Graph& graph, ValueId id);

// For each group: results, each with a value that no later step needs, that is as large, and of which the kernel reads
// in every iteration the element that it stores there.
void take_over_memory(const Schedule& schedule, const Lifetimes& lifetimes, std::vector<GroupLoops>& groups);

// Why one may not take over the other in this nest.
Decision may_take_over(const Schedule& schedule, const Nest& nest, ValueId taker, ValueId dying);

}  // namespace tenon::schedule
