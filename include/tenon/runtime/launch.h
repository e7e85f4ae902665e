// Launching one compiled kernel.
#pragma once

#include <tenon/codegen/compile.h>

#include <span>

namespace tenon::runtime {

// Runs a kernel over its whole parallel extent, on the thread pool if the work is worth it. Counts `kernels_launched`.
// A failed check becomes an Error with the check's text.
void launch(const codegen::CompiledKernel& kernel, std::span<void* const> buffers, std::span<const int64_t> integers,
            std::span<const uint64_t> scalars);

// While on, every launch of at most 10^5 addressed elements also runs the loop interpreter on copies of the buffers,
// and a difference is an InternalError: exact where the kernel is exact, within the stated error elsewhere.
// TENON_ORACLE=1 turns it on at start; tests do.
void set_oracle(bool on);
bool oracle_enabled();

// The same kernel through the interpreter alone.
void launch_interpreted(const loop::Kernel& kernel, std::span<void* const> buffers, std::span<const int64_t> integers,
                        std::span<const uint64_t> scalars);

}  // namespace tenon::runtime
