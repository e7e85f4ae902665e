// Which threads are inside calls. Entering costs two plain stores: the expensive side of the ordering (a barrier on all
// threads) is paid by registration, through the kernel's `membarrier`. Where there is none, entering pays for a fence.
#include "registry.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace tenon::dispatch {
namespace {

struct Threads {
  std::mutex mutex;
  std::vector<const std::atomic<uint32_t>*> depths;
  static Threads& all() {
    static auto* threads = new Threads;  // outlives every thread
    return *threads;
  }
};

struct ThreadDepth {
  std::atomic<uint32_t> depth{0};
  ThreadDepth() {
    std::lock_guard lock(Threads::all().mutex);
    Threads::all().depths.push_back(&depth);
  }
  ~ThreadDepth() {
    std::lock_guard lock(Threads::all().mutex);
    std::erase(Threads::all().depths, &depth);
  }
};

std::atomic<uint32_t>& this_thread() {
  thread_local ThreadDepth mine;
  return mine.depth;
}

const bool kBarrierAvailable = syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;

}  // namespace

InsideCall::InsideCall() : depth_(this_thread()) {
  depth_.store(depth_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (kBarrierAvailable)
    std::atomic_signal_fence(std::memory_order_seq_cst);
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

InsideCall::~InsideCall() { depth_.store(depth_.load(std::memory_order_relaxed) - 1, std::memory_order_release); }

bool all_threads_left() {
  if (kBarrierAvailable)
    syscall(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
  std::lock_guard lock(Threads::all().mutex);
  return std::all_of(Threads::all().depths.begin(), Threads::all().depths.end(),
                     [](const auto* depth) { return depth->load(std::memory_order_acquire) == 0; });
}

}  // namespace tenon::dispatch
