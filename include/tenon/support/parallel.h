// The one thread pool. `parallel_for` splits [0, count) into at most `num_threads()` contiguous ranges whose
// starts are multiples of `grain`, and runs them at once. A nested or concurrent call, and any call in a forked
// child, runs its ranges one after the other on its own thread. So the split depends on `count`, `grain` and
// `num_threads()` only. An exception reaches the caller when all ranges have ended: the one of the first range.
//
//   std::vector<int> squares(10000);
//   parallel_for(10000, 1024, [&](int64_t begin, int64_t end) {
//     for (int64_t i = begin; i < end; ++i) squares[i] = int(i * i);
//   });
//   set_num_threads(1);
//   int one = num_threads();
//   set_num_threads(0);  // as many as before
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace tenon {

int num_threads();
// 0 restores the default: TENON_NUM_THREADS, else the number of cores.
void set_num_threads(int count);

namespace support {
void parallel_for_erased(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t), void* state);

// Lends the pool to code that has OpenMP regions of its own (oneDNN): while it lives, they run on `threads()` threads
// when started by this thread. That is one thread wherever `parallel_for` would run alone.
class ThreadLease {
 public:
  // `alone`: one thread, for work that is too small to share.
  explicit ThreadLease(bool alone = false);
  ~ThreadLease();
  ThreadLease(const ThreadLease&) = delete;
  int threads() const { return threads_; }

 private:
  bool holds_pool_ = false;
  int threads_ = 1, before_ = 1;
};
}  // namespace support

template <typename Body>
void parallel_for(int64_t count, int64_t grain, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  support::parallel_for_erased(
      count, grain, [](void* state, int64_t begin, int64_t end) { (*static_cast<Plain*>(state))(begin, end); },
      const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

}  // namespace tenon
