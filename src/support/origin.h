// Where the operator calls of this thread come from: the module that is being called, and the operator that is being
// run or differentiated.
#pragma once

#include <cstdint>
#include <string>

namespace tenon {

struct Origin {
  int64_t sequence = -1;                // of an operator on this thread; -1: none is running
  bool backward = false;                // its gradient is being computed
  const std::string* module = nullptr;  // path of the innermost module whose call runs; null: none
};

Origin& current_origin();

// Another origin until the end of the scope.
class OriginScope {
 public:
  explicit OriginScope(Origin origin) : before_(current_origin()) { current_origin() = origin; }
  ~OriginScope() { current_origin() = before_; }
  OriginScope(const OriginScope&) = delete;

 private:
  Origin before_;
};

}  // namespace tenon
