#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/autograd/node.h>
#include <tenon/autograd/saved_tensor.h>
#include <tenon/generated/ops.h>

namespace tenon::autograd {
namespace {

// Nobody else sees the data, and it lies as the leaf's does, so that later in-place updates run straight through both.
bool may_keep(const Tensor& gradient) {
  return gradient.impl()->use_count() == 1 && gradient.impl()->storage->use_count() == 1 && gradient.is_contiguous();
}

}  // namespace

AccumulateGrad::AccumulateGrad(const Tensor& leaf) : Node("torch::autograd::AccumulateGrad", Leaf{}), leaf_(leaf) {
  add_input(leaf);
}

void AccumulateGrad::accumulate(Tensor gradient) {
  if (!gradient.defined() || !leaf_.requires_grad()) return;
  Tensor& kept = ensure_meta(leaf_).grad;
  if (!kept.defined()) {
    if (grad_enabled()) {
      kept = clone(gradient, MemoryFormat::Contiguous);
    } else {
      kept = may_keep(gradient) ? std::move(gradient) : clone(gradient, MemoryFormat::Contiguous);
    }
  } else if (grad_enabled()) {
    // Out of place: the old sum may be part of a graph that is still to be differentiated.
    kept = kept + gradient;
  } else {
    kept.add_(gradient);
  }
}

void AccumulateGrad::run_hooks_after() {
  const AutogradMeta* meta = meta_of(leaf_);
  if (!meta || !meta->after_accumulation) return;
  Ref<TensorHooks> hooks = meta->after_accumulation;
  // A hook may remove itself or add others.
  for (const TensorHooks::Entry& each : std::vector(hooks->entries)) each.hook(leaf_);
}

std::vector<Tensor> AccumulateGrad::apply(std::vector<Tensor> gradients) {
  bool any = gradients[0].defined() && leaf_.requires_grad();
  accumulate(std::move(gradients[0]));
  if (any) run_hooks_after();
  return {};
}

void AccumulateGrad::run_tensor_hooks(std::vector<Tensor>& gradients) {
  if (const AutogradMeta* meta = meta_of(leaf_); meta && meta->hooks) {
    Ref<TensorHooks> hooks = meta->hooks;
    hooks->run(gradients[0]);
  }
}

void AccumulateGrad::drop_references() {
  Node::drop_references();
  leaf_ = Tensor();
}

}  // namespace tenon::autograd
