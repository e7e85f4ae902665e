// Operators with bodies: loops and branches. What such an operator does is graphs of its own.
//
// A body is a graph without mutation of its inputs, whose results have memory of their own. Its environment is its own,
// too: the symbols of the graph that it was cut out of are numbers, which the operator is called with. The same bodies
// are the same operator, so that a function that is traced twice gives the same graph twice.
#pragma once

#include "variants.h"

#include <tenon/aot/aot.h>
#include <tenon/autograd/function.h>
#include <tenon/runtime/body.h>
#include <tenon/support/function_ref.h>

#include <algorithm>
#include <map>

namespace tenon::aot {

// A graph that is compiled when it first runs, once for each set of answers that compiling it asks for.
class Body final : public runtime::Body {
 public:
  // `dense`: how many of its results lie densely in the order of their memory, whatever the graph gives.
  Body(graph::Graph graph, size_t dense);

  const graph::Graph& graph() const { return graph_; }
  const sym::EnvSnapshot& known() const { return known_; }
  const Tensor& input(size_t at) const { return graph_.meta(graph_.inputs[at]); }
  const Tensor& result(size_t at) const { return results_[at]; }
  size_t input_count() const { return graph_.inputs.size(); }
  size_t result_count() const { return results_.size(); }
  // Whether it changes what it made in place.
  bool writes() const {
    return std::any_of(graph_.nodes.begin(), graph_.nodes.end(),
                       [](const graph::Node& node) { return node.op->schema().is_mutable(); });
  }

  runtime::BodyPlanRef find(std::span<const int64_t> numbers) override;
  std::vector<runtime::BodyPlanRef> plans() const override { return compiled_.all(); }

 private:
  graph::Graph graph_;
  sym::EnvSnapshot known_;
  std::vector<Tensor> results_;  // what they are like
  mutable Variants<const runtime::BodyPlan> compiled_;
};

// The joint graph of a body. A result that looks into another value is copied.
JointGraph trace_body(graph::Graph graph, std::vector<bool> requires_grad, bool grad_enabled);

// By result of the node, if its operator has bodies: which of the values that the node refers to it comes from, one
// after the other. Nothing: from any of them.
std::vector<std::vector<bool>> origins_of_results(const graph::Node& node);

// The values of numbers as far as they are known here: of symbolic ones their hints.
std::vector<int64_t> hints(const SymInts& numbers);
// Guards that conditions of a body hold for these numbers, which they do now.
void require(std::span<const sym::Expr> conditions, const SymInts& numbers);

// What the kernels of such an operator share.
class BodyOperator {
 public:
  virtual ~BodyOperator() = default;
  // Fakes of the results.
  virtual std::vector<Tensor> shapes(const dispatch::Call& call) const = 0;
  // With autograd.
  virtual std::vector<Tensor> run_recorded(const dispatch::Call& call) = 0;
  // Without: what plans run by themselves.
  virtual runtime::BodiesRef bodies() const = 0;
};

struct MadeOperator {
  dispatch::OperatorRef op;
  std::shared_ptr<BodyOperator> body;
};

// Pieces of one graph, in an environment of their own.
struct MovedApart {
  std::vector<graph::Graph> graphs;
  std::vector<int32_t> symbols;  // of the pieces: those whose values are the operator's numbers, in order
};
// Nothing, and `why`, if a piece depends on what is no such number.
std::optional<MovedApart> moved_apart(std::vector<graph::Graph> pieces, std::string& why);
// Everything that tells a graph apart.
std::string text_of(const graph::Graph& graph);

// The operator whose bodies have this text, made if there is none yet; `make` is given its name. Nothing, and `why`, if
// a graph draws random numbers.
using MakeOperator = FunctionRef<std::shared_ptr<BodyOperator>(std::vector<graph::Graph> graphs, std::string name)>;
std::optional<MadeOperator> operator_of(std::string text, const char* schema, std::vector<graph::Graph> graphs,
                                        std::string& why, MakeOperator make);

// What is made of bodies where gradients are wanted, by which are: each once for every set of answers that it asks for.
// `Made` has `conditions`.
template <typename Made>
class ByWanted {
 public:
  using Wanted = std::pair<std::vector<bool>, bool>;  // by input; the gradients are differentiated themselves

  // `make(copy)`, in a copy of the bodies' environment.
  template <typename Make>
  std::shared_ptr<Made> find(const Body& body, const Wanted& wanted, const SymInts& numbers, Make&& make) {
    Variants<Made>* variants = nullptr;
    {
      std::lock_guard lock(mutex_);
      std::unique_ptr<Variants<Made>>& found = made_[wanted];
      if (!found) found = std::make_unique<Variants<Made>>();
      variants = found.get();
    }
    const std::vector<int64_t> values = hints(numbers);
    std::shared_ptr<Made> made = variants->find(body.known(), body.graph(), true, values, make, [&] {
      sym::EnvCopy copy(body.known(), values, {});
      return make(copy);
    });
    // Where numbers are symbols, what was decided for it must hold at every call.
    require(made->conditions, numbers);
    return made;
  }

 private:
  support::ForkSafe<std::mutex> mutex_;  // of the map
  std::map<Wanted, std::unique_ptr<Variants<Made>>> made_;
};

// Whether a call is part of a capture: of that nobody walks back, because its graphs are differentiated as a whole.
bool is_of_capture(std::span<const Tensor> arguments);
template <typename Run>
auto below_autograd(Run&& run) {
  dispatch::ExcludeKeys keys(KeySet{DispatchKey::Autograd, DispatchKey::ADInplaceOrView});
  return run();
}
// Gives the results the history of a node that is connected already, those that require grad.
void finish_node(autograd::FunctionNode& node, std::span<const Tensor> arguments, const std::vector<bool>& needs_grad,
                 std::vector<Tensor>& results);
// Fakes of what a body gives, for these numbers.
std::vector<Tensor> translated(const Body& body, const SymInts& numbers);
SymInts chosen(const SymInts& numbers, const std::vector<int32_t>& which);

}  // namespace tenon::aot
