// The thread's context while a kernel of an operator author runs in the middle of something else.
#pragma once

#include <tenon/dispatch/registration.h>

#include "support/thread_context.h"

namespace tenon::dispatch {

// On fakes: its results are looked at, and what it does besides (operators that it calls, a gradient that it computes
// for itself) is its own business, at every call.
class InsideKernel {
 public:
  InsideKernel() : context_(context()) {}

 private:
  static support::ThreadContext context() {
    using Slot = support::ContextSlot;
    constexpr KeySet recording{DispatchKey::Trace, DispatchKey::Functionalize, DispatchKey::Capture};
    constexpr KeySet differentiating{DispatchKey::ADInplaceOrView, DispatchKey::Autograd};
    support::ThreadContext context = support::thread_context;
    context.included_keys &= static_cast<uint16_t>(~recording.bits());
    context.excluded_keys &= static_cast<uint16_t>(~differentiating.bits());
    context.drops_saved_tensors = false;
    for (Slot slot : {Slot::EffectInterceptor, Slot::EngineInterceptor, Slot::SavedTensorHooks, Slot::TraceMode})
      context.set(slot, nullptr);
    return context;
  }

  support::SwapContext context_;
};

// For real, as a step of a graph that runs below autograd: a kernel without a gradient of its own may differentiate
// what it computes, as it may in eager. (Autograd's layer makes sure that nothing of it gets out.)
class AsInEager {
 public:
  explicit AsInEager(const Operator& op) : before_(thread_keys()) {
    constexpr KeySet autograd{DispatchKey::Autograd, DispatchKey::ADInplaceOrView};
    if (!op.traits() && op.schema().is_functional() && !has_autograd_kernel(op))
      set_thread_keys({before_.include, before_.exclude - autograd});
  }
  ~AsInEager() { set_thread_keys(before_); }
  AsInEager(const AsInEager&) = delete;

 private:
  static bool has_autograd_kernel(const Operator& op) {
    return has_kernel(op, KernelKey::Autograd) || has_kernel(op, KernelKey::AutogradCPU) ||
           has_kernel(op, KernelKey::AutogradCUDA);
  }

  ThreadKeys before_;
};

}  // namespace tenon::dispatch
