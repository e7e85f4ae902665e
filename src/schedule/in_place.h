// A pass: inputs that the graph writes (`Graph::written`) are updated where they lie, and only in what changes.
//
// The graph is functional: `x.select(0, -1).fill_(1)` is a value of all of `x`, most of which is as it was. Here such a
// value becomes the writes that lead to it: which values go to which places of the input's memory. The output is then
// the input itself. What it costs is a condition on the order of steps: nothing may read what was there before once a
// write has begun. Within the kernel that writes, every iteration may read the element that it stores, and no other.
#pragma once

#include "fusion.h"
#include "nest.h"

namespace tenon::schedule {

struct GroupLoops;

struct InPlace {
  Graph graph;  // outputs that inputs become are those inputs
  std::vector<Update> updates;
};

// `decisions`, by `Graph::written`: those that are forbidden already are left as they are; those that cannot be done,
// as far as the graph tells, are forbidden.
InPlace update_in_place(const Graph& graph, std::vector<Decision>& decisions);

// Whether the nest may store into the memory of the input: where it reads from there, it reads in every iteration what
// that iteration overwrites. Allowed if it stores nothing there.
Decision reads_where_it_writes(const Nest& nest, ValueId input);

// Forbids updates of which a step reads the old value after it was overwritten, or may fail then. Gives whether there
// is one.
bool refuse_late_reads(const Schedule& schedule, const std::vector<GroupLoops>& groups,
                       std::vector<Decision>& decisions);

// Whether two tensors of one memory are the same elements of it in the same order, as far as is known.
bool has_geometry(const Tensor& a, const Tensor& b);

}  // namespace tenon::schedule
