// The body of a loop over steps, as an operator: `tenon::scan.<name>`.
//
// A body's inputs are what is carried, one slice of each of the xs, and what it captured from outside; its results are
// what is carried on, then what is kept.
#pragma once

#include "body.h"
#include "step_back.h"

#include <tenon/autograd/function.h>

namespace tenon::aot {

class LoopBody;

struct LoopOperator {
  dispatch::OperatorRef op;
  std::shared_ptr<LoopBody> body;
  std::vector<int32_t> symbols;  // of the piece: those whose values are the operator's numbers, in order
};

// `piece`: inputs and results in the order above; carries are contiguous, and results are no inputs, nor do they share
// memory. Nothing, and `why`, if the body depends on what is no such number, or draws random ones.
std::optional<LoopOperator> loop_operator(graph::Graph piece, LoopShape shape, std::string& why);

// The arguments of such an operator.
struct LoopCall {
  std::span<const Tensor> carry, xs, captured;
  SymInts numbers;
  SymInt steps;
  bool reverse = false;

  explicit LoopCall(const dispatch::Call& call);
  LoopCall(std::span<const Tensor> c, std::span<const Tensor> x, std::span<const Tensor> o, SymInts n, SymInt s, bool r)
      : carry(c), xs(x), captured(o), numbers(std::move(n)), steps(std::move(s)), reverse(r) {}
  std::vector<Tensor> run(const dispatch::Operator& op) const;
  std::vector<Tensor> tensors() const;
};

// What the loop back is, and the forward that it needs.
struct LoopBack {
  LoopOperator forward, backward;
  std::vector<Kept> kept;
  // Of a forward that runs again, which may be none: what of the loop it takes.
  std::vector<int32_t> carry_again, xs_again, captured_again;
  std::vector<int32_t> slots;  // what the loop back carries: by slot, which carry's gradient
  std::vector<bool> slot_has_gradient;
  std::vector<int32_t> summed;        // and sums up: which captured tensor's gradient
  std::vector<int32_t> tangents;      // its first xs: which result's gradient
  std::vector<int32_t> sliced;        // what it keeps: the gradient of which of the xs
  uint64_t kind = 0;                  // of its nodes: those of one kind can be captured alike
  Ref<sym::ShapeEnv> env;             // of the conditions
  std::vector<sym::Expr> conditions;  // under which it was made
};

// By result, by input: whether a gradient of the one comes to the other.
using Reach = std::vector<std::vector<bool>>;
Reach reach_of(const Body& body, const std::vector<bool>& wanted, const SymInts& numbers);

// What the operator's kernels share.
class LoopBody final : public BodyOperator, public std::enable_shared_from_this<LoopBody> {
 public:
  LoopBody(graph::Graph graph, LoopShape shape, std::string name);

  const Body& body() const { return *body_; }
  // By argument: whether its gradient is wanted.
  std::vector<bool> wanted(std::span<const Tensor> arguments) const;
  // What the loop back is, where these are wanted. An `autograd::NotTraceable` if an author's backward cannot be a part
  // of it.
  std::shared_ptr<LoopBack> gradient(const std::vector<bool>& wanted, const SymInts& numbers) {
    return differentiated({wanted, false}, numbers);
  }
  // Finds out now all that a walk back may ask, and what stands against it: an Error.
  void prepare_gradient(const std::vector<bool>& wanted, const SymInts& numbers) {
    (void)gradient(wanted, numbers);
    (void)reached(wanted, {}, numbers);
    // A step that is recorded with its history may need what it has written over.
    if (body_->writes()) (void)differentiated({wanted, true}, numbers);
  }
  // Gives the results of a loop their history. `kept`: what its forward stacked. Without parts, nobody walks back.
  void record(const char* name, const LoopCall& call, std::shared_ptr<LoopBack> parts, std::vector<Tensor> kept,
              std::vector<Tensor>& results);

  std::vector<Tensor> shapes(const dispatch::Call& call) const override { return shapes(LoopCall(call)); }
  std::vector<Tensor> run_recorded(const dispatch::Call& call) override {
    return run_recorded(call.op, LoopCall(call));
  }
  runtime::BodiesRef bodies() const override { return bodies_; }

 private:
  // With `again`, for gradients that are differentiated themselves, forward runs once more, with its history, and the
  // loop back computes each step again: what the first forward kept has no history.
  using Wanted = ByWanted<LoopBack>::Wanted;  // by input; again
  std::vector<Tensor> shapes(const LoopCall& call) const;
  std::vector<Tensor> run_recorded(const dispatch::Operator& op, const LoopCall& call);
  std::shared_ptr<LoopBack> differentiated(const Wanted& wanted, const SymInts& numbers);
  std::shared_ptr<LoopBack> differentiate(const Wanted& wanted, const sym::EnvCopy& copy) const;
  std::vector<Tensor> walk_back(const Wanted& wanted, const LoopBack& parts, autograd::AutogradContext& context,
                                std::vector<Tensor> gradients);
  // By input: whether a gradient of one of these results comes to it, by way of any number of steps. In eager, what is
  // not reached has no gradient; the loop back would give it zeros.
  std::vector<bool> reached(const std::vector<bool>& wanted, const std::vector<bool>& given, const SymInts& numbers);

  LoopShape shape_;
  std::string name_;
  std::shared_ptr<Body> body_;
  runtime::BodiesRef bodies_;
  ByWanted<LoopBack> back_;
  support::ForkSafe<std::mutex> mutex_;       // of the map
  std::map<std::vector<bool>, Reach> reach_;  // by what is wanted
};

}  // namespace tenon::aot
