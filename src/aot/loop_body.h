// The body of a loop over steps, as an operator: `tenon::scan.<name>`.
//
// A body is a graph without mutation of its inputs. Its inputs are what is carried, one slice of each of the xs, and
// what it captured from outside; its results are what is carried on, then what is kept. Its environment is its own: the
// symbols of the graph that it was cut out of are numbers, which the operator is called with. The same body is the same
// operator, so that a function that is traced twice gives the same graph twice.
#pragma once

#include "variants.h"

#include <tenon/aot/aot.h>
#include <tenon/autograd/function.h>

#include <map>

namespace tenon::aot {

struct LoopShape {
  size_t carried = 0, sliced = 0;  // of the inputs; the others are captured
  std::vector<bool> needs_grad;    // by result, where an input that it comes from requires grad
  auto operator<=>(const LoopShape&) const = default;
};

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

// What the operator's kernels share.
class LoopBody : public std::enable_shared_from_this<LoopBody> {
 public:
  LoopBody(graph::Graph graph, LoopShape shape, std::string name);

  // Finds out now what the loop back is. By input: whether its gradient is wanted. An `autograd::NotTraceable` if an
  // author's backward cannot be a part of it.
  void prepare_gradient(const std::vector<bool>& wanted, const SymInts& numbers) {
    (void)differentiated({wanted, false}, numbers);
  }

  // Fakes of the results, for these arguments.
  std::vector<Tensor> shapes(const LoopCall& call) const;
  std::vector<Tensor> run(const LoopCall& call);
  std::vector<Tensor> run_recorded(const dispatch::Operator& op, const LoopCall& call);

 private:
  // What runs in place of the body where gradients are wanted, and what the loop back does.
  struct Differentiated {
    // What the loop back needs of forward: what forward stacks besides its results, one of the xs, a captured tensor.
    struct Kept {
      enum class From : uint8_t { Stack, Slice, Captured } from = From::Stack;
      size_t index = 0;
    };
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
  // `again`: for gradients that are differentiated themselves. Forward then runs once more, with its history, and the
  // loop back computes each step again: what the first forward kept has no history.
  using Wanted = std::pair<std::vector<bool>, bool>;  // by input; again
  std::shared_ptr<Differentiated> differentiated(const Wanted& wanted, const SymInts& numbers);
  std::shared_ptr<Differentiated> differentiate(const Wanted& wanted, const sym::EnvCopy& copy) const;
  struct Step;
  Step step_once(const graph::Graph& body, const std::vector<bool>& wanted, Differentiated& made) const;
  Step step_again(const graph::Graph& body, const std::vector<bool>& wanted, Differentiated& made) const;
  std::vector<Tensor> walk_back(const Wanted& wanted, const Differentiated& parts, autograd::AutogradContext& context,
                                std::vector<Tensor> gradients);
  // By input: whether a gradient of one of these results comes to it, by way of any number of steps. In eager, what is
  // not reached has no gradient; the loop back would give it zeros.
  std::vector<bool> reached(const std::vector<bool>& wanted, const std::vector<bool>& given, const SymInts& numbers);
  // The same within a step, by result.
  using Reach = std::vector<std::vector<bool>>;
  Reach step_reach(const std::vector<bool>& wanted, const SymInts& numbers) const;
  // The values of the symbols as far as they are known here: of symbolic numbers their hints.
  static std::vector<int64_t> hints(const SymInts& numbers);

  graph::Graph graph_;
  LoopShape shape_;
  std::string name_;
  std::vector<Tensor> last_;  // what the last carry is like: dense, in the order of its memory
  sym::EnvSnapshot known_;
  Variants<GraphFunction> executables_;
  support::ForkSafe<std::mutex> mutex_;  // of the map
  std::map<Wanted, std::unique_ptr<Variants<Differentiated>>> orders_;
  std::map<std::vector<bool>, Reach> reach_;  // by what is wanted
};

}  // namespace tenon::aot
