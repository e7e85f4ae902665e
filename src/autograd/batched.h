// Tensors that stand for the entries of a batch.
//
// Such a tensor shows the sizes and strides of one entry, and holds the value, whose first dimension is the batch. The
// key `Batched` stands above all layers that work on values: a call is turned into calls on values before anything is
// captured, recorded or computed. Batches of batches are told apart by their level, a number that no other has; the
// one that was begun last is served first.
#pragma once

#include <tenon/core/tensor.h>
#include <tenon/dispatch/call.h>
#include <tenon/ops/row.h>

namespace tenon::autograd {

struct BatchedSlot final : TensorSlot {
  Tensor value;
  uint64_t level = 0;
};

// Null of a plain tensor.
inline const BatchedSlot* batched_slot(const Tensor& tensor) {
  return tensor.defined() ? static_cast<const BatchedSlot*>(tensor.impl()->batched.get()) : nullptr;
}
// The innermost level among these; 0 if none is batched.
uint64_t innermost_level(std::span<const Tensor> tensors);

// The entries of `value` along its first dimension.
Tensor make_batched(const Tensor& value, uint64_t level);
// The value of a tensor that is batched at this level, anything else as it is.
Tensor value_at(const Tensor& tensor, uint64_t level);
// The same; what is not batched at this level is repeated for `count` entries.
Tensor value_for_all(const Tensor& tensor, uint64_t level, const SymInt& count);
// How many entries there are in the first of these that is batched at the level.
SymInt entries_of(std::span<const Tensor> tensors, uint64_t level);

// Runs a call with arguments of this level (`batching_rules.cpp`).
void run_batched(dispatch::Call& call, uint64_t level);

}  // namespace tenon::autograd
