// What a function does to the world besides computing tensors: it sets a gradient, registers a hook, seeds the
// generator.
//
// A capture runs the user's function on fakes, once; its effects must happen for real, in their order, at every call.
// So whoever has such an effect asks for the interceptor first and hands the effect to it as an action on tensors; the
// capture ends the graph there, runs the action on the real tensors behind the fakes, and does the same at every later
// call.
#pragma once

#include "support/thread_context.h"

#include <tenon/core/tensor.h>

#include <functional>
#include <span>
#include <vector>

namespace tenon::core {

using EffectAction = std::function<std::vector<Tensor>(std::span<const Tensor> tensors)>;
// Gives what the action returned, as the function is to see it.
using EffectInterceptor =
    std::function<std::vector<Tensor>(const char* why, std::span<const Tensor> tensors, EffectAction action)>;

// Null where effects simply happen.
inline const EffectInterceptor* effect_interceptor() {
  return support::thread_context.get<const EffectInterceptor>(support::ContextSlot::EffectInterceptor);
}

}  // namespace tenon::core
