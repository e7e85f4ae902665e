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

struct Effect {
  const char* why;
  std::span<const Tensor> tensors;  // what the action is done to
  std::function<std::vector<Tensor>(std::span<const Tensor> tensors)> action;
  // Views that were made before are not touched by it: they stay as they are, where they could else be made anew.
  bool spares_views = false;
  // It watches the gradients of the tensors: what was computed from them must be so in a graph of its own.
  bool watches_gradients = false;
};
// Gives what the action returned, as the function is to see it.
using EffectInterceptor = std::function<std::vector<Tensor>(Effect effect)>;

// Null where effects simply happen.
inline const EffectInterceptor* effect_interceptor() {
  return support::thread_context.get<const EffectInterceptor>(support::ContextSlot::EffectInterceptor);
}

}  // namespace tenon::core
