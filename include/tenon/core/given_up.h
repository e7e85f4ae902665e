// Tensors that a caller has no more use for.
//
// A function gets its tensors borrowed, and the caller holds them until it returns. One who gives them up lets whoever
// runs on them take them over, so that each is freed as soon as nothing needs it any more.
#pragma once

#include <tenon/core/tensor_fwd.h>

#include <span>

namespace tenon {

class Tensor;

namespace core {

// While it lives, whoever is called on this thread with exactly these tensors may take them. The innermost holds.
class GiveUp {
 public:
  explicit GiveUp(std::span<Tensor> tensors);
  ~GiveUp();
  GiveUp(const GiveUp&) = delete;
  GiveUp& operator=(const GiveUp&) = delete;

 private:
  friend std::span<Tensor> taken(std::span<const Tensor>);
  std::span<Tensor> tensors_;
  GiveUp* before_;
};

// The same tensors to take over, if the caller gave them up, and nobody can take them again; else none.
std::span<Tensor> taken(std::span<const Tensor> tensors);

}  // namespace core
}  // namespace tenon
