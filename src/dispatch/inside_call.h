// Which threads are inside calls, and may use kernel tables that have been replaced.
#pragma once

#include <tenon/dispatch/operator.h>

namespace tenon::dispatch {

// What the dispatcher keeps for each thread. In the static block of the thread, so that reading it costs no call.
struct ThreadState {
  std::atomic<uint32_t> depth{0};  // of calls
  bool known = false;              // to `all_threads_left`
};
#if defined(__GNUC__)
[[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]]
#endif
extern constinit thread_local ThreadState thread_state;

extern const bool barrier_available;
void make_thread_known();

// Marks the thread as inside a call, for as long as it may use a kernel table. Costs two plain stores: the expensive
// side of the ordering (a barrier on all threads) is paid by registration, through the kernel's `membarrier`. Where
// there is none, entering pays for a fence.
class InsideCall {
 public:
  InsideCall() : depth_(thread_state.depth) {
    if (!thread_state.known) [[unlikely]]
      make_thread_known();
    depth_.store(depth_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (barrier_available) [[likely]]
      std::atomic_signal_fence(std::memory_order_seq_cst);
    else
      std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  ~InsideCall() { depth_.store(depth_.load(std::memory_order_relaxed) - 1, std::memory_order_release); }
  InsideCall(const InsideCall&) = delete;

 private:
  std::atomic<uint32_t>& depth_;
};

// True if every thread has been outside of calls at some moment since the call of this function.
bool all_threads_left();

}  // namespace tenon::dispatch
