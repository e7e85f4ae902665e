#include <pthread.h>
#include <sched.h>
#include <tenon/support/error.h>
#include <tenon/support/parallel.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>

#include "support/thread_team.h"

namespace tenon {
namespace {

// The cores that this process may run on.
int available_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  return std::max(1, CPU_COUNT(&cores));
}

int default_threads() {
  const char* text = std::getenv("TENON_NUM_THREADS");
  if (!text) return available_cores();
  char* end = nullptr;
  long count = std::strtol(text, &end, 10);
  if (*text == '\0' || *end != '\0' || count < 1 || count > 4096)
    fail("[TENON_NUM_THREADS] expected a number from 1 to 4096, got '{}'", text);
  return static_cast<int>(count);
}

std::atomic<int> requested{0};
std::atomic<bool> busy{false};    // one caller has the threads; others run alone
std::atomic<bool> forked{false};  // the threads do not survive a fork: run alone from then on

// From the start, not from the first use: oneDNN may have started OpenMP's threads without us.
[[maybe_unused]] const int watch_forks = pthread_atfork(nullptr, nullptr, [] { forked = true; });

// One call of `parallel_for`.
struct Job {
  int64_t count, grain;
  int64_t blocks;  // of `grain` elements, the last one perhaps shorter
  int parts;
  void (*body)(void*, int64_t, int64_t);
  void* state;
  std::mutex mutex;
  std::exception_ptr thrown;
  int thrown_part = 0;

  int64_t begin_of(int part) const {
    int64_t each = blocks / parts, extra = blocks % parts;
    int64_t block = each * part + std::min<int64_t>(extra, part);
    return block >= blocks ? count : block * grain;
  }
  void run(int part) { body(state, begin_of(part), begin_of(part + 1)); }

  // Of several exceptions the one of the first part survives, whatever the timing.
  void run_catching(int part) {
    try {
      run(part);
    } catch (...) {
      std::lock_guard lock(mutex);
      if (thrown && thrown_part < part) return;
      thrown = std::current_exception();
      thrown_part = part;
    }
  }
};

}  // namespace

int num_threads() {
  int count = requested.load(std::memory_order_relaxed);
  if (count > 0) return count;
  static const int standard = default_threads();
  return standard;
}

void set_num_threads(int count) {
  TENON_CHECK(count >= 0 && count <= 4096, "[set_num_threads] expected 0 to 4096, got {}", count);
  requested = count;
}

namespace support {

void parallel_for_erased(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t), void* state) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  int64_t blocks = (count - 1) / grain + 1;
  int parts = static_cast<int>(std::min<int64_t>(blocks, num_threads()));
  if (parts == 1) return body(state, 0, count);

  Job job{count, grain, blocks, parts, body, state, {}, {}, 0};
  if (forked.load(std::memory_order_relaxed) || busy.exchange(true, std::memory_order_acquire)) {
    // The same ranges one after the other, so that results do not depend on who else is running.
    for (int part = 0; part < parts; ++part) job.run(part);
    return;
  }
  run_parts(parts, [](void* all, int part) { static_cast<Job*>(all)->run_catching(part); }, &job);
  busy.store(false, std::memory_order_release);
  if (job.thrown) std::rethrow_exception(job.thrown);
}

ThreadLease::ThreadLease(bool alone) {
  int wanted = alone ? 1 : num_threads();
  if (wanted > 1 && openmp_may_run_in_parallel() && !forked.load(std::memory_order_relaxed) &&
      !busy.exchange(true, std::memory_order_acquire)) {
    holds_pool_ = true;
    threads_ = wanted;
  }
  before_ = limit_openmp(threads_);
}

ThreadLease::~ThreadLease() {
  limit_openmp(before_);
  if (holds_pool_) busy.store(false, std::memory_order_release);
}

}  // namespace support
}  // namespace tenon
