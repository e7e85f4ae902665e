// Room for recursion that is the user's: a hook that walks backward, whose hooks walk, and so on, to any depth.
#pragma once

#include <tenon/support/function_ref.h>

namespace tenon::support {

// Calls `body`; on another stack of this thread, made for the call, if little is left of the one in use. What the
// thread has of its own (its context, locks, exceptions that are being handled) stays as it is.
//
//   std::vector<Tensor> results;
//   with_room([&] { results = run_walk(walk); });
void with_room(FunctionRef<void()> body);

}  // namespace tenon::support
