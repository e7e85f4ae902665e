#include <tenon/autograd/meta.h>

#include "autograd/copy_slices.h"
#include "autograd/row_node.h"
#include "core/effects.h"
#include "support/at_fork.h"
#include "support/out_of_memory.h"

#include <mutex>

namespace tenon::autograd {

AutogradMeta* meta_of(const Tensor& tensor) { return static_cast<AutogradMeta*>(tensor.impl()->autograd.get()); }

AutogradMeta& ensure_meta(const Tensor& tensor) {
  if (!tensor.impl()->autograd) tensor.impl()->autograd = std::make_unique<AutogradMeta>();
  return *meta_of(tensor);
}

namespace {

// What is said of a view that is changed, or was (`by_others`: through its base, or another view of that).
[[noreturn]] void refuse_change(const AutogradMeta& meta, std::string_view op_name, bool by_others) {
  std::string_view how = by_others ? "its base or another view of its base has been" : "is being";
  std::string which = meta.grad_fn ? fmt::format("Output {} of {}", meta.output_nr, meta.grad_fn->name()) : "";
  auto made_in = [&](std::string_view mode) {
    return fmt::format("{} {} mode and {} modified inplace with grad mode enabled",
                       which.empty() ? "A view was created in" : which + " is a view of a view which was created in",
                       mode, how);
  };
  auto is_view = [&] {
    return fmt::format("{} is a view and {} modified inplace.", which.empty() ? "It" : which, how);
  };
  switch (meta.creation) {
    case Creation::WithoutGrad:
      fail("[{}] {}: make the view and change it both inside the no_grad block, or both outside", op_name,
           made_in("no_grad"));
    case Creation::InInference:
      fail("[{}] {}: make the view and change it both inside the inference_mode block, or both outside", op_name,
           made_in("inference"));
    case Creation::InFunction:
      fail(
          "[{}] {} This view was created inside a custom Function (or is an argument that it returned as it is), whose "
          "backward knows nothing of the change: return a clone() from it, or mark_dirty() what it changes itself",
          op_name, is_view());
    default:
      fail(
          "[{}] {} This view is the output of a function that returns multiple views. Those share one step of "
          "backward, and cannot be changed: compute a new tensor, or take the pieces one by one (select, narrow)",
          op_name, is_view());
  }
}

}  // namespace

Ref<Node> grad_fn(const Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  AutogradMeta* meta = meta_of(tensor);
  if (!meta) return nullptr;
  if (ViewInfo* view = meta->view.get()) {
    // The data changed since: through the base, another view, or this one. The base's history knows how.
    if (int64_t now = tensor.version(); view->version != now) {
      // (Where mutation has become values, what was refused was refused before.)
      bool is_refused = (meta->creation == Creation::OneOfSeveral || meta->creation == Creation::InFunction) &&
                        !tensor.impl()->keys.has(DispatchKey::Functionalize);
      if (is_refused && view->base.requires_grad()) refuse_change(*meta, "grad_fn", true);
      if (meta->follows_base()) {
        bool has_history = view->base.requires_grad();
        if (has_history)
          set_history(tensor, view_history(gradient_edge(view->base), chain_of(tensor).get(), InputMeta::of(tensor)));
        // (Of a view without a history nothing is noted: asking must not change what is said once the base has one.)
        if (has_history || meta->grad_fn) view->version = now;
      }
    }
  }
  return meta->grad_fn;
}

namespace {

Ref<Node> accumulator_of(const Tensor& leaf) {
  // Threads that share a parameter must agree on its accumulator.
  static auto& mutex = *new support::ForkSafe<std::mutex>;
  std::lock_guard lock(mutex);
  AutogradMeta& meta = ensure_meta(leaf);
  if (Ref<Node> known = meta.accumulator.lock()) return known;
  Ref<Node> made = make_ref<AccumulateGrad>(leaf);
  meta.accumulator = WeakRef<Node>(made);
  return made;
}

}  // namespace

Edge gradient_edge(const Tensor& tensor) {
  if (Ref<Node> node = grad_fn(tensor)) return {node, meta_of(tensor)->output_nr};
  const AutogradMeta* meta = meta_of(tensor);
  if (meta && meta->requires_grad) return {accumulator_of(tensor), 0};
  return {};
}

void set_history(const Tensor& tensor, Edge edge) {
  AutogradMeta& meta = ensure_meta(tensor);
  if (!meta.saved.expired()) let_go_of_original(tensor);
  if (meta.retains_grad) {
    if (meta.grad_fn) meta.grad_fn->drop_retained(meta.output_nr);
    if (edge.node) edge.node->set_retained(edge.input_nr, WeakRef<TensorImpl>(tensor.ref()));
  }
  meta.hooks = nullptr;  // those registered so far belong to the value before
  meta.output_nr = edge.input_nr;
  meta.grad_fn = std::move(edge.node);
}

void set_history(const Tensor& tensor, const Ref<Node>& node) { set_history(tensor, {node, node->add_input(tensor)}); }

void rebase_history(const Tensor& tensor, const Ref<Node>& node, int self_edge) {
  AutogradMeta& meta = ensure_meta(tensor);
  if (!meta.view) {
    set_history(tensor, node);
    return;
  }
  ViewInfo& view = *meta.view;
  node->add_input(tensor);
  Ref<ViewStep> chain = chain_of(tensor);
  Ref<Node> outer = make_ref<CopySlices>(view.base, with_inverse(view.base, tensor, chain), node, self_edge);
  if (auto* row_node = dynamic_cast<RowNode*>(node.get())) row_node->set_outer(outer, std::move(chain));
  set_history(view.base, {outer, 0});
  view.version = -1;  // its own history comes from the base's, whether or not the version moved
  grad_fn(tensor);
}

void check_inplace(const Tensor& tensor, std::string_view op_name, bool any_input_requires_grad) {
  const AutogradMeta* meta = meta_of(tensor);
  if (!meta) return;
  bool base_requires_grad = meta->view && meta->view->base.requires_grad();
  if (meta->creation != Creation::Ordinary && (base_requires_grad || any_input_requires_grad))
    refuse_change(*meta, op_name, false);
  if (!meta->view) {
    TENON_CHECK(!meta->requires_grad || meta->grad_fn,
                "[{}] a leaf Variable that requires grad is being used in an in-place operation: use no_grad()",
                op_name);
    return;
  }
  // (A view that was itself made a leaf, and views of it, require grad where the base does not.)
  TENON_CHECK((!base_requires_grad && !tensor.requires_grad()) || grad_fn(meta->view->base),
              "[{}] a view of a leaf Variable that requires grad is being used in an in-place operation: use no_grad()",
              op_name);
}

void HookHandle::remove() const {
  TENON_CHECK(
      id_ != kInsideCapture,
      "[remove] a hook that a compiled function registered cannot be removed by it: register and remove it outside");
  if (Ref<TensorHooks> hooks = hooks_.lock())
    std::erase_if(hooks->entries, [&](const TensorHooks::Entry& entry) { return entry.id == id_; });
}

void NodeHookHandle::remove() const {
  if (Ref<Node> node = node_.lock()) node->remove_hook(id_);
}

HookHandle detail::add_hook_after_accumulation(const Tensor& leaf, TensorHook hook) try {
  TENON_CHECK(leaf.requires_grad(), "[register_post_accumulate_grad_hook] expected a tensor that requires grad, got {}",
              leaf.description());
  TENON_CHECK(
      leaf.is_leaf(),
      "[register_post_accumulate_grad_hook] post accumulate grad hooks cannot be registered on non-leaf tensors, "
      "got {}",
      leaf.description());
  if (const core::EffectInterceptor* instead = core::effect_interceptor()) {
    (*instead)({"register_post_accumulate_grad_hook() registers a hook",
                {&leaf, 1},
                [hook = std::move(hook)](std::span<const Tensor> tensors) {
                  add_hook_after_accumulation(tensors[0], hook);
                  return std::vector<Tensor>();
                }});
    return HookHandle(nullptr, HookHandle::kInsideCapture);
  }
  AutogradMeta& meta = ensure_meta(leaf);
  if (!meta.after_accumulation) meta.after_accumulation = make_ref<TensorHooks>();
  int64_t id = meta.after_accumulation->add(std::move(hook), 0);
  return HookHandle(meta.after_accumulation, id);
} catch (...) {
  support::rethrow_named("register_post_accumulate_grad_hook");
}

HookHandle detail::add_hook(const Tensor& tensor, TensorHook hook, uint64_t kind) try {
  TENON_CHECK(tensor.requires_grad(), "[register_hook] expected a tensor that requires grad, got {}",
              tensor.description());
  if (const core::EffectInterceptor* instead = core::effect_interceptor()) {
    (*instead)({.why = "register_hook() registers a hook",
                .tensors = {&tensor, 1},
                .action =
                    [hook = std::move(hook), kind](std::span<const Tensor> tensors) {
                      add_hook(tensors[0], hook, kind);
                      return std::vector<Tensor>();
                    },
                .watches_gradients = true});
    return HookHandle(nullptr, HookHandle::kInsideCapture);
  }
  Ref<Node> node = grad_fn(tensor);
  AutogradMeta& meta = ensure_meta(tensor);
  if (!meta.hooks) {
    meta.hooks = make_ref<TensorHooks>();
    if (node) node->add_tensor_hooks(meta.output_nr, meta.hooks);
  }
  int64_t id = meta.hooks->add(std::move(hook), kind);
  return HookHandle(meta.hooks, id);
} catch (...) {
  support::rethrow_named("register_hook");
}

}  // namespace tenon::autograd
