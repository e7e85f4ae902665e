// What nodes have saved, seen from outside; and hooks of saved tensors: of one of them, of none, on the CPU.
//
//   Tensor w = ones({3}).set_requires_grad(), y = w * w;
//   Ref<autograd::Node> node = autograd::grad_fn(y);
//   std::vector<std::string> names = autograd::saved_names(node);  // "other", "self"
//   Tensor same = autograd::saved(node, "self");                   // w
//   autograd::register_saved_hooks(node, "self",
//                                  {.pack = [](const Tensor& tensor) -> std::any { return tensor * 2; },
//                                   .unpack = [](const std::any& kept) { return std::any_cast<Tensor>(kept) / 2; }});
//   y.sum().backward();
#pragma once

#include <tenon/autograd/saved_tensor.h>

#include <string>
#include <vector>

namespace tenon::autograd {

// The names that the gradient's formula has for them: arguments, and "result". Those of a `Function` are "0", "1", ….
// An Error if the graph was freed.
std::vector<std::string> saved_names(const Ref<Node>& node);
// One of them, as the node would read it: hooks unpack it. Undefined if none was given.
Tensor saved(const Ref<Node>& node, std::string_view name);
// Packs it with hooks of its own. An Error if it has hooks already, or if there is nothing to pack.
void register_saved_hooks(const Ref<Node>& node, std::string_view name, SavedTensorHooks hooks);

// While it lives, opening a scope of hooks on this thread is an Error with this text.
//
//   autograd::DisableSavedTensorHooks off("this part is differentiated by another thread");
class DisableSavedTensorHooks {
 public:
  explicit DisableSavedTensorHooks(std::string why);
  ~DisableSavedTensorHooks();
  DisableSavedTensorHooks(const DisableSavedTensorHooks&) = delete;
  DisableSavedTensorHooks& operator=(const DisableSavedTensorHooks&) = delete;

 private:
  std::string why_;
  const std::string* before_;
};

// While it lives, tensors that are saved on this thread wait in the memory of the CPU.
//
//   Tensor w = ones({3}).set_requires_grad();
//   Tensor y = [&] {
//     autograd::SaveOnCpu kept;
//     return (w * w).sum();
//   }();
//   y.backward();
class SaveOnCpu {
 public:
  SaveOnCpu();

 private:
  SavedTensorHooksGuard guard_;
};

}  // namespace tenon::autograd
