// The arguments of one call, by name, as rows read them.
#pragma once

#include <tenon/dispatch/arguments.h>

namespace tenon::ops {

using dispatch::Arguments;
using dispatch::wrap_dim;

// Whether the condition holds. Where only the data can tell, it is taken for granted from now on and checked (saying
// `otherwise`) when the data is there.
bool holds(const SymBool& condition, const std::string& otherwise);

}  // namespace tenon::ops
