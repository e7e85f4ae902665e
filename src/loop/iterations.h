// How often a loop runs.
#pragma once

#include <tenon/loop/kernel.h>

namespace tenon::loop {

// Its extent; but 0 where all that it does is in inner loops that have no iterations: {INT64_MAX, 0} elements are none,
// and not to be counted.
sym::Expr iterations(const Loop& loop, sym::ExprPool& pool);

}  // namespace tenon::loop
