// What a thread is in the middle of: the state that a capture changes, and nothing else.
//
// It is one value, so that a capture, a run for real in the middle of one, and whatever is thrown out of either put
// back all of it or none: `SwapContext` exchanges the whole, and its destructor puts it back. Each room reads and
// writes its own part through functions of its own. What belongs to the thread for good stays out: caches, borrow
// slots, the depth of calls, the sequence number of autograd's nodes.
#pragma once

#include "support/origin.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace tenon::support {

// Who keeps a pointer in the context. What it points to lives on the stack of whoever set it.
enum class ContextSlot : uint8_t {
  Session,            // capture: the capture in progress
  CellReader,         // core: reads of cells pass through it
  SizeReader,         // core: sizes of real tensors that are read pass through it
  EffectInterceptor,  // core: what a function does besides computing passes through it
  EngineInterceptor,  // autograd: walks pass through it
  Walk,               // autograd: the walk that is running
  SavedTensorHooks,   // autograd: the innermost hooks
  NoSavedHooks,       // autograd: why there may be none
  DualLevel,          // autograd: the level of forward mode
  Anomaly,            // autograd: whether walks look for nan
  TraceMode,          // graph: the innermost recording below autograd
  DynamicSizes,       // fake: where unbacked numbers come from
  FixedDraws,         // core: random numbers that were drawn beforehand
  Autocast,           // dispatch: the innermost scope
  Count_,
};

struct ThreadContext {
  uint16_t included_keys = 0, excluded_keys = 0;  // dispatch: the bits of KeySets
  bool grad_enabled = true;                       // autograd
  bool drops_saved_tensors = false;               // autograd
  bool runs_own_code = false;                     // autograd, capture: what runs is not the user's program
  int32_t next_draw = -1;                         // core: the number of the next draw; -1: the generator's
  Origin origin;                                  // of operator calls: module and number
  std::array<void*, static_cast<size_t>(ContextSlot::Count_)> slots{};

  template <typename T>
  T* get(ContextSlot slot) const {
    return static_cast<T*>(slots[static_cast<size_t>(slot)]);
  }
  void set(ContextSlot slot, const void* content) { slots[static_cast<size_t>(slot)] = const_cast<void*>(content); }
};

// Asked by every call of an operator: in the thread's static block, so that reading it costs no call.
#if defined(__GNUC__)
[[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]]
#endif
extern constinit thread_local ThreadContext thread_context;

// While it lives, the thread's context is another one.
class SwapContext {
 public:
  explicit SwapContext(const ThreadContext& now) : before_(thread_context) { thread_context = now; }
  ~SwapContext() { thread_context = before_; }
  SwapContext(const SwapContext&) = delete;
  SwapContext& operator=(const SwapContext&) = delete;

  const ThreadContext& before() const { return before_; }

 private:
  ThreadContext before_;
};

// While it lives, what runs on the thread is our own code: what it does with its variables tells nothing of the user's.
class OwnCode {
 public:
  OwnCode() : before_(thread_context.runs_own_code) { thread_context.runs_own_code = true; }
  ~OwnCode() { thread_context.runs_own_code = before_; }
  OwnCode(const OwnCode&) = delete;
  OwnCode& operator=(const OwnCode&) = delete;

 private:
  bool before_;
};

// While it lives, one slot holds something else.
class SwapSlot {
 public:
  SwapSlot(ContextSlot slot, const void* content) : slot_(slot), before_(thread_context.get<void>(slot)) {
    thread_context.set(slot, content);
  }
  ~SwapSlot() { thread_context.set(slot_, before_); }
  SwapSlot(const SwapSlot&) = delete;
  SwapSlot& operator=(const SwapSlot&) = delete;

 private:
  ContextSlot slot_;
  void* before_;
};

}  // namespace tenon::support
