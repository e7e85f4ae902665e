// Nest and loop schedule to kernels.
#pragma once

#include "loop_schedule.h"

namespace tenon::schedule {

// Memory between the two kernels of a split sum. In a kernel's list of buffers it stands as `partial_id` of its place.
struct Partial {
  Dtype dtype;
  Expr count;  // elements, in the graph's pool
};
constexpr ValueId partial_id(size_t at) { return -2 - static_cast<ValueId>(at); }
constexpr bool is_partial(ValueId id) { return id <= -2; }
constexpr size_t partial_place(ValueId id) { return static_cast<size_t>(-2 - id); }

struct EmittedGroup {
  std::vector<EmittedKernel> kernels;  // in the order in which they run
  std::vector<Partial> partials;
};

// The schedule must be legal. `over_what_is_read`: roots that are stored where the kernel reads another value.
EmittedGroup emit(const Schedule& schedule, const Group& group, const Nest& nest, const LoopSchedule& loops,
                  const std::string& name, std::span<const ValueId> over_what_is_read = {});

}  // namespace tenon::schedule
