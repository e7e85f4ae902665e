#include "own_stack.h"

#include <tenon/support/error.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace tenon::support {
namespace {

// What is asked for before a call: more than compiling a kernel needs, sanitizers included.
constexpr size_t kRoom = size_t{1} << 20;
constexpr size_t kStackBytes = size_t{8} << 20;

// The end that the stack in use grows towards; 0: nobody has asked yet.
thread_local uintptr_t end_of_stack = 0;

uintptr_t end_of_thread_stack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* low = nullptr;
  size_t size = 0, guard = 0;
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_getguardsize(&attributes, &guard);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<uintptr_t>(low) + guard;
}

// Memory for a stack, with a page below it that nobody may touch.
class StackMemory {
 public:
  StackMemory() {
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
    memory_ = mmap(nullptr, guard_ + kStackBytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    TENON_CHECK(memory_ != MAP_FAILED, "no memory for another stack, which so deep a recursion needs");
    mprotect(memory_, guard_, PROT_NONE);
  }
  ~StackMemory() {
#if defined(__SANITIZE_ADDRESS__)
    // What it thinks of the variables that were here must not outlive them: the next mapping may come to lie here.
    __asan_unpoison_memory_region(low(), kStackBytes);
#endif
    munmap(memory_, guard_ + kStackBytes);
  }
  StackMemory(const StackMemory&) = delete;
  StackMemory& operator=(const StackMemory&) = delete;

  std::byte* low() const { return static_cast<std::byte*>(memory_) + guard_; }

 private:
  size_t guard_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory_ = nullptr;
};

// The sanitizers follow what is on which stack, and are told of every change.
class Switches {
 public:
#if defined(__SANITIZE_ADDRESS__)
  void leave(const StackMemory& to) { __sanitizer_start_switch_fiber(&caller_, to.low(), kStackBytes); }
  void arrive() { __sanitizer_finish_switch_fiber(nullptr, &below_, &below_bytes_); }
  void return_to_caller() { __sanitizer_start_switch_fiber(nullptr, below_, below_bytes_); }
  void returned() { __sanitizer_finish_switch_fiber(caller_, nullptr, nullptr); }

 private:
  void* caller_ = nullptr;
  const void* below_ = nullptr;
  size_t below_bytes_ = 0;
#elif defined(__SANITIZE_THREAD__)
  void leave(const StackMemory&) { __tsan_switch_to_fiber(fiber_, 0); }
  void arrive() {}
  void return_to_caller() { __tsan_switch_to_fiber(caller_, 0); }
  void returned() { __tsan_destroy_fiber(fiber_); }

 private:
  void* caller_ = __tsan_get_current_fiber();
  void* fiber_ = __tsan_create_fiber(0);
#else
  void leave(const StackMemory&) {}
  void arrive() {}
  void return_to_caller() {}
  void returned() {}
#endif
};

struct Crossing {
  FunctionRef<void()> body;
  ucontext_t caller = {}, there = {};
  Switches switches = {};
  std::exception_ptr thrown = {};
};

thread_local Crossing* crossing = nullptr;  // the one that is being made; read once on the other side

void run_there() {
  Crossing& mine = *crossing;
  mine.switches.arrive();
  try {
    mine.body();
  } catch (...) {
    mine.thrown = std::current_exception();
  }
  mine.switches.return_to_caller();
  setcontext(&mine.caller);
}

}  // namespace

void with_room(FunctionRef<void()> body) {
  if (end_of_stack == 0) end_of_stack = end_of_thread_stack();
  auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (here - end_of_stack > kRoom) return body();
  StackMemory memory;
  Crossing made{body};
  getcontext(&made.there);
  made.there.uc_stack.ss_sp = memory.low();
  made.there.uc_stack.ss_size = kStackBytes;
  made.there.uc_link = nullptr;
  makecontext(&made.there, run_there, 0);
  uintptr_t before = std::exchange(end_of_stack, reinterpret_cast<uintptr_t>(memory.low()));
  crossing = &made;
  made.switches.leave(memory);
  swapcontext(&made.caller, &made.there);
  made.switches.returned();
  end_of_stack = before;
  if (made.thrown) std::rethrow_exception(made.thrown);
}

}  // namespace tenon::support
