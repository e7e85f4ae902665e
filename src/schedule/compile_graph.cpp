#include "in_place.h"
#include "pad_products.h"
#include "plan_memory.h"
#include "plan_steps.h"

#include <tenon/support/log.h>

namespace tenon::schedule {
namespace {

std::vector<codegen::CompiledKernelRef> compile_kernels(std::vector<EmittedGroup>& emitted) {
  std::vector<loop::Kernel> kernels;
  for (EmittedGroup& group : emitted)
    for (EmittedKernel& each : group.kernels) kernels.push_back(std::move(each.kernel));
  return codegen::compile_all(std::move(kernels));
}

}  // namespace

std::shared_ptr<const runtime::Plan> compile_graph(const graph::Graph& graph, const Options& options) {
  graph::Graph parts = decompose(graph);
  if (options.pad_products) parts = decompose(pad_products(parts));
  // Numbers that are passed at run time may be others then.
  if (options.fuse && !options.scalar_parameters) remove_identities(parts);
  TENON_LOG(Graph, "after decomposition:\n{}", graph::to_string(parts));
  std::vector<Decision> in_place(parts.written.size(), Decision::allow());
  for (;;) {
    const InPlace updated = update_in_place(parts, in_place);
    const Schedule schedule = fuse(updated.graph, options, updated.updates);
    std::vector<GroupLoops> groups = make_nests(schedule);
    // Only once values are grouped can be seen what would be read too late: such an input is copied into after all.
    if (refuse_late_reads(schedule, groups, in_place)) continue;
    for (size_t at = 0; at < in_place.size(); ++at)
      if (!in_place[at])
        TENON_LOG(Fusion, "input {} is not updated in place: {}", parts.written[at].input, in_place[at].why());
    const Lifetimes lifetimes = find_lifetimes(schedule, groups);
    schedule_loops(schedule, lifetimes, groups);
    take_over_memory(schedule, lifetimes, groups);
    std::vector<EmittedGroup> emitted = emit_groups(schedule, groups);
    std::vector<codegen::CompiledKernelRef> kernels = compile_kernels(emitted);
    return plan_steps(schedule, groups, emitted, std::move(kernels), lifetimes);
  }
}

}  // namespace tenon::schedule
