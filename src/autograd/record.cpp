// The Autograd and ADInplaceOrView layers: what happens to a call on its way down.
#include "autograd/forward_mode.h"
#include "autograd/layers.h"
#include "autograd/operation.h"
#include "autograd/row_node.h"

#include <tenon/autograd/inference_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/dispatch/operator.h>

#include <algorithm>

namespace tenon::autograd {
namespace {

using dispatch::Call;
using dispatch::Value;

void run_below(Call& call) {
  // Operators that the kernel calls are part of this one: they must not record again.
  dispatch::ExcludeKeys recorded(kAutogradAndAbove);
  dispatch::redispatch(call, call.keys.below(DispatchKey::Autograd));
}

bool flows(const Tensor& tensor) { return tensor.defined() && tensor.is_floating_point() && tensor.requires_grad(); }

bool any_gradient_flows(const ops::Row& row, std::span<const Value> arguments) {
  bool any = false;
  for (const RowPlan::Rule& rule : plan_of(row).rules)
    arguments[rule.argument].each_tensor([&](const Tensor& tensor) { any = any || flows(tensor); });
  return any;
}

bool any_argument_flows(const Call& call) {
  bool any = false;
  for (const Value& value : call.args) value.each_tensor([&](const Tensor& tensor) { any = any || flows(tensor); });
  return any;
}

bool is_argument(const Tensor& result, std::span<const Value> arguments) {
  bool same = false;
  for (const Value& value : arguments)
    value.each_tensor([&](const Tensor& tensor) { same = same || tensor.is(result); });
  return same;
}

// An operator that is not in the table, and brings no kernel for this layer, has no gradient. Its kernel may
// differentiate what it computes itself; what comes of that in its results ends there, so that eager and compiled,
// which sees one operator, agree. (What it writes to, or gives views of, is the caller's: there nothing may be
// recorded.)
void run_without_gradient(Call& call) {
  bool flows = any_argument_flows(call);
  if (flows && !call.op.schema().is_functional()) return run_below(call);
  {
    dispatch::ExcludeKeys above(kAutogradAndAbove - KeySet{DispatchKey::Autograd});
    dispatch::redispatch(call, call.keys.below(DispatchKey::Autograd));
  }
  if (!flows) return;
  for (Value& result : call.results)
    result = result.map_tensors([&](const Tensor& tensor) {
      bool recorded = tensor.defined() && grad_fn(tensor) && !is_argument(tensor, call.args);
      return recorded ? tensor.detach() : tensor;
    });
}

void attach_results(Call& call, const ops::Row& row, const Ref<RowNode>& node) {
  for (size_t at = 0; at < call.results.size(); ++at) {
    Value& result = call.results[at];
    if (!result.is_tensor() && !result.is_tensors()) continue;
    // An argument that comes back keeps the history that it has; its twin gets the new one.
    bool twin = false;
    result.each_tensor(
        [&](const Tensor& tensor) { twin = twin || (tensor.defined() && is_argument(tensor, call.args)); });
    if (twin)
      result = result.map_tensors(
          [&](const Tensor& tensor) { return is_argument(tensor, call.args) ? detach_below(tensor) : tensor; });
    bool differentiable = carries_gradient(row, at);
    result.each_tensor([&](const Tensor& tensor) {
      uint32_t nr = tensor.defined() ? node->add_input(tensor) : node->add_input(InputMeta{});
      if (differentiable && tensor.defined() && tensor.is_floating_point()) set_history(tensor, {node, nr});
    });
  }
}

void record(Call& call, const ops::Row& row) {
  if (!any_gradient_flows(row, call.args)) return run_below(call);
  auto node = make_ref<RowNode>(make_ref<RecordedCall>(row, call.args));
  node->connect(call.args);
  node->save_arguments(call.args, Tensor());
  run_below(call);
  attach_results(call, row, node);
  node->save_results(call.results);
}

// `recorded`: how the view was made; null where that is not worth keeping.
void mark_view(const Tensor& view, const Tensor& self, Ref<RecordedCall> recorded, Creation creation) {
  auto info = std::make_unique<ViewInfo>();
  const AutogradMeta* from = meta_of(self);
  const bool of_view = from && from->view;
  info->base = of_view ? from->view->base : self;
  if (of_view && recorded && recorded->row->view.of_storage) {
    // Places are counted from the base, which may have elements there that `self` has not.
    info->chain = make_ref<ViewStep>(
        recorded_by_places(info->base, view.sym_sizes(), view.sym_strides(), view.sym_storage_offset()), nullptr);
  } else if (recorded && (!of_view || from->view->chain)) {
    info->chain = make_ref<ViewStep>(std::move(recorded), of_view ? chain_of(self) : nullptr);
  }
  if (const AutogradMeta* base = meta_of(info->base)) info->shape = base->shape;
  info->version = view.version();
  AutogradMeta& meta = ensure_meta(view);
  meta.creation = creation != Creation::Ordinary || !of_view ? creation : from->creation;
  meta.view = std::move(info);
}

void record_view(Call& call, const ops::Row& row) {
  Tensor self = call.args[0].tensor();
  // `detach` has no gradient: what it gives is a tensor of its own.
  if (!row.differentiable() || !self.defined() || !self.is_floating_point()) return run_below(call);
  auto recorded = make_ref<RecordedCall>(row, call.args);
  Ref<RowNode> node;
  if (self.requires_grad()) {
    node = make_ref<RowNode>(recorded);
    node->connect(call.args);
  }
  run_below(call);
  const Tensor& view = call.results[0].tensor();
  if (view.is(self)) return;
  if (node) set_history(view, node);
  if (view.impl()->version) mark_view(view, self, std::move(recorded), Creation::Ordinary);
}

void view_without_grad(Call& call, const ops::Row& row) {
  run_below(call);
  const Tensor& self = call.args[0].tensor();
  const Tensor& view = call.results[0].tensor();
  if (!row.differentiable() || !self.defined() || !self.is_floating_point() || view.is(self) || !view.impl()->version)
    return;
  mark_view(view, self, nullptr, InferenceMode::is_enabled() ? Creation::InInference : Creation::WithoutGrad);
}

void record_inplace(Call& call, const ops::Row& row, size_t written) {
  Tensor self = call.args[written].tensor();
  if (!self.defined() || !self.is_floating_point()) return run_below(call);
  bool needed = self.requires_grad() || any_gradient_flows(row, call.args);
  check_inplace(self, row.schema.name, needed);
  if (!needed) return run_below(call);
  auto node = make_ref<RowNode>(make_ref<RecordedCall>(row, call.args));
  node->connect(call.args);
  node->save_arguments(call.args, self);
  run_below(call);
  rebase_history(self, node, node->edge_of(row.schema.arguments[written].name));
  node->save_results(call.results);
}

void record_call(Call& call, const ops::Row* row) {
  if (!row) return run_without_gradient(call);
  Operation numbered;
  if (!grad_enabled()) return row->kind == ops::Kind::View ? view_without_grad(call, *row) : run_below(call);
  if (row->kind == ops::Kind::View) return record_view(call, *row);
  if (row->inplace()) return record_inplace(call, *row, 0);
  if (row->schema.is_mutable())
    return record_inplace(call, *row, static_cast<size_t>(row->schema.mutated_arguments().front()));
  record(call, *row);
}

void autograd_layer(Call& call) {
  const ops::Row* row = ops::row_of(call.op);
  if (dual_level() && has_tangents(call.args)) [[unlikely]]
    return run_with_tangents(call, row, [&] { record_call(call, row); });
  record_call(call, row);
}

void bump_versions(Call& call) {
  const schema::Schema& schema = call.op.schema();
  KeySet below = call.keys.below(DispatchKey::ADInplaceOrView);
  if (!schema.is_mutable()) return dispatch::redispatch(call, below);
  {
    // One change, however many operators the kernel calls for it.
    dispatch::ExcludeKeys counted({DispatchKey::ADInplaceOrView});
    dispatch::redispatch(call, below);
  }
  for (int at : schema.mutated_arguments())
    call.args[static_cast<size_t>(at)].each_tensor([](const Tensor& tensor) {
      if (tensor.defined() && tensor.impl()->version) ++tensor.impl()->version->count;
    });
}

[[maybe_unused]] const bool registered = [] {
  dispatch::register_fallback(DispatchKey::Autograd, autograd_layer);
  dispatch::register_fallback(DispatchKey::ADInplaceOrView, bump_versions);
  return true;
}();

}  // namespace
}  // namespace tenon::autograd
