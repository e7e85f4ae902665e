#include "result_plan.h"

#include "overlap.h"

#include <tenon/autograd/meta.h>
#include <tenon/ops/row.h>

#include <algorithm>

namespace tenon::aot {
namespace {

bool same_storage(const Tensor& a, const Tensor& b) {
  return functional_slot(a)->storage == functional_slot(b)->storage;
}

// Whether autograd does not follow these views, because one of them (detach) has no gradient, or was made without.
bool is_cut_off(const std::vector<ViewLink>& chain) {
  return std::any_of(chain.begin(), chain.end(), [](const ViewLink& link) {
    const ops::Row* row = ops::row_of(*link.op);
    return !link.grad_enabled || (row && !row->differentiable());
  });
}

// Whether its history comes from the tensor that it views.
bool follows_its_base(const Tensor& outer) {
  const autograd::AutogradMeta* meta = autograd::meta_of(outer);
  return meta && meta->follows_base();
}

// Whether gradients of a view pass the view that it was made of. After a write, histories of views are made anew, each
// for itself.
bool leads_through(const Tensor& view, const Tensor& parent) {
  Ref<autograd::Node> target = autograd::grad_fn(parent), at = autograd::grad_fn(view);
  for (size_t left = functional_slot(view)->links; at && at != target && left > 0; --left)
    at = at->next_edges().empty() ? nullptr : at->next_edges()[0].node;
  return !target || at == target;
}

}  // namespace

int32_t ResultPlanner::add_forward_output(const Tensor& outer, const Tensor& value) {
  forward_.push_back(outer);
  recorder_.graph().outputs.push_back(recorder_.to_argument(dispatch::Value(value)));
  return static_cast<int32_t>(forward_.size()) - 1;
}

void ResultPlanner::forget() {
  recorder_.graph().outputs.clear();
  forward_.clear();
  joint_.mutated.clear();
  joint_.writers.clear();
  joint_.outputs.clear();
  joint_.remade.clear();
  remade_.clear();
  older_.clear();
  passed_.clear();
  passed_by_.clear();
}

// Whether autograd has not looked at the view since its memory was written: its history will be made anew, from that of
// the base, and leads through no other view.
bool ResultPlanner::is_older(const Tensor& outer) const {
  return std::any_of(older_.begin(), older_.end(), [&](const Tensor& each) { return each.is(outer); });
}

void ResultPlanner::plan(const std::vector<dispatch::Value>& results, const std::vector<Remade>* known) {
  // Before anything else: whoever asks for a history makes it anew.
  for (const dispatch::Value& result : results)
    result.each_tensor([&](const Tensor& outer) {
      const autograd::AutogradMeta* meta = autograd::meta_of(outer);
      if (meta && meta->view && meta->view->version != outer.version()) older_.push_back(outer);
    });
  decide(results, known);
  for (size_t at = 0; at < results.size(); ++at) {
    OutputPlan plan;
    if (!results[at].is_tensor()) {
      plan.kind = OutputPlan::Kind::Number;
      plan.number = results[at].own();
      joint_.outputs.push_back(std::move(plan));
      continue;
    }
    const Tensor& outer = results[at].tensor();
    TENON_ASSERT(functional_slot(outer), "a result {} that is not functional", outer.description());
    for (size_t before = 0; before < at && plan.same_as < 0; ++before)
      if (results[before].is_tensor() && results[before].tensor().is(outer))
        plan.same_as = static_cast<int32_t>(before);
    if (const autograd::AutogradMeta* meta = autograd::meta_of(outer)) plan.creation = meta->creation;
    if (plan.same_as < 0 && joint_.are_remade.back()[at] != Remade::No) {
      plan.index = remade(outer);
      plan.kind = OutputPlan::Kind::ViewOfOutput;
    } else if (plan.same_as < 0) {
      plan_tensor(outer, results, plan);
    }
    joint_.outputs.push_back(std::move(plan));
  }
}

int32_t ResultPlanner::primal_of(const Tensor& outer) const {
  for (size_t at = 0; at < primals_.size(); ++at)
    if (same_storage(primals_[at], outer)) return static_cast<int32_t>(at);
  return -1;
}

std::optional<HoistedView> ResultPlanner::as_view_of_input(const Tensor& outer) const {
  int32_t input = primal_of(outer);
  if (input < 0) return std::nullopt;
  HoistedView view{graph::kNoValue, input, chain_from(input, *functional_slot(outer))};
  if (view.chain.empty() || is_cut_off(view.chain)) return std::nullopt;
  auto is_known = [](const SymInt& number) {
    if (!number.is_symbolic()) return true;
    std::vector<int32_t> ids = sym::symbols_of(number.expr());
    return std::all_of(ids.begin(), ids.end(), [&](int32_t id) { return number.env()->is_backed(id); });
  };
  for (const ViewLink& link : view.chain)
    for (const dispatch::Value& arg : link.args) {
      if (arg.tag() == dispatch::Value::Tag::Int && !is_known(arg.sym_int())) return std::nullopt;
      if (arg.tag() == dispatch::Value::Tag::SymInts)
        for (const SymInt& number : arg.sym_ints())
          if (!is_known(number)) return std::nullopt;
    }
  return view;
}

// Whether it is a view of another result, or another result a view of it.
bool ResultPlanner::has_relatives(const Tensor& outer, const std::vector<dispatch::Value>& results) const {
  return std::any_of(results.begin(), results.end(), [&](const dispatch::Value& result) {
    if (!result.is_tensor() || result.tensor().is(outer) || !functional_slot(result.tensor())) return false;
    const Tensor& other = result.tensor();
    int32_t input = primal_of(other);
    bool is_input = input >= 0 && chain_from(input, *functional_slot(other)).empty();
    return !is_input && (is_view_of(outer, other) || is_view_of(other, outer));
  });
}

void ResultPlanner::plan_tensor(const Tensor& outer, const std::vector<dispatch::Value>& results, OutputPlan& plan) {
  plan.is_older = is_older(outer);
  plan.index = primal_of(outer);
  if (plan.index < 0) {
    plan.index = forward_output_of(outer);
    return;
  }
  plan.chain = chain_from(plan.index, *functional_slot(outer));
  plan.kind = plan.chain.empty() ? OutputPlan::Kind::Input : OutputPlan::Kind::ViewOfInput;
  if (plan.chain.empty()) return;
  bool has_history = outer.requires_grad() && is_cut_off(plan.chain);
  // Gradients of a view with respect to what it views go by the tensors that are returned; so does a later write.
  // (A view that is older comes to know of a write by its base, which is a result only behind a cut.)
  const bool goes_by_results = (!plan.is_older || is_cut_off(plan.chain)) && has_relatives(outer, results);
  if (has_history ? follows_its_base(outer) : goes_by_results) {
    plan.kind = OutputPlan::Kind::ViewOfOutput;
    plan.index = remade(outer);
  } else if (has_history) {
    plan.history = forward_output_of(outer);
  }
}

// The links that lead from the input to its stand-in in the graph are not the user's.
std::vector<ViewLink> ResultPlanner::chain_from(int32_t input, const FunctionalSlot& slot) const {
  std::vector<ViewLink> links;
  std::vector<const ViewLink*> chain = slot.chain();
  for (size_t at = functional_slot(primals_[static_cast<size_t>(input)])->links; at < chain.size(); ++at)
    links.push_back(*chain[at]);
  return links;
}

int32_t ResultPlanner::forward_output_of(const Tensor& outer) {
  for (size_t at = joint_.mutated.size(); at < forward_.size(); ++at)
    if (forward_[at].is(outer)) return static_cast<int32_t>(at);
  return add_forward_output(outer, from_functional_as_shown(outer));
}

void ResultPlanner::decide(const std::vector<dispatch::Value>& results, const std::vector<Remade>* known) {
  std::vector<Remade>& decided = joint_.are_remade.emplace_back(results.size(), Remade::No);
  for (size_t at = 0; at < results.size(); ++at) {
    if (!results[at].is_tensor()) continue;
    const Tensor& outer = results[at].tensor();
    if (known)
      decided[at] = (*known)[at];
    else if (primal_of(outer) >= 0)
      decided[at] = must_be_on_the_way(outer) && is_passed(outer, results) ? Remade::Passed : Remade::No;
    else if (must_be_remade(outer, results))
      decided[at] = is_passed(outer, results) ? Remade::Passed : Remade::AsView;
    if (decided[at] == Remade::Passed) passed_.push_back(outer);
  }
}

// Whether a view of an input cannot be made before the graph runs, so as to become an input of it (`HoistedView`).
bool ResultPlanner::must_be_on_the_way(const Tensor& outer) const {
  const FunctionalSlot& slot = *functional_slot(outer);
  if (chain_from(primal_of(outer), slot).empty()) return false;
  return slot.storage->generation > 0 || !as_view_of_input(outer);
}

// Whether gradients of results that were computed from this view go through it. (Those of views of it do so when they
// are made again from it.)
bool ResultPlanner::is_passed(const Tensor& outer, const std::vector<dispatch::Value>& results) {
  const FunctionalSlot* slot = functional_slot(outer);
  if (!outer.requires_grad() || slot->links == 0 || is_older(outer) || !follows_its_base(outer)) return false;
  auto [known, is_new] = passed_by_.try_emplace(slot->storage.get());
  if (is_new) {
    std::vector<const autograd::Node*> nodes;
    auto add = [&](const Tensor& other) {
      if (other.defined() && functional_slot(other) && !same_storage(other, outer) && other.requires_grad())
        nodes.push_back(autograd::gradient_edge(other).node.get());
    };
    for (const dispatch::Value& result : results) result.each_tensor(add);
    for (const Tensor& written : forward_) add(written);
    known->second = edges_behind(std::move(nodes));
  }
  autograd::Edge edge = autograd::gradient_edge(outer);
  return known->second.contains({edge.node.get(), edge.input_nr});
}

// A value of its own would not do: another result looks into the same memory, or it does so twice itself.
bool ResultPlanner::must_be_remade(const Tensor& outer, const std::vector<dispatch::Value>& results) const {
  if (functional_slot(outer)->links > 0 && may_overlap(outer)) return true;
  return std::any_of(results.begin(), results.end(), [&](const dispatch::Value& other) {
    if (!other.is_tensor() || other.tensor().is(outer) || !functional_slot(other.tensor())) return false;
    return same_storage(other.tensor(), outer);
  });
}

int32_t ResultPlanner::remade(const Tensor& outer) {
  for (size_t at = 0; at < remade_.size(); ++at)
    if (remade_[at].is(outer)) return static_cast<int32_t>(at);
  const FunctionalSlot* slot = functional_slot(outer);
  int32_t input = primal_of(outer);
  RemadeView view;
  if (input >= 0 && chain_from(input, *slot).empty()) {
    view.input = input;
  } else if (slot->links == 0) {
    view.output = forward_output_of(outer);
  } else if (input >= 0 && outer.requires_grad() && !follows_its_base(outer)) {
    view.input = input;
    view.chain = chain_from(input, *slot);
    view.history = forward_output_of(outer);
  } else {
    view.parent = remade(slot->parent);
    view.link = slot->link;
    const bool is_among_passed =
        std::any_of(passed_.begin(), passed_.end(), [&](const Tensor& each) { return each.is(outer); });
    if (is_among_passed || (outer.requires_grad() && !follows_its_base(outer)))
      view.history = forward_output_of(outer);
    else
      view.is_apart = outer.requires_grad() && !leads_through(outer, slot->parent);
  }
  remade_.push_back(outer);
  joint_.remade.push_back(std::move(view));
  return static_cast<int32_t>(remade_.size()) - 1;
}

}  // namespace tenon::aot
