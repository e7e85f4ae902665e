// How much memory a plan needs.
#pragma once

#include <tenon/runtime/plan.h>

namespace tenon::runtime {

// The most bytes that a run of the plan holds at a time, results included and inputs not, found by walking its steps
// without running them. `symbols`: values by symbol id. Results of operators that make them themselves (custom ones,
// and those whose sizes the data tells) and what library calls need inside are not counted.
//
//   int64_t most = peak_bytes(plan, graph::bind_symbols(graph, inputs));
int64_t peak_bytes(const Plan& plan, std::span<const int64_t> symbols);

}  // namespace tenon::runtime
