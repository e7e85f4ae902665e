// The layers that have already seen a call when autograd works on it; what autograd computes on the way must not meet
// them again.
#pragma once

#include <tenon/core/dispatch_key.h>

namespace tenon::autograd {

constexpr KeySet kAutogradAndAbove{DispatchKey::Autograd, DispatchKey::Autocast, DispatchKey::Capture,
                                   DispatchKey::UserMode};

}  // namespace tenon::autograd
