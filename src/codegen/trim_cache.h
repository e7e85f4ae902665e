// Keeps the object cache's folder small.
#pragma once

#include <cstdint>
#include <string>

namespace tenon::codegen {

// Takes out what processes that were killed left unfinished, and if the entries come to more than `limit` bytes, those
// that were not used for longest, until a quarter is free. Processes may do so at once: what is gone is gone.
void trim_cache(const std::string& folder, int64_t limit);

}  // namespace tenon::codegen
