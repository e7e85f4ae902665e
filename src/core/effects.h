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
#include <memory>
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

// For what an object of the program does to itself and to tensors that it holds. Inside a capture, makes `action` an
// effect of the compiled function, so that it happens at every call, and says true; elsewhere false, and the caller
// goes on. `alive` expires with the object.
inline bool is_taken_as_effect(const char* why, std::weak_ptr<const void> alive, std::function<void()> action) {
  const EffectInterceptor* instead = effect_interceptor();
  if (instead == nullptr) return false;
  (*instead)({why, {}, [why, alive = std::move(alive), action = std::move(action)](std::span<const Tensor>) {
                TENON_CHECK(!alive.expired(),
                            "[compile] {}: the object that did so when the function was captured is gone; make it "
                            "outside of the function, and keep it as long as the function is called",
                            why);
                action();
                return std::vector<Tensor>();
              }});
  return true;
}

}  // namespace tenon::core
