// The loop back. Forward runs another body, which also keeps what the gradients of a step need; backward is a loop over
// that, in the other direction, whose carry is the gradient of the carry, and the sums of the gradients of what the
// body captured. It is an operator like the first, and has a gradient in the same way.
#include "graph_builder.h"
#include "loop_body.h"

#include "graph/translation.h"
#include "support/thread_context.h"

#include <tenon/autograd/engine.h>
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

std::shared_ptr<LoopBack> LoopBody::differentiate(const Wanted& wanted, const sym::EnvCopy& copy) const {
  support::SwapContext apart(support::ThreadContext{});
  const size_t carried = shape_.carried, own = carried + shape_.sliced;
  const Graph body = graph::in_copy(body_->graph(), copy);
  auto made = std::make_shared<LoopBack>();
  made->kind = autograd::new_kind();
  Step step = wanted.second ? step_again(body, shape_, wanted.first) : step_once(body, shape_, wanted.first);
  step.forward.written.clear();
  step.backward.written.clear();
  Graph& backward = step.backward;
  const auto& [kept, tangents, gradients] = std::tie(step.kept, step.tangents, step.gradients);

  // The loop back: [gradients of carries, sums | gradients of what was kept, what forward kept | captured].
  backward.inputs.clear();
  backward.outputs.clear();
  Builder build(backward);
  std::vector<ValueId> carries;                   // by slot: the new one
  std::vector<std::pair<ValueId, ValueId>> sums;  // the sum so far, and what is added
  for (size_t at = 0; at < carried; ++at) {
    ValueId tangent = tangents[at], gradient = gradients[at];
    if (tangent == graph::kNoValue && gradient == graph::kNoValue) continue;
    made->slots.push_back(static_cast<int32_t>(at));
    made->slot_has_gradient.push_back(gradient != graph::kNoValue);
    carries.push_back(gradient);
    if (tangent != graph::kNoValue)
      backward.inputs.push_back(tangent);
    else
      build.input(Builder::dense_like(backward.meta(gradient)));
  }
  for (size_t at = own; at < body_->input_count(); ++at)
    if (ValueId gradient = gradients[at]; gradient != graph::kNoValue) {
      made->summed.push_back(static_cast<int32_t>(at - own));
      sums.emplace_back(build.input(Builder::dense_like(backward.meta(gradient))), gradient);
    }
  LoopShape back;
  back.carried = backward.inputs.size();
  for (size_t at = carried; at < tangents.size(); ++at)
    if (ValueId tangent = tangents[at]; tangent != graph::kNoValue) {
      made->tangents.push_back(static_cast<int32_t>(at));
      backward.inputs.push_back(build.given_dense(tangent));
    }
  for (size_t at = 0; at < kept.size(); ++at)
    if (step.kept_from[at].from != Kept::From::Captured) backward.inputs.push_back(kept[at]);
  back.sliced = backward.inputs.size() - back.carried;
  for (size_t at = 0; at < kept.size(); ++at)
    if (step.kept_from[at].from == Kept::From::Captured) backward.inputs.push_back(kept[at]);
  for (size_t at = 0; at < carries.size(); ++at)
    build.result(carries[at] != graph::kNoValue ? carries[at] : build.zeros(backward.meta(backward.inputs[at])));
  for (const auto& [sum, gradient] : sums) build.result(build.sum(sum, gradient));
  for (size_t at = carried; at < own; ++at)
    if (ValueId gradient = gradients[at]; gradient != graph::kNoValue) {
      made->sliced.push_back(static_cast<int32_t>(at - carried));
      build.result(gradient);
    }
  back.needs_grad.assign(backward.outputs.size(), true);
  std::string why;
  auto make = [&](Graph graph, LoopShape shape) {
    graph::remove_dead_code(graph);
    std::optional<LoopOperator> op = loop_operator(std::move(graph), std::move(shape), why);
    TENON_ASSERT(op, "{} cannot be differentiated: {}", name_, why);
    return std::move(*op);
  };
  if (!wanted.second || !step.carry_again.empty()) made->forward = make(std::move(step.forward), std::move(step.shape));
  made->backward = make(std::move(backward), std::move(back));
  made->kept = std::move(step.kept_from);
  made->carry_again = std::move(step.carry_again);
  made->xs_again = std::move(step.xs_again);
  made->captured_again = std::move(step.captured_again);
  made->env = copy.env();
  made->conditions = copy.conditions();
  return made;
}

std::shared_ptr<LoopBack> LoopBody::differentiated(const Wanted& wanted, const SymInts& numbers) {
  return back_.find(*body_, wanted, numbers, [&](const sym::EnvCopy& copy) { return differentiate(wanted, copy); });
}

Reach reach_of(const Body& of, const std::vector<bool>& wanted, const SymInts& numbers) {
  support::SwapContext apart(support::ThreadContext{});
  RecordsStepBack inner_loops_too;
  sym::EnvCopy copy(of.known(), hints(numbers), {});
  const Graph body = graph::in_copy(of.graph(), copy);
  fake::FakeMode fakes;
  std::vector<Tensor> inputs, leaves;
  std::vector<size_t> which;
  for (size_t at = 0; at < body.inputs.size(); ++at) {
    inputs.push_back(fake::like(body.meta(body.inputs[at])));
    if (!wanted[at]) continue;
    leaves.push_back(inputs.back().set_requires_grad(true));
    which.push_back(at);
  }
  graph::InterpretOptions options;
  options.seeds = false;
  options.before_node = [](const graph::Node& node) { autograd::set_grad_enabled(node.grad_enabled); };
  const std::vector<Value> results = graph::interpret(body, inputs, options);
  autograd::set_grad_enabled(true);
  Reach reach;
  for (const Value& result : results) {
    reach.emplace_back(inputs.size(), false);
    if (!result.tensor().requires_grad()) continue;
    const std::vector<Tensor> roots{result.tensor()}, starts{fake::like(result.tensor())};
    const std::vector<Tensor> gradients = autograd::grad(roots, leaves, starts, true, false, true);
    for (size_t at = 0; at < gradients.size(); ++at) reach.back()[which[at]] = gradients[at].defined();
  }
  return reach;
}

std::vector<bool> LoopBody::reached(const std::vector<bool>& wanted, const std::vector<bool>& given,
                                    const SymInts& numbers) {
  auto known = [&]() -> const Reach* {
    std::lock_guard lock(mutex_);
    auto found = reach_.find(wanted);
    return found == reach_.end() ? nullptr : &found->second;
  };
  const Reach* step = known();
  if (!step) {
    Reach made = reach_of(*body_, wanted, numbers);
    std::lock_guard lock(mutex_);
    step = &reach_.emplace(wanted, std::move(made)).first->second;
  }
  // From a result to what its step was given; from a carry on to the step before.
  std::vector<bool> reached(body_->input_count(), false), seen(given.size(), false);
  std::vector<size_t> waiting;
  for (size_t at = 0; at < given.size(); ++at)
    if (given[at]) waiting.push_back(at);
  while (!waiting.empty()) {
    const size_t result = waiting.back();
    waiting.pop_back();
    if (seen[result]) continue;
    seen[result] = true;
    for (size_t input = 0; input < reached.size(); ++input) {
      if (!(*step)[result][input]) continue;
      reached[input] = true;
      if (input < shape_.carried) waiting.push_back(input);
    }
  }
  return reached;
}

// The gradients of [carry, xs, captured]. Saved: what forward stacked, then these themselves.
std::vector<Tensor> LoopBody::walk_back(const Wanted& wanted, const LoopBack& first, autograd::AutogradContext& context,
                                        std::vector<Tensor> gradients) {
  using From = Kept::From;
  const size_t sliced = shape_.sliced;
  size_t stacks = 0;
  for (const Kept& each : first.kept) stacks += each.from == From::Stack ? 1 : 0;
  auto primal = [&](size_t at) { return context.saved_tensor(stacks + at); };
  SymInts numbers;
  for (const AnyValue& number : context.saved_data.at("numbers").list()) numbers.push_back(number.sym_int());
  const SymInt steps = context.saved_data.at("steps").sym_int();
  const bool reverse = context.saved_data.at("reverse").boolean();

  std::vector<bool> came;
  for (const Tensor& gradient : gradients) came.push_back(gradient.defined());
  const bool all = std::find(came.begin(), came.end(), false) == came.end();
  if (!all) {
    const std::vector<Tensor> like = shapes(LoopCall({}, {}, {}, numbers, steps, reverse));
    for (size_t at = 0; at < gradients.size(); ++at)
      if (!came[at] && like[at].is_floating_point())
        gradients[at] = zeros(like[at].sym_sizes(), TensorOptions(like[at].dtype(), like[at].device()));
  }

  std::shared_ptr<LoopBack> again;
  std::vector<Tensor> stacked;
  if (autograd::grad_enabled()) {
    again = differentiated({wanted.first, true}, numbers);
    std::vector<Tensor> carry, xs, captured;
    for (int32_t at : again->carry_again) carry.push_back(primal(static_cast<size_t>(at)));
    for (int32_t at : again->xs_again) xs.push_back(primal(shape_.carried + static_cast<size_t>(at)));
    for (int32_t at : again->captured_again)
      captured.push_back(primal(shape_.carried + sliced + static_cast<size_t>(at)));
    if (!carry.empty()) {
      stacked = LoopCall(carry, xs, captured, chosen(numbers, again->forward.symbols), steps, reverse)
                    .run(*again->forward.op);
      stacked.erase(stacked.begin(), stacked.begin() + static_cast<ptrdiff_t>(carry.size()));
    }
  } else {
    for (size_t at = 0; at < stacks; ++at) stacked.push_back(context.saved_tensor(at));
  }
  const LoopBack& parts = again ? *again : first;
  std::vector<Tensor> carry, xs, captured;
  for (int32_t at : parts.slots) carry.push_back(gradients[static_cast<size_t>(at)].contiguous());
  const AnyValue::List& sizes = context.saved_data.at("sizes").list();
  for (int32_t at : parts.summed) {
    SymInts of;
    for (const AnyValue& size : sizes[static_cast<size_t>(at)].list()) of.push_back(size.sym_int());
    const Tensor& meta = body_->input(shape_.carried + sliced + static_cast<size_t>(at));
    carry.push_back(zeros(of, TensorOptions(meta.dtype(), meta.device())));
  }
  for (int32_t at : parts.tangents) xs.push_back(gradients[static_cast<size_t>(at)]);
  for (const Kept& each : parts.kept) {
    if (each.from == From::Stack) xs.push_back(stacked[each.index]);
    if (each.from == From::Slice) xs.push_back(primal(shape_.carried + each.index));
    if (each.from == From::Captured) captured.push_back(primal(shape_.carried + sliced + each.index));
  }
  std::vector<Tensor> made =
      LoopCall(carry, xs, captured, chosen(numbers, parts.backward.symbols), steps, !reverse).run(*parts.backward.op);
  std::vector<Tensor> given(body_->input_count());
  size_t next = 0;
  for (size_t slot = 0; slot < parts.slots.size(); ++slot, ++next)
    if (parts.slot_has_gradient[slot]) given[static_cast<size_t>(parts.slots[slot])] = made[next];
  for (int32_t at : parts.summed) given[shape_.carried + sliced + static_cast<size_t>(at)] = made[next++];
  for (int32_t at : parts.sliced) given[shape_.carried + static_cast<size_t>(at)] = made[next++];
  if (!all) {
    const std::vector<bool> is_reached = reached(wanted.first, came, numbers);
    for (size_t at = 0; at < given.size(); ++at)
      if (!is_reached[at]) given[at] = Tensor();
  }
  return given;
}

std::vector<bool> LoopBody::wanted(std::span<const Tensor> arguments) const {
  // A carry has gradients at every step, if it has them at one.
  std::vector<bool> wanted;
  for (size_t at = 0; at < arguments.size(); ++at)
    wanted.push_back(arguments[at].is_floating_point() &&
                     (arguments[at].requires_grad() || (at < shape_.carried && shape_.needs_grad[at])));
  return wanted;
}

std::vector<Tensor> LoopBody::run_recorded(const dispatch::Operator& op, const LoopCall& call) {
  const std::vector<Tensor> arguments = call.tensors();
  if (!autograd::detail::records(arguments)) return below_autograd([&] { return call.run(op); });
  if (is_of_capture(arguments)) {
    std::vector<Tensor> results = below_autograd([&] { return call.run(op); });
    record("ScanBackward0", call, nullptr, {}, results);
    return results;
  }
  std::shared_ptr<LoopBack> parts = gradient(wanted(arguments), call.numbers);
  std::vector<Tensor> results = below_autograd([&] {
    return LoopCall(call.carry, call.xs, call.captured, chosen(call.numbers, parts->forward.symbols), call.steps,
                    call.reverse)
        .run(*parts->forward.op);
  });
  std::vector<Tensor> kept(results.begin() + static_cast<ptrdiff_t>(shape_.needs_grad.size()), results.end());
  results.resize(shape_.needs_grad.size());
  record("ScanBackward0", call, std::move(parts), std::move(kept), results);
  return results;
}

void LoopBody::record(const char* name, const LoopCall& call, std::shared_ptr<LoopBack> parts, std::vector<Tensor> kept,
                      std::vector<Tensor>& results) {
  const std::vector<Tensor> arguments = call.tensors();
  auto formula = [body = shared_from_this(), wanted = Wanted{wanted(arguments), false}, parts](
                     autograd::AutogradContext& context, const std::vector<Tensor>& gradients) {
    TENON_ASSERT(parts, "the loop of a capture is walked back");
    return body->walk_back(wanted, *parts, context, gradients);
  };
  auto node = make_ref<autograd::FunctionNode>(name, std::move(formula), parts ? parts->kind : 0);
  auto count = [](std::span<const Tensor> list) { return static_cast<uint32_t>(list.size()); };
  node->connect(arguments, {count(call.carry), count(call.xs), count(call.captured)});
  autograd::AutogradContext& context = node->context();
  if (parts) {
    kept.insert(kept.end(), arguments.begin(), arguments.end());
    context.save_for_backward(std::move(kept));
    AnyValue::List numbers, sizes;
    for (const SymInt& number : call.numbers) numbers.emplace_back(number);
    for (const Tensor& captured : call.captured) {
      AnyValue::List of;
      for (const SymInt& size : captured.sym_sizes()) of.emplace_back(size);
      sizes.emplace_back(std::move(of));
    }
    context.saved_data["numbers"] = AnyValue(std::move(numbers));
    context.saved_data["sizes"] = AnyValue(std::move(sizes));
    context.saved_data["steps"] = AnyValue(call.steps);
    context.saved_data["reverse"] = AnyValue(call.reverse);
  }
  finish_node(*node, arguments, shape_.needs_grad, results);
}

}  // namespace tenon::aot
