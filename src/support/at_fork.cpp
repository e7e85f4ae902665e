#include "support/at_fork.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <new>
#include <thread>
#include <vector>

namespace tenon::support {
namespace {

// A program that forks while it holds one of our locks itself (from a callback) would wait for itself.
constexpr std::chrono::seconds kLongest{10};

struct Locks {
  std::mutex mutex;
  std::vector<AtFork*> all;
  std::vector<AtFork*> taken;  // by the fork at hand
};

struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  bool forking = false;
  bool closed = false;  // for all threads but the one that closed it
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

thread_local int depth = 0;              // of `NoFork` on this thread
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
  const auto until = std::chrono::steady_clock::now() + kLongest;
  Gate& door = gate();
  {
    std::unique_lock lock(door.mutex);
    door.changed.wait(lock, [&] { return !door.forking; });  // another thread forks
    door.forking = true;
    door.changed.wait_until(lock, until, [&] { return door.inside == (depth > 0 ? 1 : 0); });
  }
  locks().mutex.lock();
  while (!take_all() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  door.mutex.lock();
}

void in_parent() {
  Locks& list = locks();
  for (AtFork* each : list.taken) each->give_back();
  list.taken.clear();
  list.mutex.unlock();
  Gate& door = gate();
  door.forking = false;
  door.mutex.unlock();
  door.changed.notify_all();
}

void in_child() {
  Locks& list = locks();
  for (AtFork* each : list.taken) each->renew();
  list.taken.clear();
  new (&list.mutex) std::mutex;
  Gate& door = gate();
  new (&door.mutex) std::mutex;
  new (&door.changed) std::condition_variable;
  door.forking = false;
  door.inside = depth > 0 ? 1 : 0;
}

[[maybe_unused]] const bool watching = [] {
  locks().taken.reserve(256);
  pthread_atfork(prepare, in_parent, in_child);
  return true;
}();

}  // namespace

AtFork::AtFork() {
  std::lock_guard lock(locks().mutex);
  locks().all.push_back(this);
  locks().taken.reserve(locks().all.capacity());
}

AtFork::~AtFork() {
  std::lock_guard lock(locks().mutex);
  std::erase(locks().all, this);
}

NoFork::NoFork() {
  if (depth++ > 0) return;
  Gate& door = gate();
  std::unique_lock lock(door.mutex);
  door.changed.wait(lock, [&] { return !door.forking && (!door.closed || ends_process); });
  ++door.inside;
}

bool NoFork::held() { return depth > 0; }

void NoFork::close() {
  Gate& door = gate();
  std::unique_lock lock(door.mutex);
  door.closed = ends_process = true;
  door.changed.wait_for(lock, kLongest, [&] { return door.inside == (depth > 0 ? 1 : 0); });
}

NoFork::~NoFork() {
  if (--depth > 0) return;
  Gate& door = gate();
  std::lock_guard lock(door.mutex);
  --door.inside;
  door.changed.notify_all();
}

}  // namespace tenon::support
