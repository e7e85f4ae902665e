#include "plan_memory.h"

#include <algorithm>
#include <set>

namespace tenon::schedule {

Expr bytes_of(const Graph& graph, ValueId id) {
  const Tensor& meta = graph.meta(id);
  SymInts sizes = meta.sym_sizes(), strides = meta.sym_strides();
  SymInt reach = 1;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (sizes[dim].same(0)) return graph.env->pool().constant(0);
    reach = reach + (sizes[dim] - 1) * strides[dim];
  }
  return graph.env->pool().simplify(to_expr(graph, reach * meta.element_size()));
}

namespace {

// Whether an operator that is called through the dispatcher gets to see it: such a one may keep its arguments.
bool is_shown_to_others(const Schedule& schedule, ValueId value) {
  bool found = false;
  for (const Group& group : schedule.groups) {
    if (!group.call) continue;
    const ops::Row* row = ops::row_of(*group.call->op);
    if (!row || row->dynamic())
      graph::each_reference(*group.call, [&](ValueId id) { found |= schedule.state(id).base == value; });
  }
  return found;
}

}  // namespace

Decision may_take_over(const Schedule& schedule, const Nest& nest, ValueId taker, ValueId dying) {
  const Graph& graph = schedule.graph;
  const ValueState& state = schedule.state(dying);
  if (!state.node || state.memory != graph::kNoValue) return Decision::forbid("the memory is the caller's");
  if (!ops::row_of(*state.node->op)) return Decision::forbid("a custom operator gave it, and may have kept it");
  if (is_shown_to_others(schedule, dying)) return Decision::forbid("a custom operator saw it, and may have kept it");
  if (graph.meta(taker).element_size() != graph.meta(dying).element_size() ||
      bytes_of(graph, taker) != bytes_of(graph, dying))
    return Decision::forbid("it is not as large");
  // Loads come before stores in an iteration; another one must have nothing to do with these elements.
  for (const Access& load : nest.accesses) {
    if (load.store || load.value != dying) continue;
    for (const Access& store : nest.accesses)
      if (store.store && store.value == taker && (load.index != store.index || load.stage > store.stage))
        return Decision::forbid("another element of it is read than is stored");
  }
  return Decision::allow();
}

void take_over_memory(const Schedule& schedule, const Lifetimes& lifetimes, std::vector<GroupLoops>& groups) {
  for (size_t at = 0; at < groups.size(); ++at) {
    if (!groups[at].nest) continue;
    const Nest& nest = *groups[at].nest;
    std::set<ValueId> dying, takers;
    for (const Access& access : nest.accesses) {
      if (access.store) {
        // What is there already, or is read again by a later stage, stays apart.
        if (!schedule.is_input(access.value)) takers.insert(access.value);
      } else if (lifetimes.last[static_cast<size_t>(access.value)] == static_cast<int>(at)) {
        dying.insert(access.value);
      }
    }
    for (const Access& access : nest.accesses)
      if (!access.store) takers.erase(access.value);
    for (ValueId taker : takers)
      for (ValueId each : dying)
        if (may_take_over(schedule, nest, taker, each)) {
          groups[at].takes_over.push_back({taker, each});
          dying.erase(each);
          break;
        }
  }
}

}  // namespace tenon::schedule
