// Work that a fork does not fall into: the child would find it half done, and nobody there to end it. A capture is
// such, and so is what is compiled when it is first needed.
//
// A fork waits for those that are under way, and others wait for the fork. Unlike `NoFork` (at_fork.h), whose gate a
// fork shuts after this one, it may contain all of that: threads that compile, libraries with locks of their own, the
// user's functions. A lock that is held for that long is taken inside, and need not be `ForkSafe` then.
#pragma once

namespace tenon::support {

class Undivided {
 public:
  Undivided();
  ~Undivided();
  Undivided(const Undivided&) = delete;
  Undivided& operator=(const Undivided&) = delete;
};

}  // namespace tenon::support
