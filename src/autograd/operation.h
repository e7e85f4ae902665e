// One call of an operator as autograd counts them.
#pragma once

#include <tenon/autograd/grad_mode.h>

#include "dispatch/profile_scope.h"
#include "support/origin.h"

namespace tenon::autograd {

// Operators and nodes of a thread share one count, so that a node's number is above that of the operator that made it.
uint64_t next_sequence();

// Gives the call its number. What backward computes without recording belongs to the operator that it differentiates.
class Operation {
 public:
  Operation() : before_(current_origin()) {
    if (before_.backward && !grad_enabled()) return;
    Origin& origin = current_origin();
    origin.sequence = static_cast<int64_t>(next_sequence());
    origin.backward = false;
    if (dispatch::detail::profiling.load(std::memory_order_relaxed)) [[unlikely]]
      dispatch::detail::note_sequence(origin.sequence);
  }
  ~Operation() { current_origin() = before_; }
  Operation(const Operation&) = delete;

 private:
  Origin before_;
};

}  // namespace tenon::autograd
