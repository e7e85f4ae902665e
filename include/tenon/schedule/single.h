// One operator as one kernel: what eager calls run.
#pragma once

#include <tenon/graph/graph.h>
#include <tenon/runtime/plan.h>

namespace tenon::schedule {

struct SingleKernel {
  codegen::CompiledKernelRef kernel;
  std::vector<graph::ValueId> buffers;         // what each buffer holds
  std::vector<sym::Expr> integers;             // symbols of the graph to pass
  std::vector<runtime::ScalarSource> scalars;  // `index` is the position of the number among the node's arguments
};

// The graph holds one pointwise or reduction node, whose metadata (strides included) is taken as given. Numbers are
// passed at run time.
SingleKernel compile_single(const graph::Graph& graph);

}  // namespace tenon::schedule
