#include "run.h"

#include "autograd/current_walk.h"

#include <tenon/autograd/meta.h>

namespace tenon::compiled_autograd {

thread_local Run* Run::current_ = nullptr;

Run& Run::current() {
  TENON_ASSERT(current_, "a captured walk runs outside of a walk");
  return *current_;
}

namespace {

template <typename Entries>
auto hook_at(const Entries& entries, size_t at) -> decltype(entries[0].hook) {
  return at < entries.size() ? entries[at].hook : nullptr;
}

}  // namespace

autograd::TensorHook Run::tensor_hook(size_t step, size_t ordinal, size_t at) {
  auto [known, first] = tensor_hooks_.try_emplace({step, ordinal});
  if (first) {
    const autograd::Node& its = node(step);
    const autograd::TensorHooks* hooks = nullptr;
    if (ordinal != kOfLeaf) {
      if (ordinal < its.tensor_hooks().size()) hooks = its.tensor_hooks()[ordinal].second.get();
    } else if (const auto* end = dynamic_cast<const autograd::AccumulateGrad*>(&its)) {
      if (const autograd::AutogradMeta* meta = autograd::meta_of(end->leaf())) hooks = meta->hooks.get();
    }
    if (hooks) known->second = hooks->entries;
  }
  return hook_at(known->second, at);
}

autograd::PreHook Run::pre_hook(size_t step, size_t at) {
  return hook_at(pre_hooks_.try_emplace(step, node(step).pre_hooks()).first->second, at);
}

autograd::PostHook Run::post_hook(size_t step, size_t at) {
  return hook_at(post_hooks_.try_emplace(step, node(step).post_hooks()).first->second, at);
}

void land(Run& run, const Arrival& arrival, Tensor gradient) {
  autograd::Node& node = run.node(arrival.step);
  if (arrival.kind == Arrival::Kind::Accumulate) {
    static_cast<autograd::AccumulateGrad&>(node).accumulate(std::move(gradient));
    return;
  }
  for (const auto& [nr, weak] : node.retained()) {
    if (nr != arrival.input) continue;
    if (Ref<TensorImpl> impl = weak.lock()) autograd::keep_gradient(Tensor(impl), gradient);
  }
}

}  // namespace tenon::compiled_autograd
