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
  enum class Kind : uint8_t { Value, Input, ViewOfInput, Number } kind = Kind::Value;
  int32_t index = -1;           // Value: among the forward graph's outputs; Input, ViewOfInput: which input
  std::vector<ViewLink> chain;  // ViewOfInput: how to make it
  int32_t history =
      -1;  // ViewOfInput: the forward output whose gradient goes to it, if autograd does not see that it is a view
  bool differentiable = false;  // Value: gets a history
  dispatch::Value number;       // Number: possibly symbolic
};

struct JointGraph {
  graph::Graph graph;  // inputs: primals, then tangents; outputs: forward's, then gradients
  size_t primals = 0;
  std::vector<bool> kept;            // by primal: it requires grad, or backward keeps it (or a view of it) in eager too
  size_t forward_outputs = 0;        // mutated inputs first, then values
  std::vector<int32_t> mutated;      // inputs that are written; forward output i is the new value of input mutated[i]
  std::vector<std::string> writers;  // by mutated input: the operator that autograd saw write to it; empty: none did
  std::vector<OutputPlan> outputs;   // results of the captured function
  std::vector<int32_t> tangents;     // forward output whose gradient tangent i is
  std::vector<int32_t> gradients;    // input whose gradient the (forward_outputs + i)-th output is
};

// `requires_grad`: by input of the captured graph. Without any, or with grad mode off, there is no backward part.
JointGraph trace_joint(const graph::Graph& captured, const std::vector<bool>& requires_grad, bool grad_enabled);

struct Partition {
  graph::Graph forward;   // outputs: forward's, then what backward needs, then the numbers that it took from data
  graph::Graph backward;  // inputs: what was saved, then tangents
  std::vector<graph::ValueId> saved;  // in the joint graph
  std::vector<int32_t> saved_inputs;  // by saved value: which primal it is, or -1
  std::vector<int32_t> bound;         // unbacked symbols that forward binds, in the order of its last outputs
};

Partition partition(const JointGraph& joint);

// What was made of a captured graph; kept for explanations.
struct Compiled {
  GraphFunction run;
  std::shared_ptr<graph::Graph> joint, forward, backward;  // backward: null if nothing requires grad
};

Compiled compile(const graph::Graph& captured, const std::vector<bool>& requires_grad, bool grad_enabled,
                 const GraphCompiler& compiler);

}  // namespace tenon::aot
