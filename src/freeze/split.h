// A graph in two parts: what is computed from parameters alone, and the rest, which takes the results of the first as
// further inputs.
//
// The first part falls into units that have no value in common, so that a changed parameter concerns few of them. Not
// everything that could be computed once is: a view costs nothing, what comes from numbers alone is made faster than it
// is read, and what is larger than that which it is computed from (an outer sum) would be read from memory instead of
// being computed on the way.
#pragma once

#include "constants.h"

namespace tenon::freezing {

struct FoldUnit {
  Graph graph;                      // its inputs are `parameters`
  std::vector<int32_t> parameters;  // positions among the inputs of the whole graph
  std::vector<size_t> outputs;      // positions among the constants
};

struct Split {
  Graph frozen;                    // takes `inputs`, then the constants
  std::vector<int32_t> inputs;     // those of the whole graph that it reads
  std::vector<bool> reads;         // by input of the whole graph: whether it is among them
  std::vector<std::string> names;  // by input of the whole graph
  std::vector<FoldUnit> units;
  size_t constants = 0;
};

Split split_constants(const Graph& graph, const Parameters& parameters, Notes& notes);

}  // namespace tenon::freezing
