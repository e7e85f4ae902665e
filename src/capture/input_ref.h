// Where a call's frame holds a tensor.
#pragma once

#include <cstdint>

namespace tenon::capture {

// A tensor that a segment's graph takes.
struct InputRef {
  bool is_register = false;
  int32_t index = 0;
  bool operator==(const InputRef&) const = default;
};

}  // namespace tenon::capture
