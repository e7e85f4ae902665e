// Compiled autograd: backward walks are captured when they start, and compiled.
//
// A walk is described node by node: what each node is, what it saved, which hooks stand at it. The first walk with a
// description runs once on stand-ins and becomes a graph, from what was saved to the gradients; it goes the way of
// every captured graph. Later walks with the same description run what was compiled. So the backward of a model that
// was never compiled is fused as a whole, and that of compiled functions joins what lies between them.
//
// Sizes and numbers are constants at first; one that changes is a symbol from then on. What cannot be captured (a
// `Function` that is not traceable, a hook with state, hooks of saved tensors) is called where it stands, at every
// walk, between two graphs. Gradients are added to the leaves by the engine's own rules.
//
//   nn::Linear model(3, 3);
//   compiled_autograd::Enable on;           // until the end of the scope, on this thread
//   model(x).sum().backward();              // captured and compiled
//   model(x).sum().backward();              // runs what was compiled
//   compiled_autograd::reset();             // forgets it
//
// `CompileOptions::compiled_autograd` turns it on while a compiled function runs, `TENON_COMPILED_AUTOGRAD=1` in the
// environment everywhere.
#pragma once

#include <tenon/autograd/engine.h>
#include <tenon/capture/compiled_function.h>

#include <memory>

namespace tenon::compiled_autograd {

//   compiled_autograd::Options options{.backend = "aot_eager", .fullgraph = true, .dynamic = Dynamic::On};
//   compiled_autograd::Enable on(options);
//   Tensor w = ones({3}).set_requires_grad();
//   (w * 2).sum().backward();
struct Options {
  Backend backend = "inductor";
  bool fullgraph = false;  // an Error where something of the walk cannot be part of the graph
  Dynamic dynamic = Dynamic::Auto;
  bool cuda_graphs = false;  // graphs are to be launched as one; those that cannot be are counted: cuda_graph_skips
};

class Cache;

// While it lives, walks that start on this thread are captured. What was compiled outlives it.
class Enable {
 public:
  explicit Enable(Options options = {});
  Enable(const Enable&) = delete;
  Enable& operator=(const Enable&) = delete;

 private:
  autograd::InterceptWalks walks_;
};

// While it lives, walks that start on this thread run node by node.
//
//   compiled_autograd::Enable on;
//   compiled_autograd::Disable off;
//   Tensor w = ones({3}).set_requires_grad();
//   (w * 2).sum().backward();
class Disable {
 public:
  Disable();
  Disable(const Disable&) = delete;
  Disable& operator=(const Disable&) = delete;

 private:
  autograd::InterceptWalks walks_;
};

// Forgets all that was captured and compiled.
void reset();

}  // namespace tenon::compiled_autograd
