#include "borrows.h"
#include "support/at_fork.h"
#include "support/thread_data.h"

#include <tenon/dispatch/value.h>

#include <cstdlib>
#include <deque>
#include <mutex>
#include <string_view>
#include <vector>

namespace tenon::dispatch {

#ifdef NDEBUG
constexpr bool kCheckedByDefault = false;
#else
constexpr bool kCheckedByDefault = true;
#endif

namespace detail {
std::atomic<bool> borrows_checked{kCheckedByDefault};
}

namespace {

[[maybe_unused]] const bool read_environment = [] {
  if (const char* wanted = std::getenv("TENON_CHECK_BORROWS"))
    detail::borrows_checked = std::string_view(wanted) != "0";
  return true;
}();

struct Slot {
  uint32_t ended = 0;   // calls
  std::string last_op;  // of the call that ended last
};

// Slots of threads that ended are used again; their counts go on.
struct Slots {
  support::ForkSafe<std::mutex> mutex;
  std::deque<Slot> all{1};  // slot 0 is nobody's
  std::vector<uint16_t> free;
  // For all that there will be with the next one: a thread that ends gives its own back, whatever memory is left.
  void make_room() {
    if (free.capacity() <= all.size()) free.reserve(2 * all.size());
  }
  static Slots& instance() {
    static auto* slots = new Slots;
    return *slots;
  }
};

struct ThreadSlots {
  std::vector<uint16_t> by_depth;
  size_t depth = 0;
  ~ThreadSlots() {
    Slots& slots = Slots::instance();
    std::lock_guard lock(slots.mutex);
    slots.free.insert(slots.free.end(), by_depth.begin(), by_depth.end());
  }
};

ThreadSlots& mine() {
  return support::thread_data([] { return new ThreadSlots; });
}

thread_local uint16_t innermost = 0;

}  // namespace

BorrowScope::BorrowScope(const std::string& op) : slot_(0), before_(innermost), op_(op) {
  ThreadSlots& thread = mine();
  if (thread.depth == thread.by_depth.size()) {
    Slots& slots = Slots::instance();
    std::lock_guard lock(slots.mutex);
    thread.by_depth.reserve(thread.by_depth.size() + 1);
    if (!slots.free.empty()) {
      slot_ = slots.free.back();
      slots.free.pop_back();
    } else if (slots.all.size() <= UINT16_MAX) {
      slots.make_room();
      slot_ = static_cast<uint16_t>(slots.all.size());
      slots.all.emplace_back();
    }
    // Slot 0: there are no more, and values of this call are not checked.
    if (slot_ != 0) thread.by_depth.push_back(slot_);
  } else {
    slot_ = thread.by_depth[thread.depth];
  }
  if (slot_ != 0) ++thread.depth;
  innermost = slot_;
}

BorrowScope::~BorrowScope() {
  innermost = before_;
  if (slot_ == 0) return;
  --mine().depth;
  Slots& slots = Slots::instance();
  std::lock_guard lock(slots.mutex);
  ++slots.all[slot_].ended;
  slots.all[slot_].last_op = std::move(op_);
}

void Value::note_call() {
  // A copy of a copy is good for as long as the first.
  if (call_slot_ != 0 || innermost == 0 || !is_borrowed()) return;
  Slots& slots = Slots::instance();
  std::lock_guard lock(slots.mutex);
  call_slot_ = innermost;
  call_number_ = slots.all[innermost].ended;
}

void Value::check_call() const {
  Slots& slots = Slots::instance();
  std::string op;
  {
    std::lock_guard lock(slots.mutex);
    const Slot& slot = slots.all[call_slot_];
    if (slot.ended == call_number_) return;
    op = slot.ended == call_number_ + 1 ? slot.last_op : "an operator";
  }
  fail(
      "[value] a borrowed {} is read after the call of {} that it was an argument of: keep arguments beyond a call "
      "with "
      "own()",
      name(tag_), op);
}

}  // namespace tenon::dispatch
