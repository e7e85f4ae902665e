#include "cpu/choose.h"
#include "emit.h"

#include <tenon/codegen/compile.h>
#include <tenon/schedule/single.h>

namespace tenon::schedule {

SingleKernel compile_single(const graph::Graph& graph, bool streaming) {
  TENON_ASSERT(graph.nodes.size() == 1, "{} nodes", graph.nodes.size());
  const Schedule schedule = fuse(graph, {.fuse = false, .scalar_parameters = true});
  const Group& group = schedule.groups.at(0);
  const Nest nest = make_nest(schedule, group);
  const std::vector<ValueId> streamed = streaming ? group.roots : std::vector<ValueId>();
  EmittedGroup emitted = emit(schedule, group, nest, cpu::choose(nest, streamed), graph.nodes[0].op->schema().name);
  std::vector<loop::Kernel> kernels;
  for (EmittedKernel& each : emitted.kernels) kernels.push_back(std::move(each.kernel));
  std::vector<codegen::CompiledKernelRef> compiled = codegen::compile_all(std::move(kernels));
  SingleKernel single;
  for (size_t at = 0; at < compiled.size(); ++at) {
    EmittedKernel& each = emitted.kernels[at];
    single.launches.push_back(
        {std::move(compiled[at]), std::move(each.buffers), std::move(each.integers), std::move(each.scalars)});
  }
  for (const Partial& partial : emitted.partials) single.partials.push_back({partial.dtype, partial.count});
  return single;
}

}  // namespace tenon::schedule
