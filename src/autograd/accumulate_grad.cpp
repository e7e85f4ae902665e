#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/autograd/node.h>
#include <tenon/autograd/saved_tensor.h>
#include <tenon/generated/ops.h>

#include <algorithm>

namespace tenon::autograd {
namespace {

// Whether the tensor's elements lie one beside the other, in whatever order of its dimensions.
bool is_dense(const Tensor& tensor) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride and size
  for (int64_t dim = 0; dim < tensor.dim(); ++dim)
    if (int64_t size = tensor.size(dim); size != 1) dims.emplace_back(tensor.stride(dim), size);
  std::sort(dims.begin(), dims.end());
  int64_t next = 1;
  for (auto [stride, size] : dims) {
    if (stride != next) return false;
    next *= size;
  }
  return true;
}

// A leaf and its gradient lie alike if the leaf is dense, so that updates in place run straight through both.
bool lies_as(const Tensor& gradient, const Tensor& leaf) {
  if (leaf.is_contiguous() || !is_dense(leaf)) return gradient.is_contiguous();
  for (int64_t dim = 0; dim < leaf.dim(); ++dim)
    if (leaf.size(dim) != 1 && gradient.stride(dim) != leaf.stride(dim)) return false;
  return true;
}

Tensor copy_that_lies_as(const Tensor& leaf, const Tensor& gradient) {
  if (leaf.is_contiguous() || !is_dense(leaf)) return clone(gradient, MemoryFormat::Contiguous);
  return empty_like(leaf.detach()).copy_(gradient);
}

// Nobody else sees the data.
bool may_keep(const Tensor& gradient, const Tensor& leaf) {
  return gradient.impl()->use_count() == 1 && gradient.impl()->storage->use_count() == 1 && lies_as(gradient, leaf);
}

}  // namespace

AccumulateGrad::AccumulateGrad(const Tensor& leaf) : Node("torch::autograd::AccumulateGrad", Leaf{}), leaf_(leaf) {
  add_input(leaf);
}

void AccumulateGrad::accumulate(Tensor gradient) {
  if (!gradient.defined() || !leaf_.requires_grad()) return;
  Tensor& kept = ensure_meta(leaf_).grad;
  if (!kept.defined()) {
    bool keep = !grad_enabled() && may_keep(gradient, leaf_);
    kept = keep ? std::move(gradient) : copy_that_lies_as(leaf_, gradient);
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
