// For programs that compute results and no gradients: nothing is recorded until the end of the scope.
//
//   Tensor weight = ones({3}).set_requires_grad();
//   InferenceMode on;
//   Tensor result = weight * 2;
//   bool plain = InferenceMode::is_enabled() && !result.requires_grad();
//   {
//     InferenceMode off(false);  // gradients once more
//     (weight * 2).sum().backward();
//   }
//
// Tensors that are made meanwhile are ordinary ones. (PyTorch's may not take part in gradients later; ours may, as
// constants.)
#pragma once

#include <tenon/autograd/grad_mode.h>

namespace tenon::autograd {

class InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true);
  ~InferenceMode();
  InferenceMode(const InferenceMode&) = delete;
  InferenceMode& operator=(const InferenceMode&) = delete;
  // Whether the innermost one on this thread is on.
  static bool is_enabled();

 private:
  bool before_;
  SetGradMode grad_;
};

}  // namespace tenon::autograd

namespace tenon {
using autograd::InferenceMode;
}  // namespace tenon
