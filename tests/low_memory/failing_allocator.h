// Allocations that fail when a test says so: `operator new` of the whole process, and the memory of tensors.
//
// What the program itself allocates is left alone (a test's own vectors are not what is tested), and so is what happens
// inside of LLVM and oneDNN (`support::NoFork::held`): LLVM is built without exceptions, so that one thrown through it
// would leave it in pieces.
#pragma once

#include <cstdint>
#include <string>

namespace tenon::low_memory {

// Whose allocations fail.
enum class Who : uint8_t {
  AllThreads,
  ThisThread,  // for a test with threads of its own: an Error that one of those lets out ends the process, rightly
};

// While it lives, allocations are counted, and those from number `first` on (from 0) fail, `length` of them. One test
// at a time.
class Failing {
 public:
  Failing(int64_t first, int64_t length, Who who = Who::AllThreads);
  ~Failing();
  Failing(const Failing&) = delete;
  Failing& operator=(const Failing&) = delete;

  static int64_t counted();  // by the one that lives, or lived last
  static int64_t failed();
  static std::string where();  // the functions that the last failure came from, innermost first
};

// Allocations that nobody has given back.
int64_t live_allocations();

}  // namespace tenon::low_memory
