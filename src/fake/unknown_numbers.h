// Numbers that only a run can tell.
#pragma once

#include <tenon/dispatch/operator.h>

namespace tenon::fake {

// Of an operator that returns numbers alone, and which nobody described: a new unbacked symbol for each. NeedsData
// where there are none to be had. False, and nothing done, of any other operator.
bool give_unknown_numbers(dispatch::Call& call);

}  // namespace tenon::fake
