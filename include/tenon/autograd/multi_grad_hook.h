// One hook for the gradients of several tensors.
//
//   Tensor a = ones({2}).set_requires_grad(), b = ones({3}).set_requires_grad();
//   autograd::MultiGradHandle handle = autograd::register_multi_grad_hook(
//       {a, b}, [](const std::vector<Tensor>& gradients) { bool came = gradients[0].defined(); });
//   autograd::register_any_grad_hook({a, b}, [](const Tensor& gradient) { std::string of = gradient.description(); });
//   (a.sum() + b.sum()).backward();
//   handle.remove();
#pragma once

#include <tenon/autograd/meta.h>

#include <functional>
#include <vector>

namespace tenon::autograd {

// Removes the hook from all of them.
class MultiGradHandle {
 public:
  explicit MultiGradHandle(std::vector<HookHandle> handles) : handles_(std::move(handles)) {}
  void remove() const {
    for (const HookHandle& each : handles_) each.remove();
  }

 private:
  std::vector<HookHandle> handles_;
};

// Called once a walk, when the gradients of all those that it comes to are there; undefined ones for the others.
MultiGradHandle register_multi_grad_hook(const std::vector<Tensor>& tensors,
                                         std::function<void(const std::vector<Tensor>&)> hook);
// Called once a walk, with the first of their gradients.
MultiGradHandle register_any_grad_hook(const std::vector<Tensor>& tensors, std::function<void(const Tensor&)> hook);

}  // namespace tenon::autograd
