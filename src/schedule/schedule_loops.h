// The loops of every group: its nest, the schedule that the target chooses for it, and the kernels that they make.
#pragma once

#include "emit.h"

namespace tenon::schedule {

// A result that gets the memory of a value which dies in the same kernel (plan_memory.h).
struct TakeOver {
  ValueId result, dying;
};

// How a group runs; without a nest if it is an opaque call, or computes nothing that anybody reads.
struct GroupLoops {
  std::optional<Nest> nest;
  LoopSchedule loops;
  std::vector<TakeOver> takes_over = {};
};

// When values are used, by value: groups are counted in the order in which they run.
struct Lifetimes {
  static constexpr int kForever = 1 << 30;  // the caller gets it
  static constexpr int kNever = -1;
  std::vector<int> last;  // -1: never
  std::vector<int> uses;  // how many groups write or read it
};

std::vector<GroupLoops> make_nests(const Schedule& schedule);
Lifetimes find_lifetimes(const Schedule& schedule, const std::vector<GroupLoops>& groups);
// Chooses the loop schedules.
void schedule_loops(const Schedule& schedule, const Lifetimes& lifetimes, std::vector<GroupLoops>& groups);
std::vector<EmittedGroup> emit_groups(const Schedule& schedule, const std::vector<GroupLoops>& groups);

}  // namespace tenon::schedule
