// A tensor that gets other sizes in its memory, which grows where it must (`resize_`). It is no operation on values, so
// that no gradient flows through it.
#include <tenon/autograd/meta.h>
#include <tenon/dispatch/call.h>
#include <tenon/dispatch/registration.h>

#include "autograd/layers.h"
#include "autograd/recorded_call.h"
#include "support/checked.h"

namespace tenon::autograd {
namespace {

using dispatch::Call;

void resize_below(Call& call) {
  Tensor self = call.args[0].tensor();
  Ints sizes = call.args[1].ints(), strides = call.args[2].ints();
  TensorImpl& impl = *self.impl();
  checked::element_count(sizes.span());
  Storage& storage = *impl.storage;
  int64_t reach = core::reach(sizes.span(), strides.span());
  if (reach > 0 && storage.has_data()) {
    int64_t bytes = checked::multiply(checked::add(impl.offset, reach), size_of(impl.dtype));
    if (bytes > storage.bytes()) storage.resize(bytes);
  }
  impl.sizes = std::move(sizes);
  impl.strides = std::move(strides);
  call.results.push_back(std::move(self));
}

void resize_recorded(Call& call) {
  Tensor self = call.args[0].tensor();
  TENON_CHECK(
      !self.requires_grad(),
      "[resize_] cannot resize variables that require grad, and {} does: resize detach() of it, or reshape() it",
      self.description());
  let_go_of_original(self);
  {
    dispatch::ExcludeKeys below(kAutogradAndAbove);
    dispatch::redispatch(call, call.keys.below(DispatchKey::Autograd));
  }
  AutogradMeta& meta = ensure_meta(self);
  if (meta.view)
    meta.view->chain = nullptr;  // it looks at places that no step names
  else
    ++meta.shape;  // views of it can no longer be made by the steps that made them
  meta.accumulator = WeakRef<Node>();
}

[[maybe_unused]] const bool registered = [] {
  dispatch::Operator& op = dispatch::define(
      schema::parse("tenon::resize_geometry_(Tensor(a!) self, int[] size, int[] stride) -> Tensor(a!)"));
  dispatch::add_tags(op, {dispatch::Tag::inplace_view});
  dispatch::register_kernel(op, DispatchKey::Autograd, resize_recorded);
  for (DispatchKey key : {DispatchKey::CPU, DispatchKey::Meta, DispatchKey::Fake})
    dispatch::register_kernel(op, key, resize_below);
  return true;
}();

}  // namespace
}  // namespace tenon::autograd
