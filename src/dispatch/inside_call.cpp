#include "inside_call.h"
#include "support/at_fork.h"

#include "core/rebind.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

namespace tenon::dispatch {

constinit thread_local ThreadState thread_state;

[[maybe_unused]] static const bool registered = [] {
  core::set_inside_operator([] { return thread_state.depth.load(std::memory_order_relaxed) > 0; });
  return true;
}();

const bool barrier_available = syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;

namespace {

struct Threads {
  support::ForkSafe<std::mutex> mutex;
  std::vector<const std::atomic<uint32_t>*> depths;
  static Threads& all() {
    static auto* threads = new Threads;  // outlives every thread
    return *threads;
  }
};

struct KnownThread {
  KnownThread() {
    std::lock_guard lock(Threads::all().mutex);
    Threads::all().depths.push_back(&thread_state.depth);
  }
  ~KnownThread() {
    std::lock_guard lock(Threads::all().mutex);
    std::erase(Threads::all().depths, &thread_state.depth);
  }
};

}  // namespace

void make_thread_known() {
  thread_local KnownThread mine;
  thread_state.known = true;
}

bool all_threads_left() {
  if (barrier_available)
    syscall(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
  std::lock_guard lock(Threads::all().mutex);
  return std::all_of(Threads::all().depths.begin(), Threads::all().depths.end(),
                     [](const auto* depth) { return depth->load(std::memory_order_acquire) == 0; });
}

}  // namespace tenon::dispatch
