#include "autograd/batched.h"
#include "autograd/forward_mode.h"
#include "autograd/row_node.h"
#include "core/effects.h"

#include <tenon/autograd/meta.h>
#include <tenon/generated/ops.h>
#include <tenon/sym/size_rules.h>

#include <atomic>

namespace tenon {
namespace autograd {

Tensor tangent_of(const Tensor& tensor) {
  const forward_ad::DualLevel* level = dual_level();
  const AutogradMeta* meta = level && tensor.defined() ? meta_of(tensor) : nullptr;
  if (!meta) return Tensor();
  if (meta->tangent && meta->tangent->level == level->number()) return meta->tangent->value;
  if (!meta->view) return Tensor();
  Tensor of_base = tangent_of(meta->view->base);
  if (!of_base.defined()) return Tensor();
  WithoutTangents off;
  for (const ViewStep* step : steps_of(chain_of(tensor).get())) of_base = step->replay(of_base);
  const_cast<AutogradMeta*>(meta)->tangent = std::make_unique<Tangent>(Tangent{of_base, level->number()});
  return of_base;
}

void set_tangent(const Tensor& tensor, const Tensor& tangent) {
  ensure_meta(tensor).tangent = std::make_unique<Tangent>(Tangent{tangent, dual_level()->number()});
}

}  // namespace autograd

namespace forward_ad {

using support::ContextSlot;
using support::thread_context;

DualLevel::DualLevel() {
  TENON_CHECK(
      !is_on(),
      "[forward_ad] Nested forward mode AD is not supported at the moment: there is one DualLevel at a time on a "
      "thread; a derivative of a derivative is the gradient of a tangent");
  TENON_CHECK(!core::effect_interceptor(), "[forward_ad] a level cannot be part of a compiled function");
  static std::atomic<uint64_t> last{0};
  number_ = ++last;
  thread_context.set(ContextSlot::DualLevel, this);
}

DualLevel::~DualLevel() {
  if (autograd::dual_level() == this) thread_context.set(ContextSlot::DualLevel, nullptr);
}

bool DualLevel::is_on() { return autograd::dual_level() != nullptr; }

Tensor make_dual(const Tensor& tensor, const Tensor& tangent) {
  TENON_CHECK(DualLevel::is_on(),
              "[make_dual] Trying to create a dual Tensor for forward AD but no level exists: make a "
              "forward_ad::DualLevel first");
  TENON_CHECK(tensor.defined() && tangent.defined(), "[make_dual] expected two tensors, got an undefined one");
  TENON_CHECK_VALUE(tensor.is_floating_point(), "[make_dual] Expected primal to be floating point or complex, got {}",
                    tensor.description());
  TENON_CHECK_VALUE(tangent.dtype() == tensor.dtype() && tangent.device() == tensor.device() &&
                        autograd::same_sizes(tangent.sym_sizes(), tensor.sym_sizes()),
                    "[make_dual] expected a tangent like its primal, {} on {}, got {} on {}", tensor.description(),
                    tensor.device().str(), tangent.description(), tangent.device().str());
  TENON_CHECK(!autograd::tangent_of(tensor).defined(),
              "[make_dual] the tensor {} has a tangent at this level already: unpack_dual() gives its parts",
              tensor.description());
  if (const autograd::BatchedSlot* batch = autograd::batched_slot(tensor)) {
    Tensor of_entries = autograd::value_for_all(tangent, batch->level, batch->value.size(0));
    return autograd::make_batched(make_dual(batch->value, of_entries), batch->level);
  }
  Tensor dual = [&] {
    autograd::WithoutTangents off;
    return tensor.view_as(tensor);
  }();
  autograd::set_tangent(dual, tangent);
  return dual;
}

DualTensor unpack_dual(const Tensor& tensor) {
  TENON_CHECK(tensor.defined(), "[unpack_dual] expected a tensor, got an undefined one");
  if (const autograd::BatchedSlot* batch = autograd::batched_slot(tensor)) {
    DualTensor parts = unpack_dual(batch->value);
    if (!parts.tangent.defined()) return {tensor, Tensor()};
    return {autograd::make_batched(parts.primal, batch->level), autograd::make_batched(parts.tangent, batch->level)};
  }
  Tensor tangent = autograd::tangent_of(tensor);
  if (!tangent.defined()) return {tensor, Tensor()};
  // No view of it: those have tangents.
  Tensor primal = autograd::detach_below(tensor);
  if (tensor.requires_grad()) autograd::pass_on(primal, tensor);
  return {primal, tangent};
}

}  // namespace forward_ad
}  // namespace tenon
