#include <tenon/support/error.h>
#include <tenon/support/parallel.h>

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>

namespace tenon {
namespace {

int default_threads() {
  if (const char* text = std::getenv("TENON_NUM_THREADS")) {
    char* end = nullptr;
    long count = std::strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || count < 1 || count > 4096)
      fail("[TENON_NUM_THREADS] expected a number from 1 to 4096, got '{}'", text);
    return static_cast<int>(count);
  }
  return std::max(1, omp_get_num_procs());
}

std::atomic<int> requested{0};
std::atomic<bool> busy{false};    // one caller has the pool; others run alone
std::atomic<bool> forked{false};  // libgomp's threads do not survive a fork: run alone from then on

void watch_forks() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { forked = true; }); });
}

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
  int64_t blocks = (count + grain - 1) / grain;
  int64_t parts = std::min<int64_t>(blocks, num_threads());
  if (parts <= 1 || forked.load(std::memory_order_relaxed) || busy.exchange(true, std::memory_order_acquire)) {
    body(state, 0, count);
    return;
  }
  watch_forks();
  std::exception_ptr thrown;
  std::mutex thrown_mutex;
#pragma omp parallel for num_threads(static_cast<int>(parts)) schedule(static, 1)
  for (int64_t part = 0; part < parts; ++part) {
    int64_t begin = blocks * part / parts * grain;
    int64_t end = std::min(count, blocks * (part + 1) / parts * grain);
    try {
      body(state, begin, end);
    } catch (...) {
      std::lock_guard lock(thrown_mutex);
      if (!thrown) thrown = std::current_exception();
    }
  }
  busy.store(false, std::memory_order_release);
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace support
}  // namespace tenon
