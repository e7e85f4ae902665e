// Calls of rows that have no C++ function, or not yet one that is declared: by name, through the dispatcher.
#pragma once

#include <tenon/dispatch/packet.h>

namespace tenon::ops {

// The first result.
inline Tensor call(const char* name, std::initializer_list<dispatch::Value> arguments) {
  dispatch::Results results = dispatch::call_by_name(name, arguments);
  return results[0].tensor();
}

}  // namespace tenon::ops
