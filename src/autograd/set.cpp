#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/autograd/set.h>
#include <tenon/dispatch/call.h>
#include <tenon/dispatch/registration.h>

#include "autograd/layers.h"
#include "autograd/recorded_call.h"

namespace tenon {
namespace {

using dispatch::Call;
using dispatch::Value;

void checked(Call& call) {
  const Tensor &self = call.args[0].tensor(), &source = call.args[1].tensor();
  TENON_CHECK(self.defined() && source.defined(), "[set_] expected a tensor, got an undefined one");
  if (autograd::grad_enabled()) {
    autograd::check_inplace(self, "set_", source.requires_grad());
    TENON_CHECK(!self.requires_grad() && !source.requires_grad(),
                "[set_] expected tensors that do not require grad: no gradient flows through it; use no_grad()");
  }
  dispatch::ExcludeKeys below(autograd::kAutogradAndAbove);
  dispatch::redispatch(call, call.keys.below(DispatchKey::Autograd));
}

void move(Call& call) {
  const Tensor &self = call.args[0].tensor(), &source = call.args[1].tensor();
  TENON_CHECK(self.dtype() == source.dtype() && self.device() == source.device(),
              "[set_] expected a source of {} on {}, got {} on {}", name(self.dtype()), self.device().str(),
              source.description(), source.device().str());
  autograd::let_go_of_original(self);
  TensorImpl &to = *self.impl(), &from = *source.impl();
  to.storage = from.storage;
  to.offset = from.offset;
  to.sizes = from.sizes;
  to.strides = from.strides;
  // It is no view of what it looked into before, and another leaf than it was.
  if (autograd::AutogradMeta* meta = autograd::meta_of(self)) {
    meta->view = nullptr;
    meta->accumulator = WeakRef<autograd::Node>();
  }
  call.results.push_back(Tensor(self));
}

const dispatch::Operator& set_operator() {
  static const dispatch::Operator& op = dispatch::find_operator("aten::set_.source_Tensor");
  return op;
}

[[maybe_unused]] const bool registered = [] {
  dispatch::Operator& op =
      dispatch::define(schema::parse("aten::set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)"));
  dispatch::add_tags(op, {dispatch::Tag::inplace_view});
  dispatch::register_kernel(op, DispatchKey::Autograd, checked);
  dispatch::register_kernel(op, DispatchKey::CPU, move);
  return true;
}();

}  // namespace

Tensor set_(const Tensor& self, const Tensor& source) {
  const Value args[] = {Value(self), Value(source)};
  return dispatch::call_boxed(set_operator(), args)[0].take_tensor();
}

}  // namespace tenon
