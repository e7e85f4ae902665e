#include <tenon/autograd/multi_grad_hook.h>

#include "autograd/running_walk.h"

#include <algorithm>

namespace tenon::autograd {
namespace {

// Hooks are held by what they watch, so it is known weakly: a node, or a leaf, whose accumulator may be made anew.
struct Watched {
  WeakRef<Node> node;
  WeakRef<TensorImpl> leaf;

  bool is_reached(const WalkPlan& plan) const {
    Ref<Node> found = node.lock();
    if (Ref<TensorImpl> impl = leaf.lock()) found = gradient_edge(Tensor(impl)).node;
    uint32_t at = found ? plan.find(found.get()) : WalkPlan::kNone;
    return at != WalkPlan::kNone && (plan.entries[at].runs || plan.entries[at].captured);
  }
};

// What has come so far in one walk.
struct Gathered {
  std::vector<Tensor> gradients;
  size_t missing = 0;
};

struct Together {
  std::vector<Watched> watched;
  std::function<void(const std::vector<Tensor>&)> hook;

  void arrive(size_t at, const Tensor& gradient) {
    RunningWalk& walk = *current_walk();
    auto [known, first] = walk.notes.try_emplace(this, Gathered{});
    auto& gathered = std::any_cast<Gathered&>(known->second);
    if (first) {
      gathered.gradients.resize(watched.size());
      gathered.missing = static_cast<size_t>(std::count_if(
          watched.begin(), watched.end(), [&](const Watched& each) { return each.is_reached(walk.plan); }));
    }
    gathered.gradients[at] = gradient;
    if (--gathered.missing == 0) hook(gathered.gradients);
  }
};

Watched watch(const Tensor& tensor) {
  Watched made;
  if (tensor.is_leaf())
    made.leaf = WeakRef<TensorImpl>(tensor.ref());
  else
    made.node = WeakRef<Node>(grad_fn(tensor));
  return made;
}

}  // namespace

MultiGradHandle register_multi_grad_hook(const std::vector<Tensor>& tensors,
                                         std::function<void(const std::vector<Tensor>&)> hook) {
  auto together = std::make_shared<Together>();
  together->hook = std::move(hook);
  std::vector<HookHandle> handles;
  for (size_t at = 0; at < tensors.size(); ++at) {
    handles.push_back(
        register_hook(tensors[at], [together, at](const Tensor& gradient) { together->arrive(at, gradient); }));
    together->watched.push_back(watch(tensors[at]));
  }
  return MultiGradHandle(std::move(handles));
}

MultiGradHandle register_any_grad_hook(const std::vector<Tensor>& tensors, std::function<void(const Tensor&)> hook) {
  auto shared = std::make_shared<std::function<void(const Tensor&)>>(std::move(hook));
  std::vector<HookHandle> handles;
  for (const Tensor& tensor : tensors)
    handles.push_back(register_hook(tensor, [shared](const Tensor& gradient) {
      if (current_walk()->notes.try_emplace(shared.get()).second) (*shared)(gradient);
    }));
  return MultiGradHandle(std::move(handles));
}

}  // namespace tenon::autograd
