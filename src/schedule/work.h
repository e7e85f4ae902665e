// What elements cost: instructions, roughly, as the cost model and the limits of fusion count them.
#pragma once

#include "fusion.h"

#include <tenon/loop/kernel.h>

namespace tenon::schedule {

// Of one operation; what moves data has a cost of its own elsewhere.
int instructions(const loop::Op& op);
// Of one element of what a node computes, its inputs being there.
int work_of(const Graph& graph, const Node& node);

}  // namespace tenon::schedule
