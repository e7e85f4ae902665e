// Operators that are not one loop over collapsed dimensions: their decomposition, or their element expression, is
// compiled as a graph of one call with symbolic sizes, and kept with its size guards.
#pragma once

#include <tenon/dispatch/operator.h>

namespace tenon::eager {

void run_composite(dispatch::Call& call);
void forget_plans();

}  // namespace tenon::eager
