// Which of the tensors that something takes look into the same memory: what code that writes to one of them rests on.
//
// Two tensors overlap if they share a storage and the ranges of bytes that they reach do; tensors that overlap,
// directly or through others, form a class. Nothing is asked where none is written, nor of tensors whose storage nobody
// writes to.
#pragma once

#include <tenon/core/tensor_fwd.h>

#include <optional>
#include <span>
#include <vector>

namespace tenon::core {

class AliasClasses {
 public:
  using Tensors = std::span<const TensorImpl* const>;

  AliasClasses() = default;
  // `written`: by tensor, whether its storage is written to.
  AliasClasses(std::vector<bool> written, Tensors now);
  // As they were (`written()`, `class_of()`).
  AliasClasses(std::vector<bool> written, std::vector<int32_t> class_of);

  // Whether they form the same classes.
  bool check(Tensors tensors) const;
  // A pair that overlaps where it did not, or the other way round; by position. One that overlaps itself is both.
  struct Difference {
    size_t first, second;
    bool overlap_now;
  };
  std::optional<Difference> difference(Tensors tensors) const;
  // Whether a tensor that is written overlaps another one, or itself.
  bool any_overlap() const { return any_overlap_; }
  // The members of each class of more than one, by position.
  std::vector<std::vector<size_t>> classes() const;
  // Nothing is written.
  bool empty() const { return writes_.empty(); }
  size_t size() const { return class_of_.size(); }
  const std::vector<bool>& written() const { return written_; }
  const std::vector<int32_t>& class_of() const { return class_of_; }

 private:
  void note();

  std::vector<bool> written_;      // by tensor
  std::vector<size_t> writes_;     // positions of those that are written
  std::vector<int32_t> class_of_;  // by tensor: the first of its class, or -1 - the tensor itself
  bool any_overlap_ = false;
};

}  // namespace tenon::core
