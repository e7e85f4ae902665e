// Forward mode below its interface: who has a tangent, and calls that give their results theirs.
#pragma once

#include "support/thread_context.h"

#include <tenon/autograd/forward_ad.h>
#include <tenon/dispatch/call.h>
#include <tenon/ops/row.h>

#include <functional>

namespace tenon::autograd {

inline const forward_ad::DualLevel* dual_level() {
  return support::thread_context.get<const forward_ad::DualLevel>(support::ContextSlot::DualLevel);
}

// Undefined if it has none at this level. A view of a tensor that got one has its part of it.
Tensor tangent_of(const Tensor& tensor);
void set_tangent(const Tensor& tensor, const Tensor& tangent);
bool has_tangents(std::span<const dispatch::Value> arguments);

// An Error if an argument has a tangent: the operator knows nothing of them.
void refuse_tangents(const dispatch::Call& call);
// Runs the call by `values`, and gives what it computes or writes tangents. `row`: null if it is not in the table.
void run_with_tangents(dispatch::Call& call, const ops::Row* row, const std::function<void()>& values);

// While it lives, the thread computes as if there were no tangents.
class WithoutTangents {
  support::SwapSlot off_{support::ContextSlot::DualLevel, nullptr};
};

}  // namespace tenon::autograd
