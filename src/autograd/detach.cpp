#include <tenon/autograd/detach.h>
#include <tenon/autograd/meta.h>

#include "core/effects.h"

namespace tenon {

Tensor detach_(const Tensor& self) {
  TENON_CHECK(self.defined(), "[detach_] expected a tensor, got an undefined one");
  TENON_CHECK(!core::effect_interceptor(),
              "[detach_] a compiled function cannot take a tensor out of its history: use detach()");
  autograd::AutogradMeta* meta = autograd::meta_of(self);
  if (!meta) return self;
  TENON_CHECK(
      !meta->view,
      "[detach_] Can't detach views in-place: {} is a view of {}. Use detach(), which gives a tensor of its own",
      self.description(), meta->view->base.description());
  if (meta->grad_fn) {
    autograd::let_go_of_original(self, true);
    autograd::set_history(self, autograd::Edge{});
  }
  meta->requires_grad = false;
  meta->retains_grad = false;
  return self;
}

namespace autograd {

void set_data(const Tensor& self, const Tensor& source) {
  TENON_CHECK(self.defined() && source.defined(), "[set_data] expected a tensor, got an undefined one");
  TENON_CHECK(!core::effect_interceptor(), "[set_data] cannot be part of a compiled function");
  TENON_CHECK(!self.requires_grad() || source.is_floating_point(),
              "[set_data] data set to a tensor that requires gradients must be floating point or complex dtype, got {}",
              source.description());
  TENON_CHECK(self.device() == source.device() && self.is_fake() == source.is_fake(),
              "[set_data] expected data on {}, got {} on {}", self.device().str(), source.description(),
              source.device().str());
  let_go_of_original(self);
  TensorImpl &to = *self.impl(), &from = *source.impl();
  to.storage = from.storage;
  to.offset = from.offset;
  to.sizes = from.sizes;
  to.strides = from.strides;
  to.dtype = from.dtype;
  // An accumulator knows what gradients must look like.
  if (AutogradMeta* meta = meta_of(self)) meta->accumulator = WeakRef<Node>();
}

namespace {

Version& version_of(const Tensor& tensor, const char* what) {
  TENON_CHECK(tensor.defined(), "[{}] expected a tensor, got an undefined one", what);
  TENON_CHECK(tensor.impl()->version,
              "[{}] Inplace update to inference tensor outside InferenceMode: {} has no version", what,
              tensor.description());
  return *tensor.impl()->version;
}

}  // namespace

void increment_version(const Tensor& tensor) { ++version_of(tensor, "increment_version").count; }

void set_version(const Tensor& tensor, int64_t version) {
  TENON_CHECK(version >= 0, "[set_version] Cannot set the version of a tensor to {}: it counts changes", version);
  version_of(tensor, "set_version").count = version;
}

}  // namespace autograd
}  // namespace tenon
