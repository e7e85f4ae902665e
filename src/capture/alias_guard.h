// Which of the tensors that a graph takes look into the same memory: what a graph that writes to one of them rests on.
//
// Two tensors overlap if they share a storage and the ranges of bytes that they reach do; tensors that overlap,
// directly or through others, form a class. A graph is compiled for the classes that it was captured with. Nothing is
// asked of a graph that writes to none of its inputs, nor of inputs whose storage nobody writes to.
#pragma once

#include "input_ref.h"

#include <tenon/core/tensor.h>

#include <optional>
#include <span>
#include <vector>

namespace tenon::capture {

struct Frame;

class AliasGuard {
 public:
  AliasGuard() = default;
  // `inputs`: where a call finds the tensors; `written`: by input, whether the graph writes to its storage; `now`: the
  // tensors themselves.
  AliasGuard(std::vector<InputRef> inputs, const std::vector<bool>& written, std::span<const Tensor> now);

  bool check(const Frame& frame) const;
  // The inputs of a pair that overlaps where it did not, or the other way round; by position. One that overlaps itself
  // is both.
  struct Difference {
    size_t first, second;
    bool overlap_now;
  };
  std::optional<Difference> difference(const Frame& frame) const;
  // Whether an input that is written overlaps another one, or itself.
  bool any_overlap() const { return any_overlap_; }
  // The inputs of each class of more than one, by position.
  std::vector<std::vector<size_t>> classes() const;
  const InputRef& input(size_t position) const { return inputs_[position]; }

 private:
  std::vector<int32_t> classes_now(const Frame& frame) const;

  std::vector<InputRef> inputs_;   // empty: nothing is written
  std::vector<bool> written_;      // by input
  std::vector<size_t> writes_;     // positions of those that are written
  std::vector<int32_t> class_of_;  // by input: the first input of its class, or -1 - the input itself
  bool any_overlap_ = false;
};

}  // namespace tenon::capture
