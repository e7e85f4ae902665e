// One operator as one loop nest: what eager calls run.
#pragma once

#include <tenon/codegen/compile.h>
#include <tenon/graph/graph.h>
#include <tenon/runtime/plan.h>

namespace tenon::schedule {

// The kernels of one operator: one, or two for a sum that threads share.
struct SingleKernel {
  struct Launch {
    codegen::CompiledKernelRef kernel;
    std::vector<graph::ValueId> buffers;         // what each buffer holds; -2, -3, …: the first partial, the second, …
    std::vector<sym::Expr> integers;             // symbols of the graph to pass
    std::vector<runtime::ScalarSource> scalars;  // `index` is the position of the number among the node's arguments
  };
  // Memory between the launches.
  struct Partial {
    Dtype dtype;
    sym::Expr count;  // elements
  };
  std::vector<Launch> launches;
  std::vector<Partial> partials;
};

// The graph holds one pointwise or reduction node, whose metadata (strides included) is taken as given. Numbers are
// passed at run time. `streaming`: the result is written past the caches.
SingleKernel compile_single(const graph::Graph& graph, bool streaming = false);

}  // namespace tenon::schedule
