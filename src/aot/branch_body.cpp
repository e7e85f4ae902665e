#include "branch_body.h"

#include "graph_builder.h"
#include "loop_body.h"
#include "support/thread_context.h"

#include <tenon/autograd/function.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/visit.h>
#include <tenon/fake/fake.h>
#include <tenon/generated/ops.h>

#include <algorithm>

namespace tenon::aot {

using dispatch::Value;
using graph::Graph;
using graph::ValueId;

BranchCall::BranchCall(const dispatch::Call& call)
    : predicate(call.args[0].tensor()), captured(call.args[1].tensors()), numbers(call.args[2].sym_ints()) {}

std::vector<Tensor> BranchCall::run(const dispatch::Operator& op) const {
  const Value args[] = {Value(predicate), Value(captured), Value(numbers)};
  dispatch::Results results = dispatch::call_boxed(op, args);
  std::span<const Tensor> tensors = results[0].tensors();
  return {tensors.begin(), tensors.end()};
}

BranchBody::BranchBody(std::vector<graph::Graph> graphs, std::vector<bool> needs_grad, std::string name)
    : needs_grad_(std::move(needs_grad)), name_(std::move(name)) {
  runtime::Bodies bodies{runtime::Bodies::Kind::Branch, name_, {}, 0};
  for (graph::Graph& graph : graphs) {
    branches_.push_back(std::make_shared<Body>(std::move(graph), 0));
    bodies.bodies.push_back(branches_.back());
  }
  bodies_ = std::make_shared<runtime::Bodies>(std::move(bodies));
}

std::vector<Tensor> BranchBody::shapes(const dispatch::Call& call) const {
  return translated(*branches_[0], BranchCall(call).numbers);
}

namespace {

bool is_alike(const Tensor& a, const Tensor& b) {
  const SymInts sizes = a.sym_sizes(), others = b.sym_sizes();
  bool alike = a.dtype() == b.dtype() && sizes.size() == others.size();
  for (size_t dim = 0; alike && dim < sizes.size(); ++dim) alike = sizes[dim].same(others[dim]);
  return alike;
}

// Both ways of both branches, on their way to be two operators.
class Pair {
 public:
  // `captured`: what those are like.
  Pair(std::vector<Step> steps, std::vector<Tensor> captured, size_t results)
      : steps_(std::move(steps)), captured_(std::move(captured)), results_(results) {
    for (Step& step : steps_) {
      step.forward.written.clear();
      step.backward.written.clear();
    }
  }

  // What either branch keeps is a result of both: where one has no use for it, it is memory that nobody touches. Two
  // of one kind are one.
  void share_kept() {
    for (size_t which = 0; which < 2; ++which) {
      Step& step = steps_[which];
      std::vector<ValueId> own(step.forward.outputs.size() - results_);
      for (size_t at = 0; at < own.size(); ++at) own[at] = std::get<ValueId>(step.forward.outputs[results_ + at]);
      step.forward.outputs.resize(results_);
      slot_of_[which].assign(own.size(), 0);
      for (size_t at = 0; at < own.size(); ++at) {
        const Tensor& meta = step.forward.meta(own[at]);
        size_t slot = 0;
        while (slot < slots_.size() &&
               (slots_[slot].value[which] != graph::kNoValue || !is_alike(slots_[slot].meta, meta)))
          ++slot;
        if (slot == slots_.size()) slots_.push_back({meta, {graph::kNoValue, graph::kNoValue}});
        slots_[slot].value[which] = own[at];
        slot_of_[which][at] = slot;
      }
    }
    for (size_t which = 0; which < 2; ++which) {
      Builder build(steps_[which].forward);
      for (const KeptSlot& slot : slots_)
        if (slot.value[which] != graph::kNoValue)
          build.result(slot.value[which]);
        else
          build.result(build.empty(slot.meta));
    }
  }

  // Inputs: what was kept, captured tensors, gradients of results.
  void join_backward(BranchBack& made) {
    made.kept = slots_.size();
    for (const Step& step : steps_) {
      for (const Kept& each : step.kept_from)
        if (each.from == Kept::From::Captured) add(made.captured, static_cast<int32_t>(each.index));
      for (size_t at = 0; at < step.tangents.size(); ++at)
        if (step.tangents[at] != graph::kNoValue) add(made.tangents, static_cast<int32_t>(at));
      for (size_t at = 0; at < step.gradients.size(); ++at)
        if (step.gradients[at] != graph::kNoValue) add(made.gradients, static_cast<int32_t>(at));
    }
    for (size_t which = 0; which < 2; ++which) join_backward(which, made);
  }

  std::vector<Graph> forward() { return taken(&Step::forward); }
  std::vector<Graph> backward() { return taken(&Step::backward); }

 private:
  struct KeptSlot {
    Tensor meta;
    ValueId value[2];  // by branch
  };

  static void add(std::vector<int32_t>& list, int32_t what) {
    if (std::find(list.begin(), list.end(), what) == list.end()) list.push_back(what);
  }
  std::vector<Graph> taken(Graph Step::* which) {
    std::vector<Graph> graphs;
    for (Step& step : steps_) {
      graph::remove_dead_code(step.*which);
      graphs.push_back(std::move(step.*which));
    }
    return graphs;
  }

  void join_backward(size_t which, const BranchBack& made) {
    Step& step = steps_[which];
    const Step& other = steps_[1 - which];
    Graph& graph = step.backward;
    graph.inputs.clear();
    graph.outputs.clear();
    Builder build(graph);
    std::vector<ValueId> kept(slots_.size(), graph::kNoValue);
    std::vector<std::pair<int32_t, ValueId>> captured;
    for (size_t at = 0; at < step.kept.size(); ++at)
      if (step.kept_from[at].from == Kept::From::Captured)
        captured.emplace_back(static_cast<int32_t>(step.kept_from[at].index), step.kept[at]);
      else
        kept[slot_of_[which][step.kept_from[at].index]] = step.kept[at];
    for (size_t slot = 0; slot < slots_.size(); ++slot)
      if (kept[slot] != graph::kNoValue)
        graph.inputs.push_back(kept[slot]);
      else
        build.input(Builder::dense_like(slots_[slot].meta));
    for (int32_t each : made.captured) {
      auto own = std::find_if(captured.begin(), captured.end(), [&](const auto& one) { return one.first == each; });
      if (own != captured.end())
        graph.inputs.push_back(own->second);
      else
        build.input(captured_[static_cast<size_t>(each)]);
    }
    for (int32_t each : made.tangents) {
      const ValueId own = step.tangents[static_cast<size_t>(each)];
      if (own != graph::kNoValue)
        graph.inputs.push_back(build.given_dense(own));
      else
        build.input(Builder::dense_like(other.backward.meta(other.tangents[static_cast<size_t>(each)])));
    }
    for (int32_t each : made.gradients) {
      const ValueId own = step.gradients[static_cast<size_t>(each)];
      if (own != graph::kNoValue)
        build.result(build.dense(own));
      else
        build.result(build.zeros(other.backward.meta(other.gradients[static_cast<size_t>(each)])));
    }
  }

  std::vector<Step> steps_;
  std::vector<Tensor> captured_;
  size_t results_;
  std::vector<KeptSlot> slots_;
  std::vector<size_t> slot_of_[2];  // by branch, by what it stacks
};

}  // namespace

std::shared_ptr<BranchBack> BranchBody::differentiate(const Wanted& wanted, const sym::EnvCopy& copy) const {
  support::SwapContext apart(support::ThreadContext{});
  auto made = std::make_shared<BranchBack>();
  made->kind = autograd::new_kind();
  std::vector<Step> steps;
  std::vector<Tensor> captured;
  for (const std::shared_ptr<Body>& branch : branches_) {
    const Graph graph = graph::in_copy(branch->graph(), copy);
    captured.clear();
    for (ValueId id : graph.inputs) captured.push_back(graph.meta(id));
    const LoopShape shape{0, 0, needs_grad_};
    steps.push_back(wanted.second ? step_again(graph, shape, wanted.first) : step_once(graph, shape, wanted.first));
  }
  Pair pair(std::move(steps), std::move(captured), needs_grad_.size());
  if (!wanted.second) pair.share_kept();
  pair.join_backward(*made);
  std::string why;
  auto make = [&](std::vector<Graph> graphs, std::vector<bool> needs_grad) {
    std::optional<BranchOperator> op = branch_operator(std::move(graphs), std::move(needs_grad), why);
    TENON_ASSERT(op, "{} cannot be differentiated: {}", name_, why);
    return std::move(*op);
  };
  if (!wanted.second) {
    std::vector<bool> needs_grad = needs_grad_;
    needs_grad.resize(needs_grad.size() + made->kept, false);
    made->forward = make(pair.forward(), std::move(needs_grad));
  }
  made->backward = make(pair.backward(), std::vector<bool>(made->gradients.size(), true));
  made->env = copy.env();
  made->conditions = copy.conditions();
  return made;
}

std::shared_ptr<BranchBack> BranchBody::differentiated(const Wanted& wanted, const SymInts& numbers) {
  return back_.find(*branches_[0], wanted, numbers,
                    [&](const sym::EnvCopy& copy) { return differentiate(wanted, copy); });
}

// Saved: what forward kept, the captured tensors, the predicate.
std::vector<Tensor> BranchBody::walk_back(const Wanted& wanted, const BranchBack& first,
                                          autograd::AutogradContext& context, std::vector<Tensor> gradients) {
  SymInts numbers;
  for (const AnyValue& number : context.saved_data.at("numbers").list()) numbers.push_back(number.sym_int());
  std::vector<bool> came;
  for (const Tensor& gradient : gradients) came.push_back(gradient.defined());
  const bool all = std::find(came.begin(), came.end(), false) == came.end();
  const std::vector<Tensor> like = all ? std::vector<Tensor>() : translated(*branches_[0], numbers);
  for (size_t at = 0; at < like.size(); ++at)
    if (!came[at] && like[at].is_floating_point())
      gradients[at] = zeros(like[at].sym_sizes(), TensorOptions(like[at].dtype(), like[at].device()));
  std::shared_ptr<BranchBack> again;
  if (autograd::grad_enabled()) again = differentiated({wanted.first, true}, numbers);
  const BranchBack& parts = again ? *again : first;
  std::vector<Tensor> inputs;
  for (size_t at = 0; at < parts.kept; ++at) inputs.push_back(context.saved_tensor(at));
  for (int32_t at : parts.captured) inputs.push_back(context.saved_tensor(first.kept + static_cast<size_t>(at)));
  for (int32_t at : parts.tangents) inputs.push_back(gradients[static_cast<size_t>(at)]);
  const Tensor predicate = context.saved_tensor(first.kept + branches_[0]->input_count());
  std::vector<Tensor> made =
      BranchCall(predicate, inputs, chosen(numbers, parts.backward.symbols)).run(*parts.backward.op);
  std::vector<Tensor> given(branches_[0]->input_count());
  for (size_t at = 0; at < parts.gradients.size(); ++at) given[static_cast<size_t>(parts.gradients[at])] = made[at];
  // What none of these results was computed from, in either branch, has no gradient.
  if (!all) {
    std::vector<Reach> reach;
    for (const std::shared_ptr<Body>& branch : branches_) reach.push_back(reach_of(*branch, wanted.first, numbers));
    for (size_t at = 0; at < given.size(); ++at) {
      bool is_reached = false;
      for (const Reach& each : reach)
        for (size_t result = 0; result < came.size(); ++result)
          is_reached = is_reached || (came[result] && each[result][at]);
      if (!is_reached) given[at] = Tensor();
    }
  }
  return given;
}

void BranchBody::prepare_gradient(const std::vector<bool>& wanted, const SymInts& numbers) {
  (void)differentiated({wanted, false}, numbers);
  for (const std::shared_ptr<Body>& branch : branches_) (void)reach_of(*branch, wanted, numbers);
  // As of a loop.
  if (std::any_of(branches_.begin(), branches_.end(), [](const auto& branch) { return branch->writes(); }))
    (void)differentiated({wanted, true}, numbers);
}

std::vector<Tensor> BranchBody::run_recorded(const dispatch::Call& called) {
  const BranchCall call(called);
  auto run = [&](const dispatch::Operator& op, const SymInts& numbers) {
    return below_autograd([&] { return BranchCall(call.predicate, call.captured, numbers).run(op); });
  };
  const bool has_history = std::find(needs_grad_.begin(), needs_grad_.end(), true) != needs_grad_.end();
  if (!has_history || !autograd::detail::records(call.captured)) return run(called.op, call.numbers);
  Wanted wanted;
  for (const Tensor& argument : call.captured)
    wanted.first.push_back(argument.is_floating_point() && argument.requires_grad());
  std::shared_ptr<BranchBack> parts;
  std::vector<Tensor> results, kept;
  if (is_of_capture(call.captured)) {
    results = run(called.op, call.numbers);
  } else {
    parts = differentiated(wanted, call.numbers);
    results = run(*parts->forward.op, chosen(call.numbers, parts->forward.symbols));
    kept.assign(results.begin() + static_cast<ptrdiff_t>(needs_grad_.size()), results.end());
    results.resize(needs_grad_.size());
  }
  auto formula = [body = shared_from_this(), wanted, parts](autograd::AutogradContext& context,
                                                            const std::vector<Tensor>& gradients) {
    TENON_ASSERT(parts, "the branches of a capture are walked back");
    return body->walk_back(wanted, *parts, context, gradients);
  };
  auto node = make_ref<autograd::FunctionNode>("CondBackward0", std::move(formula), parts ? parts->kind : 0);
  node->connect(call.captured, {static_cast<uint32_t>(call.captured.size())});
  if (parts) {
    kept.insert(kept.end(), call.captured.begin(), call.captured.end());
    kept.push_back(call.predicate);
    node->context().save_for_backward(std::move(kept));
    AnyValue::List numbers;
    for (const SymInt& number : call.numbers) numbers.emplace_back(number);
    node->context().saved_data["numbers"] = AnyValue(std::move(numbers));
  }
  finish_node(*node, call.captured, needs_grad_, results);
  return results;
}

std::optional<BranchOperator> branch_operator(std::vector<graph::Graph> pieces, std::vector<bool> needs_grad,
                                              std::string& why) {
  std::optional<MovedApart> moved = moved_apart(std::move(pieces), why);
  if (!moved) return std::nullopt;
  std::string text;
  for (bool each : needs_grad) text += each ? 'g' : '-';
  for (const graph::Graph& graph : moved->graphs) text += '\n' + text_of(graph);
  std::optional<MadeOperator> made =
      operator_of(std::move(text), "tenon::cond(Tensor predicate, Tensor[] captured, SymInt[] numbers) -> Tensor[]",
                  std::move(moved->graphs), why, [&](std::vector<graph::Graph> graphs, std::string name) {
                    return std::make_shared<BranchBody>(std::move(graphs), std::move(needs_grad), std::move(name));
                  });
  if (!made) return std::nullopt;
  return BranchOperator{made->op, std::static_pointer_cast<BranchBody>(made->body), std::move(moved->symbols)};
}

}  // namespace tenon::aot
