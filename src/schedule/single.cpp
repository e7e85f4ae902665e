#include "fusion.h"

#include <tenon/codegen/compile.h>
#include <tenon/schedule/single.h>

namespace tenon::schedule {

SingleKernel compile_single(const graph::Graph& graph) {
  TENON_ASSERT(graph.nodes.size() == 1, "{} nodes", graph.nodes.size());
  Schedule schedule = fuse(graph, {.fuse = false, .scalar_parameters = true});
  EmittedKernel emitted = emit(schedule, schedule.groups.at(0), graph.nodes[0].op->schema().name);
  SingleKernel single;
  single.kernel = codegen::compile(std::move(emitted.kernel));
  single.buffers = std::move(emitted.buffers);
  single.integers = std::move(emitted.integers);
  single.scalars = std::move(emitted.scalars);
  return single;
}

}  // namespace tenon::schedule
