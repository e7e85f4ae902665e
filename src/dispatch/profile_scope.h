// Events for a profiler: around operator calls and steps of backward.
#pragma once

#include <tenon/dispatch/profiler.h>

#include <atomic>
#include <string_view>

namespace tenon::dispatch {

namespace detail {
extern std::atomic<bool> profiling;
// The number of the innermost event of this thread.
void note_sequence(int64_t sequence);
}  // namespace detail

// An event around what the scope does, if a profiler records.
class ProfileScope {
 public:
  // An operator.
  explicit ProfileScope(std::string_view op) {
    if (detail::profiling.load(std::memory_order_relaxed)) [[unlikely]]
      start(op, Profiler::Event::Kind::Operator, -1);
  }
  // A step of backward.
  ProfileScope(std::string_view node, int64_t sequence) {
    if (detail::profiling.load(std::memory_order_relaxed)) [[unlikely]]
      start(node, Profiler::Event::Kind::Backward, sequence);
  }
  ~ProfileScope() {
    if (open_) [[unlikely]]
      finish();
  }
  ProfileScope(const ProfileScope&) = delete;

 private:
  friend void detail::note_sequence(int64_t sequence);
  struct Open;
  void start(std::string_view name, Profiler::Event::Kind kind, int64_t sequence);
  void finish();

  Open* open_ = nullptr;
};

}  // namespace tenon::dispatch
