// What other threads are at while one forks. The child has only that one thread: a lock that another held at that
// moment would stay taken there for ever.
//
// A `ForkSafe` mutex is free in the child: a fork waits until it has them all. They are tried, not waited for, and
// given back if one is taken, so that no order among them is needed. `NoFork` is for what takes locks that are not ours
// and takes long (LLVM): a fork waits for those inside, and others wait for the fork. Inside, nobody waits for a thread
// that has yet to come in.
#pragma once

#include <mutex>

namespace tenon::support {

// One lock, as a fork sees it.
class AtFork {
 public:
  AtFork() = default;
  virtual ~AtFork() = default;
  AtFork(const AtFork&) = delete;
  AtFork& operator=(const AtFork&) = delete;

  virtual bool try_take() = 0;
  virtual void give_back() = 0;  // in the parent, or where another could not be had
  virtual void renew() = 0;      // in the child: it is another thread than the one that took it

 protected:
  // From here on a fork on another thread may call the above: at the end of the last constructor, and at the beginning
  // of the first destructor.
  void watch();
  void forget();
};

template <typename Mutex>
class ForkSafe : public Mutex {
 public:
  ForkSafe() = default;

 private:
  struct Lock final : AtFork {
    explicit Lock(Mutex& of) : mutex(of) { watch(); }
    ~Lock() override { forget(); }
    bool try_take() override { return mutex.try_lock(); }
    void give_back() override { mutex.unlock(); }
    // (Given back too, for sanitizers, which do not see that it is made anew.)
    void renew() override {
      mutex.unlock();
      new (&mutex) Mutex;
    }
    Mutex& mutex;
  };
  Lock lock_{*this};
};

class NoFork {
 public:
  NoFork();
  ~NoFork();
  NoFork(const NoFork&) = delete;
  NoFork& operator=(const NoFork&) = delete;

  // Whether this thread is inside.
  static bool held();

  // The process ends, and so do the libraries' own static objects: waits for threads that are inside, and keeps others
  // out for good. (They would go on computing until the very end; the process does not wait for them.)
  static void close();
};

}  // namespace tenon::support
