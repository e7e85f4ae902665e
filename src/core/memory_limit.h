// How much memory tensors may take together. The machine's, unless a test says otherwise.
#pragma once

#include <cstdint>

namespace tenon::allocator {

// Beyond that many bytes, in use and kept, an allocation is a MemoryError. 0: what the machine has.
void set_limit(int64_t bytes);

}  // namespace tenon::allocator
