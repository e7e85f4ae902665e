// The loop interpreter beside compiled kernels: every launch is made twice, and a difference is an error of ours.
#pragma once

#include <tenon/loop/kernel.h>

#include <span>

namespace tenon::oracle {

// While on, every launch of at most 10^5 addressed elements also runs the loop interpreter on copies of the buffers,
// and a difference is an InternalError: exact where the kernel is exact, within the stated error elsewhere. (A kernel
// that was loaded from a file has nothing to interpret.) TENON_ORACLE=1 turns it on at start; tests do.
void enable(bool on);
bool enabled();

// The same kernel through the interpreter alone.
void launch_interpreted(const loop::Kernel& kernel, std::span<void* const> buffers, std::span<const int64_t> integers,
                        std::span<const uint64_t> scalars);

}  // namespace tenon::oracle
