#include "support/thread_team.h"

#ifdef TENON_OWN_THREADS

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

// libgomp comes with oneDNN only, and we do not link it here.
extern "C" int omp_get_max_threads() __attribute__((weak));
extern "C" void omp_set_num_threads(int) __attribute__((weak));

namespace tenon::support {
namespace {

class Team {
 public:
  void run(int parts, void (*part)(void*, int), void* state) {
    std::unique_lock lock(mutex_);
    for (; members_ < parts - 1; ++members_) std::thread(&Team::serve, this, members_ + 1, round_).detach();
    part_ = part;
    state_ = state;
    parts_ = parts;
    unfinished_ = parts - 1;
    ++round_;
    started_.notify_all();
    lock.unlock();
    part(state, 0);
    lock.lock();
    finished_.wait(lock, [&] { return unfinished_ == 0; });
  }

 private:
  // The life of member `index`: its part of every round that has so many parts.
  void serve(int index, uint64_t seen) {
    std::unique_lock lock(mutex_);
    while (true) {
      started_.wait(lock, [&] { return round_ != seen; });
      seen = round_;
      if (index >= parts_) continue;
      auto* part = part_;
      void* state = state_;
      lock.unlock();
      part(state, index);
      lock.lock();
      if (--unfinished_ == 0) finished_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable started_, finished_;
  int members_ = 0;  // threads besides the caller
  uint64_t round_ = 0;
  void (*part_)(void*, int) = nullptr;
  void* state_ = nullptr;
  int parts_ = 0;
  int unfinished_ = 0;  // parts of this round that members still work on
};

}  // namespace

void run_parts(int parts, void (*part)(void* state, int index), void* state) {
  static auto* team = new Team;  // never destroyed: its threads wait in it until the process ends
  team->run(parts, part, state);
}

bool openmp_may_run_in_parallel() { return false; }

int limit_openmp(int threads) {
  if (!omp_get_max_threads || !omp_set_num_threads) return threads;
  int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  return before;
}

}  // namespace tenon::support

#endif
