// The functions that generated code may call, by name. Objects refer to them by name only, so that an object from the
// cache links like a fresh one.
//
// A "lanes" function applies a libm function to an array of lanes: `tenon_lanes_sin_f64(out, a, b, count)`. Kernels
// call them for rare lanes (huge arguments of sin) and for functions that have no polynomial yet.
#pragma once

#include <cstdint>
#include <span>

namespace tenon::load {

struct RuntimeSymbol {
  const char* name;
  const void* address;
};

std::span<const RuntimeSymbol> runtime_symbols();

}  // namespace tenon::load
