#include "while_body.h"

#include "graph/translation.h"
#include "graph_builder.h"
#include "support/thread_context.h"

#include "autograd/author_formula.h"

#include <tenon/fake/dynamic_size.h>
#include <tenon/fake/fake.h>

namespace tenon::aot {

using dispatch::Value;

WhileCall::WhileCall(const dispatch::Call& call)
    : carry(call.args[0].tensors()), captured(call.args[1].tensors()), numbers(call.args[2].sym_ints()) {}

std::vector<Tensor> WhileCall::run(const dispatch::Operator& op) const {
  const Value args[] = {Value(carry), Value(captured), Value(numbers)};
  dispatch::Results results = dispatch::call_boxed(op, args);
  std::span<const Tensor> tensors = results[0].tensors();
  return {tensors.begin(), tensors.end()};
}

WhileBody::WhileBody(std::vector<graph::Graph> graphs, size_t carried, std::vector<bool> needs_grad, std::string name)
    : carried_(carried), needs_grad_(std::move(needs_grad)) {
  condition_ = std::make_shared<Body>(std::move(graphs[0]), 0);
  body_ = std::make_shared<Body>(std::move(graphs[1]), carried);
  bodies_ = std::make_shared<runtime::Bodies>(
      runtime::Bodies{runtime::Bodies::Kind::While, std::move(name), {condition_, body_}, carried});
}

std::vector<Tensor> WhileBody::shapes(const dispatch::Call& call) const {
  std::vector<Tensor> made = translated(*body_, WhileCall(call).numbers);
  // As many steps as data tell.
  std::optional<SymInt> steps;
  for (size_t at = carried_; at < made.size(); ++at) {
    if (!steps) steps = fake::new_dynamic_size();
    SymInts sizes{*steps};
    for (const SymInt& size : made[at].sym_sizes()) sizes.push_back(size);
    made[at] = fake::make(sizes, core::contiguous_strides(sizes.span()), made[at].dtype(), made[at].device());
  }
  return made;
}

const LoopOperator& WhileBody::steps() {
  std::lock_guard lock(mutex_);
  if (!steps_) {
    std::string why;
    steps_ = loop_operator(body_->graph(), {carried_, 0, needs_grad_}, why);
    TENON_ASSERT(steps_, "the body of a while_loop is no body of a scan: {}", why);
  }
  return *steps_;
}

std::shared_ptr<WhileBody::Forward> WhileBody::forward(const std::vector<bool>& wanted, const SymInts& numbers) {
  if (InsideBody::now())
    throw autograd::NotTraceable("tenon::while_loop",
                                 "the gradients of a while_loop inside of a loop or a branch are wanted, which would "
                                 "keep another number of steps each time");
  const LoopOperator& loop = steps();
  std::shared_ptr<LoopBack> back = loop.body->gradient(wanted, chosen(numbers, loop.symbols));
  {
    std::lock_guard lock(mutex_);
    if (auto found = forward_.find(back.get()); found != forward_.end()) return found->second;
  }
  std::shared_ptr<Forward> made = forward_with(back, numbers);
  std::lock_guard lock(mutex_);
  return forward_.emplace(back.get(), std::move(made)).first->second;
}

std::shared_ptr<WhileBody::Forward> WhileBody::forward_with(std::shared_ptr<LoopBack> back,
                                                            const SymInts& numbers) const {
  support::SwapContext apart(support::ThreadContext{});
  const sym::EnvCopy copy(condition_->known(), hints(numbers), {});
  graph::Graph condition = graph::in_copy(condition_->graph(), copy);
  // The body that keeps is in an environment of its own, whose numbers are some of ours.
  const std::vector<int32_t>& of_loop = back->forward.symbols;
  std::unordered_map<int32_t, sym::Expr> symbols;
  for (size_t at = 0; at < of_loop.size(); ++at)
    symbols.emplace(static_cast<int32_t>(at),
                    copy(condition_->known().env->pool().symbol(steps_->symbols[static_cast<size_t>(of_loop[at])])));
  graph::Graph body =
      graph::moved(back->forward.body->body().graph(), graph::Translation(copy.env(), std::move(symbols)));
  // How many steps there were is how long a stack is.
  if (body.outputs.size() == carried_) {
    Builder build(body);
    build.result(build.zeros(fake::make({}, {}, kUInt8, kCPU)));
  }
  std::vector<bool> needs_grad = needs_grad_;
  needs_grad.resize(body.outputs.size(), false);
  std::vector<graph::Graph> pieces;
  pieces.push_back(std::move(condition));
  pieces.push_back(std::move(body));
  std::string why;
  std::optional<WhileOperator> op = while_operator(std::move(pieces), carried_, std::move(needs_grad), why);
  TENON_ASSERT(op, "a while_loop cannot be differentiated: {}", why);
  return std::make_shared<Forward>(Forward{std::move(*op), std::move(back)});
}

std::vector<Tensor> WhileBody::run_recorded(const dispatch::Call& called) {
  const WhileCall call(called);
  std::vector<Tensor> arguments(call.carry.begin(), call.carry.end());
  arguments.insert(arguments.end(), call.captured.begin(), call.captured.end());
  auto run = [&](const dispatch::Operator& op, const SymInts& numbers) {
    return below_autograd([&] { return WhileCall(call.carry, call.captured, numbers).run(op); });
  };
  const bool has_history = std::find(needs_grad_.begin(), needs_grad_.end(), true) != needs_grad_.end();
  if (!has_history || !autograd::detail::records(arguments)) return run(called.op, call.numbers);
  const LoopOperator& loop = steps();
  auto as_scan = [&](SymInt steps) {
    return LoopCall(call.carry, {}, call.captured, chosen(call.numbers, loop.symbols), std::move(steps), false);
  };
  if (is_of_capture(arguments)) {
    std::vector<Tensor> results = run(called.op, call.numbers);
    loop.body->record("WhileBackward0", as_scan(0), nullptr, {}, results);
    return results;
  }
  std::shared_ptr<Forward> made = forward(loop.body->wanted(arguments), call.numbers);
  std::vector<Tensor> results = run(*made->op.op, chosen(call.numbers, made->op.symbols));
  std::vector<Tensor> kept(results.begin() + static_cast<ptrdiff_t>(carried_), results.end());
  results.resize(carried_);
  const SymInt steps = kept[0].size(0);
  kept.resize(made->back->forward.body->body().result_count() - carried_);
  loop.body->record("WhileBackward0", as_scan(steps), made->back, std::move(kept), results);
  return results;
}

std::optional<WhileOperator> while_operator(std::vector<graph::Graph> pieces, size_t carried,
                                            std::vector<bool> needs_grad, std::string& why) {
  std::optional<MovedApart> moved = moved_apart(std::move(pieces), why);
  if (!moved) return std::nullopt;
  std::string text = fmt::format("{} carried, ", carried);
  for (bool each : needs_grad) text += each ? 'g' : '-';
  for (const graph::Graph& graph : moved->graphs) text += '\n' + text_of(graph);
  std::optional<MadeOperator> made = operator_of(
      std::move(text), "tenon::while_loop(Tensor[] carry, Tensor[] captured, SymInt[] numbers) -> Tensor[]",
      std::move(moved->graphs), why, [&](std::vector<graph::Graph> graphs, std::string name) {
        return std::make_shared<WhileBody>(std::move(graphs), carried, std::move(needs_grad), std::move(name));
      });
  if (!made) return std::nullopt;
  return WhileOperator{made->op, std::static_pointer_cast<WhileBody>(made->body), std::move(moved->symbols)};
}

}  // namespace tenon::aot
