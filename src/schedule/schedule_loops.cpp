#include "schedule_loops.h"

#include "cpu/choose.h"
#include "lowering.h"

#include <tenon/support/function_ref.h>
#include <tenon/support/log.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace tenon::schedule {
namespace {

constexpr int64_t kStreamingBytes = 8 << 20;

// Large results that nothing in the plan reads go past the caches, which keep what is read.
std::vector<ValueId> streaming_results(const Schedule& schedule, const Lifetimes& lifetimes, const Nest& nest) {
  std::vector<ValueId> found;
  for (const Access& access : nest.accesses) {
    if (!access.store || lifetimes.uses[static_cast<size_t>(access.value)] > 1) continue;
    if (std::find(found.begin(), found.end(), access.value) != found.end()) continue;
    // What is updated in place was read just before.
    if (std::any_of(nest.accesses.begin(), nest.accesses.end(),
                    [&](const Access& other) { return !other.store && other.value == access.value; }))
      continue;
    const Tensor& meta = schedule.graph.meta(access.value);
    std::optional<int64_t> bytes =
        schedule.graph.env->hint(to_expr(schedule.graph, meta.numel() * meta.element_size()));
    if (bytes && *bytes >= kStreamingBytes) found.push_back(access.value);
  }
  return found;
}

std::string kernel_name(const Schedule& schedule, const Group& group) {
  std::string name = "fused";
  int words = 0;
  std::vector<bool> seen(schedule.graph.values.size());
  std::function<void(ValueId)> visit = [&](ValueId id) {
    if (seen[static_cast<size_t>(id)] || words >= 6) return;
    seen[static_cast<size_t>(id)] = true;
    const ValueState& state = schedule.state(id);
    if (!state.node || (state.root && std::find(group.roots.begin(), group.roots.end(), id) == group.roots.end()))
      return;
    graph::each_reference(*state.node, visit);
    if (state.source == graph::kNoValue && words++ < 6) name += "_" + state.node->op->schema().name;
  };
  for (ValueId root : group.roots) visit(root);
  return name;
}

// Of a group that was chosen because it can be emitted.
void or_internal(FunctionRef<void()> step) {
  try {
    step();
  } catch (const Refused& refused) {
    support::internal("a chosen group can be emitted", __FILE__, __LINE__, "{}", refused.why);
  }
}

}  // namespace

std::vector<GroupLoops> make_nests(const Schedule& schedule) {
  std::vector<GroupLoops> groups(schedule.groups.size());
  for (size_t at = 0; at < groups.size(); ++at) {
    const Group& group = schedule.groups[at];
    const bool stores =
        std::any_of(group.roots.begin(), group.roots.end(), [&](ValueId id) { return schedule.state(id).stored; });
    if (group.call || !stores) continue;
    or_internal([&] { groups[at].nest = make_nest(schedule, group); });
  }
  return groups;
}

Lifetimes find_lifetimes(const Schedule& schedule, const std::vector<GroupLoops>& groups) {
  const Graph& graph = schedule.graph;
  Lifetimes lifetimes;
  lifetimes.last.assign(graph.values.size(), Lifetimes::kNever);
  lifetimes.uses.assign(graph.values.size(), 0);
  for (size_t at = 0; at < groups.size(); ++at) {
    auto touch = [&](ValueId id) {
      auto base = static_cast<size_t>(schedule.state(id).base);
      if (std::exchange(lifetimes.last[base], static_cast<int>(at)) != static_cast<int>(at)) ++lifetimes.uses[base];
    };
    if (const Group& group = schedule.groups[at]; group.call) {
      graph::each_reference(*group.call, touch);
      for (ValueId id : group.roots) touch(id);
    } else if (groups[at].nest) {
      for (const Access& access : groups[at].nest->accesses) touch(access.value);
    }
  }
  for (const graph::Argument& output : graph.outputs)
    graph::each_reference(output, [&](ValueId id) {
      lifetimes.last[static_cast<size_t>(schedule.state(id).base)] = Lifetimes::kForever;
    });
  return lifetimes;
}

void schedule_loops(const Schedule& schedule, const Lifetimes& lifetimes, std::vector<GroupLoops>& groups) {
  for (GroupLoops& group : groups) {
    if (!group.nest) continue;
    group.loops = cpu::choose(*group.nest, streaming_results(schedule, lifetimes, *group.nest));
    TENON_LOG(Fusion, "{}  {}", to_string(*group.nest), to_string(group.loops));
  }
}

std::vector<EmittedGroup> emit_groups(const Schedule& schedule, const std::vector<GroupLoops>& groups) {
  std::vector<EmittedGroup> emitted(groups.size());
  for (size_t at = 0; at < groups.size(); ++at) {
    if (!groups[at].nest) continue;
    std::vector<ValueId> over_what_is_read;
    for (const TakeOver& each : groups[at].takes_over) over_what_is_read.push_back(each.result);
    const Group& group = schedule.groups[at];
    or_internal([&] {
      emitted[at] =
          emit(schedule, group, *groups[at].nest, groups[at].loops, kernel_name(schedule, group), over_what_is_read);
    });
  }
  return emitted;
}

}  // namespace tenon::schedule
