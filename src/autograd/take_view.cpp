// A tensor that becomes a view of itself (`t_`, `unsqueeze_`): the same memory in another shape, and a history that is
// one step longer.
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/dispatch/call.h>
#include <tenon/dispatch/registration.h>

#include "autograd/recorded_call.h"

namespace tenon::autograd {
namespace {

using dispatch::Call;

void take_geometry(const Tensor& self, const Tensor& view) {
  TensorImpl &to = *self.impl(), &from = *view.impl();
  to.offset = from.offset;
  to.sizes = from.sizes;
  to.strides = from.strides;
}

void take_below(Call& call) {
  Tensor self = call.args[0].tensor();
  take_geometry(self, call.args[1].tensor());
  call.results.push_back(std::move(self));
}

void take_recorded(Call& call) {
  Tensor self = call.args[0].tensor(), view = call.args[1].tensor();
  if (grad_enabled()) check_inplace(self, "in-place view", self.requires_grad());
  let_go_of_original(self);
  Edge history = grad_enabled() && view.requires_grad() ? gradient_edge(view) : Edge{};
  Ref<ViewStep> chain;
  if (AutogradMeta* of_view = meta_of(view); of_view && of_view->view) chain = of_view->view->chain;
  take_geometry(self, view);
  if (self.impl()->version) ++self.impl()->version->count;
  AutogradMeta& meta = ensure_meta(self);
  if (meta.view) {
    meta.view->chain = std::move(chain);
    meta.view->version = self.version();
    if (const AutogradMeta* base = meta_of(meta.view->base)) meta.view->shape = base->shape;
  } else {
    ++meta.shape;  // views of it can no longer be made by the steps that made them
  }
  if (history.valid())
    set_history(self, std::move(history));
  else
    meta.accumulator = WeakRef<Node>();  // which knows what gradients must look like
  call.results.push_back(std::move(self));
}

[[maybe_unused]] const bool registered = [] {
  dispatch::Operator& op =
      dispatch::define(schema::parse("tenon::take_view_(Tensor(a!) self, Tensor view) -> Tensor(a!)"));
  dispatch::add_tags(op, {dispatch::Tag::inplace_view});
  dispatch::register_kernel(op, DispatchKey::Autograd, take_recorded);
  for (DispatchKey key : {DispatchKey::CPU, DispatchKey::Meta, DispatchKey::Fake})
    dispatch::register_kernel(op, key, take_below);
  return true;
}();

}  // namespace
}  // namespace tenon::autograd
