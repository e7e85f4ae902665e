// Events for a profiler: around operator calls and steps of backward.
#pragma once

#include <tenon/dispatch/profiler.h>
#include <tenon/dispatch/value.h>

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
  ProfileScope(std::string_view op, std::span<const Value> args) {
    if (detail::profiling.load(std::memory_order_relaxed)) [[unlikely]]
      start("", op, args);
  }
  // A step of backward, or (`prefix`) more than that.
  ProfileScope(std::string_view prefix, std::string_view node, int64_t sequence, int32_t forward_thread) {
    if (detail::profiling.load(std::memory_order_relaxed)) [[unlikely]]
      start(prefix, node, {}, Profiler::Event::Kind::Backward, sequence, forward_thread);
  }
  ~ProfileScope() {
    if (open_) [[unlikely]]
      finish();
  }
  ProfileScope(const ProfileScope&) = delete;

 private:
  friend void detail::note_sequence(int64_t sequence);
  struct Open;
  void start(std::string_view prefix, std::string_view name, std::span<const Value> args,
             Profiler::Event::Kind kind = Profiler::Event::Kind::Operator, int64_t sequence = -1,
             int32_t forward_thread = -1);
  void finish();

  Open* open_ = nullptr;
};

}  // namespace tenon::dispatch
