// The last pass: allocation, launches and calls in order; memory is taken over as values die.
#pragma once

#include "schedule_loops.h"

#include <tenon/codegen/compile.h>

namespace tenon::schedule {

// `groups` and `emitted` by group; `kernels`: theirs, compiled, in order.
std::shared_ptr<const runtime::Plan> plan_steps(const Schedule& schedule, const std::vector<GroupLoops>& groups,
                                                const std::vector<EmittedGroup>& emitted,
                                                std::vector<codegen::CompiledKernelRef> kernels,
                                                const Lifetimes& lifetimes);

}  // namespace tenon::schedule
