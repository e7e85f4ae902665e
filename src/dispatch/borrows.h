// Which calls are running, for values that are copies of a call's arguments. A call has a slot of its thread, by depth,
// and the slot counts its calls: a copy notes both, and is good while the count stands.
#pragma once

#include <cstdint>
#include <string>

namespace tenon::dispatch {

// One call; values that the thread copies are of the innermost one.
class BorrowScope {
 public:
  explicit BorrowScope(const std::string& op);
  ~BorrowScope();
  BorrowScope(const BorrowScope&) = delete;

 private:
  uint16_t slot_, before_;
  std::string op_;
};

}  // namespace tenon::dispatch
