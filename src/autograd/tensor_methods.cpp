// The methods of Tensor that belong to autograd.
#include "autograd/batched.h"
#include "core/effects.h"
#include "support/out_of_memory.h"

#include <tenon/autograd/engine.h>
#include <tenon/autograd/meta.h>
#include <tenon/support/warnings.h>
#include <tenon/sym/size_rules.h>

namespace tenon {

using autograd::AutogradMeta;

namespace {

void need(const Tensor& tensor, const char* what) {
  TENON_CHECK(tensor.defined(), "[{}] expected a tensor, got an undefined one", what);
}

}  // namespace

bool Tensor::requires_grad() const {
  need(*this, "requires_grad");
  const AutogradMeta* meta = autograd::meta_of(*this);
  if (!meta) return autograd::batched_slot(*this) && autograd::batched_slot(*this)->value.requires_grad();
  if (meta->requires_grad) return true;
  // A piece of a tensor that was changed refuses to tell its history; that it has one is no secret.
  if (meta->creation != autograd::Creation::Ordinary && meta->grad_fn) return true;
  if (meta->creation == autograd::Creation::OneOfSeveral && meta->view && !impl()->keys.has(DispatchKey::Functionalize))
    return meta->view->base.requires_grad();
  return static_cast<bool>(autograd::grad_fn(*this));
}

const Tensor& Tensor::set_requires_grad(bool value) const try {
  need(*this, "set_requires_grad");
  TENON_CHECK(!value || is_floating_point(), "[set_requires_grad] only floating point tensors can require grad, got {}",
              description());
  if (const autograd::BatchedSlot* batch = autograd::batched_slot(*this)) {
    batch->value.set_requires_grad(value);
    return *this;
  }
  if (!is_leaf()) {
    TENON_CHECK(value,
                "[set_requires_grad] {} is the result of {} and requires grad: use detach() for one that does not",
                description(), autograd::grad_fn(*this)->name());
    return *this;
  }
  if (!value && !autograd::meta_of(*this)) return *this;
  if (const core::EffectInterceptor* instead = core::effect_interceptor()) {
    if (autograd::ensure_meta(*this).requires_grad == value) return *this;
    Tensor seen = (*instead)(
        {"set_requires_grad() makes or unmakes a leaf",
         {this, 1},
         [value](std::span<const Tensor> tensors) { return std::vector{tensors[0].set_requires_grad(value)}; },
         true})[0];
    autograd::ensure_meta(seen).requires_grad = value;  // the function sees it, too
    return *this;
  }
  autograd::let_go_of_original(*this);
  autograd::ensure_meta(*this).requires_grad = value;
  return *this;
} catch (...) {
  support::rethrow_named("set_requires_grad");
}

bool Tensor::is_leaf() const {
  need(*this, "is_leaf");
  if (const autograd::BatchedSlot* batch = autograd::batched_slot(*this)) return batch->value.is_leaf();
  const AutogradMeta* meta = autograd::meta_of(*this);
  if (meta && meta->creation != autograd::Creation::Ordinary && meta->grad_fn) return false;  // as above
  return !autograd::grad_fn(*this);
}

Tensor Tensor::grad() const {
  need(*this, "grad");
  if (const core::EffectInterceptor* instead = core::effect_interceptor())
    return (*instead)({"grad() reads a gradient", {this, 1}, [](std::span<const Tensor> tensors) {
                         return std::vector{tensors[0].grad()};
                       }})[0];
  const AutogradMeta* meta = autograd::meta_of(*this);
  if (!meta) return Tensor();
  if (meta->grad_fn && !meta->retains_grad && !meta->grad.defined())
    warn(
        "[grad] the gradient of a tensor that is no leaf is read, and none is kept there: call retain_grad() on it "
        "before backward()");
  return meta->grad;
}

void Tensor::set_grad(const Tensor& gradient) const {
  need(*this, "set_grad");
  if (const core::EffectInterceptor* instead = core::effect_interceptor()) {
    std::vector<Tensor> given = {*this};
    if (gradient.defined()) given.push_back(gradient);
    (*instead)({"set_grad() changes a gradient", given, [](std::span<const Tensor> tensors) {
                  tensors[0].set_grad(tensors.size() > 1 ? tensors[1] : Tensor());
                  return std::vector<Tensor>();
                }});
    return;
  }
  if (!gradient.defined()) {
    if (AutogradMeta* meta = autograd::meta_of(*this)) meta->grad = Tensor();
    return;
  }
  TENON_CHECK(!gradient.is(*this), "[set_grad] a tensor cannot be its own gradient");
  autograd::InputMeta expected = autograd::InputMeta::of(*this), given = autograd::InputMeta::of(gradient);
  bool fits =
      expected.dtype == given.dtype && expected.device == given.device && expected.sizes.size() == given.sizes.size();
  for (size_t dim = 0; fits && dim < given.sizes.size(); ++dim) fits = same_size(expected.sizes[dim], given.sizes[dim]);
  TENON_CHECK(fits, "[set_grad] expected a gradient {} on {}, got {} on {}", expected.str(), expected.device.str(),
              given.str(), given.device.str());
  autograd::ensure_meta(*this).grad = gradient;
}

void Tensor::backward(const std::optional<Tensor>& gradient, bool retain_graph, bool create_graph) const try {
  need(*this, "backward");
  std::vector<Tensor> roots{*this}, gradients;
  if (gradient) gradients.push_back(*gradient);
  autograd::backward(roots, gradients, retain_graph, create_graph);
} catch (...) {
  support::rethrow_named("backward");
}

void Tensor::retain_grad() const {
  need(*this, "retain_grad");
  TENON_CHECK(requires_grad(), "[retain_grad] expected a tensor that requires grad, got {}", description());
  if (const core::EffectInterceptor* instead = core::effect_interceptor()) {
    (*instead)({.why = "retain_grad() asks for a gradient to be kept",
                .tensors = {this, 1},
                .action =
                    [](std::span<const Tensor> tensors) {
                      tensors[0].retain_grad();
                      return std::vector<Tensor>();
                    },
                .watches_gradients = true});
    return;
  }
  Ref<autograd::Node> node = autograd::grad_fn(*this);
  AutogradMeta& meta = autograd::ensure_meta(*this);
  if (!node || meta.retains_grad) return;
  meta.retains_grad = true;
  node->set_retained(meta.output_nr, WeakRef<TensorImpl>(ref()));
}

int64_t Tensor::output_nr() const {
  need(*this, "output_nr");
  const AutogradMeta* meta = autograd::meta_of(*this);
  return meta ? meta->output_nr : 0;
}

}  // namespace tenon
