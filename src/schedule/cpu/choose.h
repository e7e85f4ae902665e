// Which of the legal loop schedules of a nest a processor runs: at most 64 candidates are made, and compared by counts.
//
// The counts are of a processor of fixed measures, not of the one at hand, so that a program has the same kernels
// everywhere. Sizes are those of capture: they choose among schedules that are all correct for any size.
#pragma once

#include "../loop_schedule.h"

namespace tenon::schedule::cpu {

// What running a nest so costs, in cycles, roughly.
struct Cost {
  double instructions = 0;  // of all threads together
  double memory = 0;        // waiting for lines of the first and second cache
  double threads = 1;       // that can share both
  double overhead = 0;      // starting kernels
  // Of small machines and large ones, for a schedule that only many threads make fast is none for most. Little work is
  // not shared: waking threads would take longer.
  double total() const;
};
Cost cost(const Nest& nest, const LoopSchedule& schedule);

// Whether the nest sums long rows, few of them, in several stages: threads cannot share a sum that a later stage of the
// same nest waits for.
bool may_lack_threads(const Nest& nest);

// The candidates, all of them legal.
std::vector<LoopSchedule> candidates(const Nest& nest);
// The cheapest. `streaming`: results that are large and read by nobody in the plan.
LoopSchedule choose(const Nest& nest, const std::vector<ValueId>& streaming = {});

}  // namespace tenon::schedule::cpu
