// Two branches, as an operator: `tenon::cond.<name>`.
//
// Both are bodies over the same captured tensors, and give results that are alike. The way back is another such
// operator, on the same predicate: each branch forth keeps what it needs back, in tensors that the other leaves empty.
#pragma once

#include "body.h"
#include "step_back.h"

namespace tenon::aot {

class BranchBody;

struct BranchOperator {
  dispatch::OperatorRef op;
  std::shared_ptr<BranchBody> body;
  std::vector<int32_t> symbols;  // of the pieces: those whose values are the operator's numbers, in order
};

// `pieces`: if the predicate holds, if it does not; over the same inputs, in one environment, with results that have
// memory of their own. `needs_grad`: by result.
std::optional<BranchOperator> branch_operator(std::vector<graph::Graph> pieces, std::vector<bool> needs_grad,
                                              std::string& why);

struct BranchCall {
  Tensor predicate;
  std::span<const Tensor> captured;
  SymInts numbers;

  explicit BranchCall(const dispatch::Call& call);
  BranchCall(Tensor p, std::span<const Tensor> c, SymInts n)
      : predicate(std::move(p)), captured(c), numbers(std::move(n)) {}
  std::vector<Tensor> run(const dispatch::Operator& op) const;
};

// The way back, and the forward that it needs.
struct BranchBack {
  BranchOperator forward, backward;
  size_t kept = 0;                    // how many results more than its own forward has: backward's first inputs
  std::vector<int32_t> captured;      // then: which captured tensors
  std::vector<int32_t> tangents;      // then: which results' gradients
  std::vector<int32_t> gradients;     // what backward gives: which captured tensors' gradients
  uint64_t kind = 0;                  // of its nodes: those of one kind can be captured alike
  Ref<sym::ShapeEnv> env;             // of the conditions
  std::vector<sym::Expr> conditions;  // under which it was made
};

class BranchBody final : public BodyOperator, public std::enable_shared_from_this<BranchBody> {
 public:
  BranchBody(std::vector<graph::Graph> graphs, std::vector<bool> needs_grad, std::string name);

  // As of a loop.
  void prepare_gradient(const std::vector<bool>& wanted, const SymInts& numbers);

  std::vector<Tensor> shapes(const dispatch::Call& call) const override;
  std::vector<Tensor> run_recorded(const dispatch::Call& call) override;
  runtime::BodiesRef bodies() const override { return bodies_; }

 private:
  using Wanted = ByWanted<BranchBack>::Wanted;
  std::shared_ptr<BranchBack> differentiated(const Wanted& wanted, const SymInts& numbers);
  std::shared_ptr<BranchBack> differentiate(const Wanted& wanted, const sym::EnvCopy& copy) const;
  std::vector<Tensor> walk_back(const Wanted& wanted, const BranchBack& first, autograd::AutogradContext& context,
                                std::vector<Tensor> gradients);

  std::vector<bool> needs_grad_;
  std::string name_;
  std::vector<std::shared_ptr<Body>> branches_;
  runtime::BodiesRef bodies_;
  ByWanted<BranchBack> back_;
};

}  // namespace tenon::aot
