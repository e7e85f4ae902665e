// What autograd keeps with a tensor, and how other rooms ask for it.
#pragma once

#include <tenon/autograd/node.h>
#include <tenon/autograd/saved_tensor.h>
#include <tenon/autograd/traceable.h>

namespace tenon::autograd {

struct ViewStep;

// How a tensor came to be, where changing it in place while recording cannot be differentiated.
//
//   NoGrad off;
//   Tensor view = x.view({-1});
//   bool is_refused = autograd::meta_of(view)->creation == autograd::Creation::WithoutGrad;
//   bool has_history = autograd::meta_of(view)->follows_base();
enum class Creation : uint8_t {
  Ordinary,
  InFunction,    // in the forward of a `Function`, whose backward knows nothing of a change
  OneOfSeveral,  // a view, made with others by one operator (unbind, split)
  WithoutGrad,   // a view, made under no_grad: it has no history
  InInference,   // the same in inference mode
};

// Of a differentiable view: the tensor that it looks into, and how. In-place changes travel both ways: changing the
// view rewrites the history of the base, and after a change of the base the view's history is made anew when it is
// asked for.
struct ViewInfo {
  Tensor base;           // never itself a view with a ViewInfo
  Ref<ViewStep> chain;   // the last step from the base to this view; null: ask `chain_of`
  int64_t version = -1;  // of the data when the view's grad_fn was made
  uint32_t shape = 0;    // the base's `shape` when `chain` was made
};

// Of forward mode: how the tensor changes along the direction of a level.
//
//   forward_ad::DualLevel level;
//   Tensor dual = forward_ad::make_dual(x, ones_like(x));
//   const autograd::Tangent& tangent = *autograd::meta_of(dual)->tangent;
struct Tangent {
  Tensor value;
  uint64_t level = 0;  // a number that no other level has
};

class AutogradMeta final : public TensorSlot {
 public:
  bool requires_grad = false;  // as the user set it, on a leaf
  Tensor grad;
  Ref<Node> grad_fn;       // of a view possibly out of date: ask `autograd::grad_fn`
  uint32_t output_nr = 0;  // which input of `grad_fn` takes this tensor's gradient
  WeakRef<Node> accumulator;
  Ref<TensorHooks> hooks;
  Ref<TensorHooks> after_accumulation;  // of a leaf: called with it once its gradient has been added to
  bool retains_grad = false;
  Creation creation = Creation::Ordinary;
  uint32_t shape = 0;  // how often it was given another one in place (`t_`)
  std::unique_ptr<ViewInfo> view;
  std::unique_ptr<Tangent> tangent;
  WeakRef<SavedOriginal> saved;  // as `share_original` made it

  // Whether its history is that of the tensor which it views.
  bool follows_base() const { return view && (creation == Creation::Ordinary || creation == Creation::OneOfSeveral); }
};

AutogradMeta* meta_of(const Tensor& tensor);  // null if there is none
AutogradMeta& ensure_meta(const Tensor& tensor);

// The node that made this tensor; null for a leaf.
Ref<Node> grad_fn(const Tensor& tensor);
// Where the tensor's gradient goes: its grad_fn, or a leaf's accumulator; invalid if it does not require grad.
Edge gradient_edge(const Tensor& tensor);
// Makes `node` the origin of `tensor`, as its next output. Retained gradients and later hooks follow the new history.
void set_history(const Tensor& tensor, const Ref<Node>& node);
void set_history(const Tensor& tensor, Edge edge);
// Gives `tensor` a history that passes its gradient on to `leaf` as it is. A leaf may not be changed in place; a tensor
// that stands for one in a capture may have to be. Returns the node.
Ref<Node> pass_on(const Tensor& tensor, const Tensor& leaf);
// The tensor was changed in place by the operator of `node`, whose edge `self_edge` (or -1) leads to its old value.
// Rewrites the base's history if the tensor is a view.
void rebase_history(const Tensor& tensor, const Ref<Node>& node, int self_edge);
// An Error if changing it in place, while recording, cannot be differentiated: a leaf that requires grad, a view of
// one, or a view that was created as `Creation` says.
void check_inplace(const Tensor& tensor, std::string_view op_name, bool any_input_requires_grad);

// Removes a hook; dropping the handle does not.
class HookHandle {
 public:
  static constexpr int64_t kInsideCapture = -1;  // of a hook that is registered by every call of a compiled function
  HookHandle(Ref<TensorHooks> hooks, int64_t id) : hooks_(WeakRef<TensorHooks>(hooks)), id_(id) {}
  void remove() const;

 private:
  WeakRef<TensorHooks> hooks_;
  int64_t id_;
};

// The same for hooks of nodes.
class NodeHookHandle {
 public:
  NodeHookHandle(const Ref<Node>& node, int64_t id) : node_(WeakRef<Node>(node)), id_(id) {}
  void remove() const;

 private:
  WeakRef<Node> node_;
  int64_t id_;
};

namespace detail {
HookHandle add_hook(const Tensor& tensor, TensorHook hook, uint64_t kind);
HookHandle add_hook_after_accumulation(const Tensor& leaf, TensorHook hook);
}  // namespace detail

// Calls `hook` with the tensor's gradient whenever one is computed. It may return a tensor that replaces the gradient.
//
//   Tensor w = ones({3}).set_requires_grad();
//   autograd::HookHandle handle = autograd::register_hook(w, [](const Tensor& gradient) { return gradient * 2; });
//   w.sum().backward();
//   handle.remove();
template <typename F>
HookHandle register_hook(const Tensor& tensor, F hook) {
  uint64_t kind = detail::hook_kind(hook);
  if constexpr (std::is_void_v<std::invoke_result_t<F&, const Tensor&>>) {
    return detail::add_hook(
        tensor,
        [hook = std::move(hook)](const Tensor& gradient) mutable {
          hook(gradient);
          return Tensor();
        },
        kind);
  } else {
    return detail::add_hook(tensor, std::move(hook), kind);
  }
}

}  // namespace tenon::autograd

template <typename F>
auto tenon::Tensor::register_hook(F hook) const {
  return autograd::register_hook(*this, std::move(hook));
}

namespace tenon::autograd {

// Calls `hook` with a leaf whenever its gradient has been added to. The tensor may be changed then: its optimizer can
// step at once, and drop the gradient.
//
//   Tensor w = ones({3}).set_requires_grad();
//   autograd::register_post_accumulate_grad_hook(w, [](const Tensor& leaf) {
//     NoGrad off;
//     leaf.sub_(leaf.grad() * 0.1);
//     leaf.set_grad(Tensor());
//   });
//   w.sum().backward();
template <typename F>
HookHandle register_post_accumulate_grad_hook(const Tensor& leaf, F hook) {
  return detail::add_hook_after_accumulation(leaf, [hook = std::move(hook)](const Tensor& changed) mutable {
    hook(changed);
    return Tensor();
  });
}

// Hooks of a node: before it runs, with the gradients that arrive, which it may change; after it ran, with those that
// leave, which it may change, and those that arrived.
//
//   Tensor w = ones({3}).set_requires_grad();
//   Tensor y = w * 2;
//   autograd::register_prehook(autograd::grad_fn(y), [](std::vector<Tensor>& arriving) {
//     arriving[0] = arriving[0] * 3;
//   });
//   autograd::NodeHookHandle handle = autograd::register_posthook(
//       autograd::grad_fn(y), [](std::vector<Tensor>& leaving, const std::vector<Tensor>&) {
//         leaving[0] = leaving[0] + 1;
//       });
//   y.sum().backward();
//   handle.remove();
template <typename F>
NodeHookHandle register_prehook(const Ref<Node>& node, F hook) {
  uint64_t kind = detail::hook_kind(hook);
  return {node, node->add_pre_hook(std::move(hook), kind)};
}
template <typename F>
NodeHookHandle register_posthook(const Ref<Node>& node, F hook) {
  uint64_t kind = detail::hook_kind(hook);
  return {node, node->add_post_hook(std::move(hook), kind)};
}

}  // namespace tenon::autograd
