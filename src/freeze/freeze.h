// Freezing: of the inputs of a functional graph some are parameters, and what is computed from them alone is computed
// once. `freeze.cpp` has the list of passes.
#pragma once

#include "frozen.h"

namespace tenon::freezing {

// `may_hold`: by input, as `Frozen` takes it.
std::shared_ptr<Frozen> freeze(const Graph& graph, const Parameters& parameters, std::vector<bool> may_hold,
                               const GraphCompiler& compiler);

}  // namespace tenon::freezing
