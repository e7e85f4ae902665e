// Ahead-of-time autograd: a captured graph becomes a forward and a backward graph without mutation, and a wrapper that
// puts back at run time what they left out.
//
//   trace_joint   runs the captured graph once on functional fakes, and the engine after it, and records both
//   partition     splits the joint graph by a minimum cut: what backward needs is saved, or recomputed where that is
//                 cheaper
//   wrap          at run time: runs forward, writes mutated inputs back, remakes outputs that alias inputs, and hangs
//                 the backward graph into autograd; backward is compiled when it is first needed
#pragma once

#include <tenon/aot/functionalize.h>
#include <tenon/autograd/meta.h>
#include <tenon/graph/graph.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace tenon::aot {

// Runs a graph on real tensors, given the values of its symbols.
using GraphFunction =
    std::function<std::vector<dispatch::Value>(std::span<const Tensor> inputs, std::span<const int64_t> symbols)>;
// Makes such a function: by interpreting the graph, or by compiling it.
using GraphCompiler = std::function<GraphFunction(const graph::Graph& graph)>;

// How one result of the captured function comes about.
struct OutputPlan {
  enum class Kind : uint8_t { Value, Input, ViewOfInput, ViewOfOutput, Number } kind = Kind::Value;
  // Value: among the forward graph's outputs; Input, ViewOfInput: which input; ViewOfOutput: among `JointGraph::remade`
  int32_t index = -1;
  std::vector<ViewLink> chain;  // ViewOfInput: how to make it
  // ViewOfInput: the forward output whose gradient goes to it, if autograd does not see that it is a view
  int32_t history = -1;
  bool is_older = false;  // ViewOfInput: autograd has not looked at it since its memory was written
  int32_t same_as = -1;   // an earlier result that is this very tensor
  autograd::Creation creation = autograd::Creation::Ordinary;
  dispatch::Value number;  // Number: possibly symbolic
};

// Of a result: whether it is made again as a view of a forward output. `Passed`: gradients of other results pass it, so
// that it is a forward output too, whose gradient the compiled function takes.
enum class Remade : uint8_t { No, AsView, Passed };

// A tensor that looks into the memory of a forward output, made again above autograd: results that share memory share
// versions and histories too. So do views of a view of an input that has a history of its own.
struct RemadeView {
  int32_t output = -1;               // the forward output itself
  int32_t input = -1;                // or a view of an input,
  std::vector<ViewLink> chain = {};  // made so
  int32_t parent = -1;               // or a view of an earlier one of these
  ViewLink link = {};
  // The forward output whose gradient goes to it: autograd does not see that it is a view, or it is `Passed`.
  int32_t history = -1;
  bool is_apart =
      false;  // its history leads to the base, but not through its parent: one of them is older than a write
};

// The program uses the generator.
struct RandomEvent {
  std::optional<dispatch::Value> seed;  // it is seeded; without: one draw
};

// A result that is a view of an input, and from which other results are computed: made before the program runs, which
// takes it as one more input. As in eager, gradients then go through the very tensor that is returned.
struct HoistedView {
  graph::ValueId value = graph::kNoValue;  // in the captured graph
  int32_t input = -1;                      // what it is a view of: an input, or one of these before it
  std::vector<ViewLink> chain;
  autograd::Creation creation = autograd::Creation::Ordinary;
};

// A result that gradients are computed from. As in eager, the history of such a gradient leads to the result itself
// before it leads on: a program that computes gradients takes the result as one more input.
struct Junction {
  graph::ValueId value = graph::kNoValue;  // in the captured graph
  int32_t tangent = -1;
};

struct JointGraph {
  graph::Graph graph;  // inputs: primals, then tangents; outputs: forward's, then gradients
  size_t primals = 0;
  std::vector<bool> leaves;         // by primal: a leaf that requires grad, which may be kept freely
  std::vector<bool> kept_by_eager;  // by primal: backward keeps it (or a view of it)
  std::vector<bool> outputs_kept;   // by forward output: backward keeps it in eager too
  // By forward output: the tangents whose gradients eager computes from it, so that it may not be changed before then.
  std::vector<std::vector<int32_t>> needed_by;
  std::vector<std::vector<int32_t>> primals_needed_by;  // the same by primal
  std::vector<bool> read;                               // by primal: whether gradients are computed from it
  size_t forward_outputs = 0;                           // mutated inputs first, then values
  std::vector<int32_t> mutated;      // inputs that are written; forward output i is the new value of input mutated[i]
  std::vector<std::string> writers;  // by mutated input: the operator that autograd saw write to it; empty: none did
  std::vector<OutputPlan> outputs;   // results of the captured function
  std::vector<RemadeView> remade;
  // What was decided for want of knowledge of the sizes, and must be decided alike when the program is traced again
  // with more of it. By level of differentiation, by result: how it is made again as a view; by tangent: whether it
  // is dense where the value that it belongs to need not be.
  std::vector<std::vector<Remade>> are_remade;
  std::vector<bool> are_dense;
  std::vector<bool> reached;                 // of gradients as results: by gradient asked for, whether there is one
  std::vector<int32_t> tangents;             // forward output whose gradient tangent i is
  std::vector<std::vector<int32_t>> behind;  // by tangent: others whose forward outputs were computed from its own
  std::vector<Junction> junctions;           // in the order in which they are computed
  std::vector<HoistedView> hoistable;        // views that the program should take as inputs
  std::vector<int32_t> gradients;            // input whose gradient the (forward_outputs + i)-th output is
  std::vector<RandomEvent> random;           // of forward, in program order
  // Nodes of forward use draws below `forward_draws` (those that a program of higher order was given come first), nodes
  // of backward the others.
  int32_t forward_draws = 0, draws = 0;
};

// One differentiation: the program's results become gradients of what they were.
struct GradientLevel {
  std::vector<bool> given;          // by tangent: whether it has a value; then it is one more input
  std::vector<bool> requires_grad;  // by tangent
  std::vector<int32_t> of;  // inputs whose gradients are asked for, or tangents (the results that they belong to)
  bool of_results = false;
  std::vector<bool> are_dense = {};  // by tangent (`JointGraph::are_dense`)
  std::vector<bool> junctions = {};  // by junction: whether it is one more input; of the first level alone
  auto operator<=>(const GradientLevel&) const = default;
};

// What is to be compiled: a captured graph, possibly differentiated.
struct Program {
  graph::Graph captured;
  std::vector<bool> requires_grad;  // by input of the captured graph
  std::vector<bool> leaves;         // by input: whether it is a leaf; empty: all are
  bool grad_enabled = true;         // false: nothing is recorded for gradients
  std::vector<GradientLevel> levels = {};
  bool history = true;                    // results can be differentiated
  int32_t given_draws = 0;                // the program's first draws, which the call is given
  std::vector<HoistedView> hoisted = {};  // inputs after those of the captured graph
  std::vector<Junction> junctions = {};   // inputs after these, if there are levels
  // By result with a gradient: whether it is given one; empty: all are.
  std::vector<bool> given_tangents = {};
  std::vector<std::vector<Remade>> are_remade =
      {};  // of those levels that were traced before (`JointGraph::are_remade`)
};

JointGraph trace_joint(const Program& program);

struct Partition {
  graph::Graph forward;   // outputs: forward's, then what backward needs, then the numbers that it took from data
  graph::Graph backward;  // inputs: what was saved, then tangents
  std::vector<graph::ValueId> saved;   // in the joint graph
  std::vector<int32_t> saved_inputs;   // by saved value: which primal it is, or -1
  std::vector<bool> saved_is_results;  // by saved value: the caller gets its memory, and eager does not keep it
  std::vector<int32_t> bound;          // unbacked symbols that forward binds, in the order of its last outputs
};

Partition partition(const JointGraph& joint);

// What was made of a captured graph; kept for explanations, and for those who write it down.
struct Compiled {
  GraphFunction run;
  // Null of a backend that runs the captured graph as it is.
  std::shared_ptr<const Program> program = nullptr;
  std::shared_ptr<const JointGraph> traced = nullptr;
  std::vector<int32_t> bound = {};  // unbacked symbols: forward's last outputs
  // backward: null if nothing requires grad
  std::shared_ptr<graph::Graph> joint = nullptr, forward = nullptr, backward = nullptr;
};

struct Options {
  std::vector<bool> leaves = {};  // by input; empty: all are
  bool refuse_double_backward = false;
  bool pad_products = false;  // see schedule::Options
};

// `requires_grad`: by input of the captured graph. Without any, or with grad mode off, there is no backward part.
Compiled compile(const graph::Graph& captured, const std::vector<bool>& requires_grad, bool grad_enabled,
                 const GraphCompiler& compiler, const Options& options = {});

}  // namespace tenon::aot
