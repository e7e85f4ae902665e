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
  // Numbers that are passed at run time may be others then.
  if (options.fuse && !options.scalar_parameters) remove_identities(parts);
  TENON_LOG(Graph, "after decomposition:\n{}", graph::to_string(parts));
  const Schedule schedule = fuse(parts, options);
  std::vector<GroupLoops> groups = make_nests(schedule);
  const Lifetimes lifetimes = find_lifetimes(schedule, groups);
  schedule_loops(schedule, lifetimes, groups);
  std::vector<EmittedGroup> emitted = emit_groups(schedule, groups);
  std::vector<codegen::CompiledKernelRef> kernels = compile_kernels(emitted);
  std::shared_ptr<const runtime::Plan> plan = plan_steps(schedule, emitted, std::move(kernels), lifetimes);
  TENON_LOG(Plan, "{}", runtime::to_string(*plan));
  return plan;
}

}  // namespace tenon::schedule
