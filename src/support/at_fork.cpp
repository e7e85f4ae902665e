#include "support/at_fork.h"
#include "support/undivided.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <new>
#include <set>
#include <thread>
#include <vector>

namespace tenon::support {
namespace {

// A program that forks while it holds one of our locks itself (from a callback), or what a captured function waits for,
// would wait for itself.
constexpr std::chrono::seconds kLongest{10};

struct Locks {
  std::mutex mutex;
  std::set<AtFork*> all;
  std::vector<AtFork*> taken;  // by the fork at hand
};

// Threads that are inside, and a fork that waits for them.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  bool forking = false;
  bool closed = false;  // for all threads but the one that closed it

  // `depth`: how often the thread at hand is inside.
  void enter(int& depth, bool may_pass_closed) {
    if (depth++ > 0) return;
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !forking && (!closed || may_pass_closed); });
    ++inside;
  }
  void leave(int& depth) {
    if (--depth > 0) return;
    std::lock_guard lock(mutex);
    --inside;
    changed.notify_all();
  }
  // For a fork. Whoever is inside goes on until then.
  void shut(int depth, std::chrono::seconds longest) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !forking; });  // another thread forks
    forking = true;
    changed.wait_for(lock, longest, [&] { return inside == (depth > 0 ? 1 : 0); });
  }
  void open_in_parent() {
    forking = false;
    mutex.unlock();
    changed.notify_all();
  }
  void open_in_child(int depth) {
    new (&changed) std::condition_variable;  // others may have waited
    forking = false;
    inside = depth > 0 ? 1 : 0;
    mutex.unlock();
  }
};

// Never destroyed: threads and static objects may lock while the process ends.
Locks& locks() {
  static auto* made = new Locks;
  return *made;
}
Gate& gate() {
  static auto* made = new Gate;
  return *made;
}
Gate& undertakings() {
  static auto* made = new Gate;
  return *made;
}

thread_local int depth = 0;              // of `NoFork` on this thread
thread_local int undertaken = 0;         // of `Undivided`
thread_local bool ends_process = false;  // this thread closed the gate

bool take_all() {
  Locks& list = locks();
  for (AtFork* each : list.all) {
    if (each->try_take()) {
      list.taken.push_back(each);
      continue;
    }
    for (AtFork* had : list.taken) had->give_back();
    list.taken.clear();
    return false;
  }
  return true;
}

void prepare() {
  // Undertakings first: to come to their end, they may have to go through the other gate.
  undertakings().shut(undertaken, kLongest);
  gate().shut(depth, kLongest);
  const auto until = std::chrono::steady_clock::now() + kLongest;
  locks().mutex.lock();
  while (!take_all() && std::chrono::steady_clock::now() < until) {
    // Whoever holds one may be making another.
    locks().mutex.unlock();
    std::this_thread::yield();
    locks().mutex.lock();
  }
  gate().mutex.lock();
  undertakings().mutex.lock();
}

void in_parent() {
  Locks& list = locks();
  for (AtFork* each : list.taken) each->give_back();
  list.taken.clear();
  list.mutex.unlock();
  gate().open_in_parent();
  undertakings().open_in_parent();
}

void in_child() {
  Locks& list = locks();
  for (AtFork* each : list.taken) each->renew();
  list.taken.clear();
  list.mutex.unlock();
  gate().open_in_child(depth);
  undertakings().open_in_child(undertaken);
}

[[maybe_unused]] const bool watching = [] {
  locks().taken.reserve(256);
  pthread_atfork(prepare, in_parent, in_child);
  return true;
}();

}  // namespace

void AtFork::watch() {
  std::lock_guard lock(locks().mutex);
  // A fork needs no memory. Twice as much each time: objects with locks may come by the thousand.
  if (locks().taken.capacity() <= locks().all.size()) locks().taken.reserve(2 * locks().all.size() + 1);
  locks().all.insert(this);
}

void AtFork::forget() {
  std::lock_guard lock(locks().mutex);
  locks().all.erase(this);
}

NoFork::NoFork() { gate().enter(depth, ends_process); }
NoFork::~NoFork() { gate().leave(depth); }
bool NoFork::held() { return depth > 0; }

void NoFork::close() {
  Gate& door = gate();
  std::unique_lock lock(door.mutex);
  door.closed = ends_process = true;
  door.changed.wait_for(lock, kLongest, [&] { return door.inside == (depth > 0 ? 1 : 0); });
}

Undivided::Undivided() { undertakings().enter(undertaken, true); }
Undivided::~Undivided() { undertakings().leave(undertaken); }

}  // namespace tenon::support
