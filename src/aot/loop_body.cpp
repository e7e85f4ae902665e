#include "loop_body.h"

#include <tenon/dispatch/operator.h>
#include <tenon/fake/fake.h>

namespace tenon::aot {

using dispatch::Value;

LoopCall::LoopCall(const dispatch::Call& call)
    : carry(call.args[0].tensors()),
      xs(call.args[1].tensors()),
      captured(call.args[2].tensors()),
      numbers(call.args[3].sym_ints()),
      steps(call.args[4].sym_int()),
      reverse(call.args[5].boolean()) {}

std::vector<Tensor> LoopCall::run(const dispatch::Operator& op) const {
  const Value args[] = {Value(carry), Value(xs), Value(captured), Value(numbers), Value(steps), Value(reverse)};
  dispatch::Results results = dispatch::call_boxed(op, args);
  std::span<const Tensor> tensors = results[0].tensors();
  return {tensors.begin(), tensors.end()};
}

std::vector<Tensor> LoopCall::tensors() const {
  std::vector<Tensor> all(carry.begin(), carry.end());
  all.insert(all.end(), xs.begin(), xs.end());
  all.insert(all.end(), captured.begin(), captured.end());
  return all;
}

LoopBody::LoopBody(graph::Graph graph, LoopShape shape, std::string name)
    : shape_(std::move(shape)), name_(std::move(name)) {
  body_ = std::make_shared<Body>(std::move(graph), shape_.carried);
  bodies_ =
      std::make_shared<runtime::Bodies>(runtime::Bodies{runtime::Bodies::Kind::Scan, name_, {body_}, shape_.carried});
}

std::vector<Tensor> LoopBody::shapes(const LoopCall& call) const {
  std::vector<Tensor> made = translated(*body_, call.numbers);
  for (size_t at = shape_.carried; at < made.size(); ++at) {
    SymInts sizes{call.steps};
    for (const SymInt& size : made[at].sym_sizes()) sizes.push_back(size);
    made[at] = fake::make(sizes, core::contiguous_strides(sizes.span()), made[at].dtype(), made[at].device());
  }
  return made;
}

std::optional<LoopOperator> loop_operator(graph::Graph piece, LoopShape shape, std::string& why) {
  std::optional<MovedApart> moved = moved_apart({std::move(piece)}, why);
  if (!moved) return std::nullopt;
  std::string text = fmt::format("{} carried, {} sliced, ", shape.carried, shape.sliced);
  for (bool needs_grad : shape.needs_grad) text += needs_grad ? 'g' : '-';
  text += '\n' + text_of(moved->graphs[0]);
  std::optional<MadeOperator> made = operator_of(
      std::move(text),
      "tenon::scan(Tensor[] carry, Tensor[] xs, Tensor[] captured, SymInt[] numbers, SymInt steps, bool reverse) -> "
      "Tensor[]",
      std::move(moved->graphs), why, [&](std::vector<graph::Graph> graphs, std::string name) {
        return std::make_shared<LoopBody>(std::move(graphs[0]), std::move(shape), std::move(name));
      });
  if (!made) return std::nullopt;
  return LoopOperator{made->op, std::static_pointer_cast<LoopBody>(made->body), std::move(moved->symbols)};
}

}  // namespace tenon::aot
