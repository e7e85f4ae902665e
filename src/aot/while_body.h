// A loop that goes on while data says so, as an operator: `tenon::while_loop.<name>`.
//
// Its condition and its body are graphs over what is carried and what they captured. It keeps nothing; where gradients
// are wanted, another such operator runs, whose body keeps what each step back needs, in stacks as long as there were
// steps. From then on their number is known, and the way back is that of a scan (loop_body.h).
#pragma once

#include "loop_body.h"

namespace tenon::aot {

class WhileBody;

struct WhileOperator {
  dispatch::OperatorRef op;
  std::shared_ptr<WhileBody> body;
  std::vector<int32_t> symbols;  // of the pieces: those whose values are the operator's numbers, in order
};

// `pieces`: the condition, the body; over the same inputs, what is carried first, in one environment. `needs_grad`: by
// result of the body, which are what is carried on, then what is kept.
std::optional<WhileOperator> while_operator(std::vector<graph::Graph> pieces, size_t carried,
                                            std::vector<bool> needs_grad, std::string& why);

struct WhileCall {
  std::span<const Tensor> carry, captured;
  SymInts numbers;

  explicit WhileCall(const dispatch::Call& call);
  WhileCall(std::span<const Tensor> c, std::span<const Tensor> o, SymInts n)
      : carry(c), captured(o), numbers(std::move(n)) {}
  std::vector<Tensor> run(const dispatch::Operator& op) const;
};

class WhileBody final : public BodyOperator, public std::enable_shared_from_this<WhileBody> {
 public:
  WhileBody(std::vector<graph::Graph> graphs, size_t carried, std::vector<bool> needs_grad, std::string name);

  // As of a scan. By argument: whether its gradient is wanted.
  void prepare_gradient(const std::vector<bool>& wanted, const SymInts& numbers) {
    (void)forward(wanted, numbers);
    steps().body->prepare_gradient(wanted, chosen(numbers, steps().symbols));
  }
  // By argument, what is carried first.
  std::vector<bool> wanted(std::span<const Tensor> arguments) { return steps().body->wanted(arguments); }

  std::vector<Tensor> shapes(const dispatch::Call& call) const override;
  std::vector<Tensor> run_recorded(const dispatch::Call& call) override;
  runtime::BodiesRef bodies() const override { return bodies_; }

 private:
  // What runs in place of the loop where gradients are wanted.
  struct Forward {
    WhileOperator op;
    std::shared_ptr<LoopBack> back;
  };
  std::shared_ptr<Forward> forward(const std::vector<bool>& wanted, const SymInts& numbers);
  std::shared_ptr<Forward> forward_with(std::shared_ptr<LoopBack> back, const SymInts& numbers) const;
  // The body, as that of a scan with a known number of steps.
  const LoopOperator& steps();

  size_t carried_;
  std::vector<bool> needs_grad_;
  std::shared_ptr<Body> condition_, body_;
  runtime::BodiesRef bodies_;
  support::ForkSafe<std::mutex> mutex_;  // of what follows
  std::optional<LoopOperator> steps_;
  std::map<const LoopBack*, std::shared_ptr<Forward>> forward_;  // by the way back
};

}  // namespace tenon::aot
