// Launching one compiled kernel.
#pragma once

#include <tenon/load/kernel.h>
#include <tenon/support/function_ref.h>

#include <span>

namespace tenon::runtime {

// Runs a kernel over its whole parallel extent, on the thread pool if the work is worth it. Counts `kernels_launched`.
// A failed check becomes an Error with the check's text.
void launch(const load::Kernel& kernel, std::span<void* const> buffers, std::span<const int64_t> integers,
            std::span<const uint64_t> scalars);

// Whoever looks at every launch: calls `run`, once, and may look at the buffers before and after it. Null: nobody.
using LaunchWatch = void (*)(const load::Kernel& kernel, std::span<void* const> buffers,
                             std::span<const int64_t> integers, std::span<const uint64_t> scalars,
                             FunctionRef<void()> run);
void watch_launches(LaunchWatch watch);
LaunchWatch launch_watch();

}  // namespace tenon::runtime
