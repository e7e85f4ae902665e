// Which of the tensors that a graph takes look into the same memory: a graph that writes to one of them is compiled for
// the classes that it was captured with.
#pragma once

#include "input_ref.h"

#include <tenon/core/alias_classes.h>
#include <tenon/core/tensor.h>

namespace tenon::capture {

struct Frame;

class AliasGuard {
 public:
  AliasGuard() = default;
  // `inputs`: where a call finds the tensors; `written`: by input, whether the graph writes to its storage; `now`: the
  // tensors themselves.
  AliasGuard(std::vector<InputRef> inputs, const std::vector<bool>& written, std::span<const Tensor> now);

  bool check(const Frame& frame) const;
  // The inputs of a pair that overlaps where it did not, or the other way round.
  std::optional<core::AliasClasses::Difference> difference(const Frame& frame) const;
  const core::AliasClasses& classes() const { return classes_; }
  const InputRef& input(size_t position) const { return inputs_[position]; }

 private:
  SmallVector<const TensorImpl*, 16> inputs_of(const Frame& frame) const;

  std::vector<InputRef> inputs_;  // empty: nothing is written
  core::AliasClasses classes_;
};

}  // namespace tenon::capture
