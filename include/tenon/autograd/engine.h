// Walks the backward graph.
//
// A node runs when all gradients that can reach it have; of those that are ready the one made last runs first.
// Everything happens on the calling thread, with grad mode on only if `create_graph`. A hook may call `backward` again.
#pragma once

#include <tenon/autograd/node.h>

#include <functional>
#include <optional>
#include <span>

namespace tenon::autograd {

// What is raised where a gradient reaches an operator that has no derivative.
//
//   Tensor w = ones({3}).set_requires_grad();
//   try {
//     (w * 2).sum().backward();
//   } catch (const autograd::NoDerivative& error) {
//     std::string advice = error.what();
//   }
class NoDerivative : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

// Adds to the `grad` of the leaves (of `inputs` alone, if any are given). A root without a gradient must have one
// element.
//
//   Tensor w = ones({3}).set_requires_grad();
//   autograd::backward({(w * 2).sum(), (w * 3).sum()});
//   Tensor both = w.grad();  // fives
void backward(std::span<const Tensor> roots, std::span<const Tensor> gradients = {}, bool retain_graph = false,
              bool create_graph = false, std::span<const Tensor> inputs = {});

// The gradients of `inputs`, leaving every `grad` alone. An input that the outputs do not depend on is an Error, or
// with `allow_unused` an undefined tensor.
//
//   Tensor w = ones({3}).set_requires_grad();
//   Tensor slope = autograd::grad({(w * w).sum()}, {w})[0];  // twos
std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         std::span<const Tensor> grad_outputs = {}, bool retain_graph = false,
                         bool create_graph = false, bool allow_unused = false);

inline void backward(std::initializer_list<Tensor> roots, std::initializer_list<Tensor> gradients = {},
                     bool retain_graph = false, bool create_graph = false, std::initializer_list<Tensor> inputs = {}) {
  backward(std::span<const Tensor>(roots), std::span<const Tensor>(gradients), retain_graph, create_graph,
           std::span<const Tensor>(inputs));
}
inline std::vector<Tensor> grad(std::initializer_list<Tensor> outputs, std::initializer_list<Tensor> inputs,
                                std::initializer_list<Tensor> grad_outputs = {}, bool retain_graph = false,
                                bool create_graph = false, bool allow_unused = false) {
  return grad(std::span<const Tensor>(outputs), std::span<const Tensor>(inputs), std::span<const Tensor>(grad_outputs),
              retain_graph, create_graph, allow_unused);
}

// One walk, as the engine runs it.
struct Walk {
  std::vector<Edge> roots;
  std::vector<Tensor> gradients;                // one per root, defined
  std::vector<Edge> captures;                   // gradients to hand back; empty: all leaves accumulate
  std::vector<Tensor> started_from, asked_for;  // the tensors of `roots` and `captures`, where they are known
  bool accumulate = false;                      // with captures that are leaves: add to their `grad` instead
  bool retain_graph = false;
  bool create_graph = false;
};

// Runs the walk node by node; one tensor per capture, undefined where no gradient came (none when accumulating).
std::vector<Tensor> run_walk(const Walk& walk);
// The same, unless somebody else takes it over (`InterceptWalks`): what `backward` and `grad` do.
//
//   Tensor w = ones({3}).set_requires_grad(), y = (w * 2).sum();
//   autograd::Walk walk;
//   walk.roots = {autograd::gradient_edge(y)};
//   walk.gradients = {ones({})};
//   walk.accumulate = true;
//   autograd::start_walk(walk);  // w.grad() is twos
std::vector<Tensor> start_walk(const Walk& walk);

// Called once the outermost walk of this thread is over; an Error outside of one. Callbacks may queue others.
//
//   Tensor w = ones({3}).set_requires_grad();
//   bool over = false;
//   autograd::register_hook(w, [&](const Tensor&) { autograd::queue_callback([&] { over = true; }); });
//   w.sum().backward();  // over is true
void queue_callback(std::function<void()> callback);

// The node that the walk of this thread is running; null outside of one.
//
//   Tensor w = ones({3}).set_requires_grad(), y = w * 2;
//   autograd::register_hook(y, [&](const Tensor&) {
//     std::string name = autograd::current_node()->name();                        // "MulBackward1"
//     bool goes_on = autograd::will_execute(*autograd::gradient_edge(w).node);  // true
//   });
//   y.sum().backward();
const Node* current_node();
// Whether the walk that is running will run, or has run, a node. An Error outside of a walk.
bool will_execute(const Node& node);

// Asked before every walk; nothing means that the engine goes on itself.
using EngineInterceptor = std::function<std::optional<std::vector<Tensor>>(const Walk&)>;

// While one lives, walks that start on this thread are asked of it.
class InterceptWalks {
 public:
  explicit InterceptWalks(EngineInterceptor interceptor);
  ~InterceptWalks();
  InterceptWalks(const InterceptWalks&) = delete;
  InterceptWalks& operator=(const InterceptWalks&) = delete;

 private:
  EngineInterceptor interceptor_;
  const EngineInterceptor* before_;
};

}  // namespace tenon::autograd
