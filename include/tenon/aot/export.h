// Ahead-of-time autograd for backends of the user's: a captured graph goes in, and a function that does what it does,
// gradients and all, comes out.
//
//   Backend mine = [](const graph::Graph& graph) -> GraphFunction {
//     return aot::compile(graph, [](const graph::Graph& part) {  // for forward, and for backward when it is needed
//       fmt::print("{}", graph::to_string(part));
//       return aot::interpreted(part);                             // or aot::scheduled: fused, compiled to kernels
//     }).run;
//   };
//   compile([](Tensor a) { return a.sin(); }, {.backend = mine})(x.clone().set_requires_grad()).sum().backward();
#pragma once

#include <tenon/aot/aot.h>

namespace tenon::aot {

// Runs the graph operator by operator.
GraphFunction interpreted(const graph::Graph& graph);
// Fuses its operators and compiles them to kernels.
//
//   graph::Graph graph = trace([](Tensor a) { return a.sin() + 1; }, Tracing::Fake, x);
//   std::vector<Tensor> inputs = {x};
//   Tensor one = aot::scheduled(graph)(inputs, {})[0].tensor();
GraphFunction scheduled(const graph::Graph& graph);
// The same, with operands of matrix products padded where that pays (`schedule::should_pad`).
//
//   graph::Graph graph = trace([](Tensor a) { return mm(a, a); }, Tracing::Fake, ones({65, 65}));
//   std::vector<Tensor> inputs = {ones({65, 65})};
//   Tensor product = aot::scheduled_with_padding(graph)(inputs, {})[0].tensor();
GraphFunction scheduled_with_padding(const graph::Graph& graph);

// Of the inputs those require grad whose metadata do, with the grad mode of this thread.
Compiled compile(const graph::Graph& captured, const GraphCompiler& compiler);

// Forward and backward as one graph of values, to be run by somebody else: its inputs are those of `captured`, then the
// gradients of its differentiable results (`tangents`); it gives the results, then the gradients of the inputs that
// require grad (`gradients`). Without `with_backward`, forward alone. An Error if the function writes to an input, or
// returns one or a view of one: only `compile` can see to that.
//
//   graph::Graph captured = trace([](Tensor a) { return a.sin() * 2; }, Tracing::Fake, x.clone().set_requires_grad());
//   aot::JointGraph joint = aot::export_joint(captured);
//   std::vector<Tensor> inputs = {x, ones_like(x)};
//   Tensor gradient = graph::interpret(joint.graph, inputs)[1].tensor();  // cos(x) * 2
JointGraph export_joint(const graph::Graph& captured, bool with_backward = true);

}  // namespace tenon::aot
