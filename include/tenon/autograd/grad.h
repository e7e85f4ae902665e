// `backward` and `grad` with all their options, by name: `backward_with` and `grad_with`.
//
//   Tensor w = ones({3}).set_requires_grad(), unused = ones({2}).set_requires_grad();
//   Tensor y = (w * w).sum();
//   std::vector<Tensor> both = autograd::grad_with({y}, {w, unused}, {.materialize_grads = true});  // twos, zeros
//   Tensor z = w * 2;
//   autograd::backward_with({(z * z).sum()}, {.inputs = {{z}}});          // z.grad() is set, w.grad() is not
//   autograd::GradientEdge edge(z);                                  // where the gradient of z goes, without z
//   Tensor same = autograd::grad_with({(z * z).sum()}, {edge})[0];
//   autograd::Edge plain = edge.edge();
#pragma once

#include <tenon/autograd/engine.h>
#include <tenon/autograd/meta.h>

#include <optional>
#include <vector>

namespace tenon::autograd {

// Where a gradient goes: a node, and which of its inputs. It keeps the graph, not the tensor, and stays what it is when
// the tensor is changed in place.
class GradientEdge {
 public:
  // Of a tensor that requires grad.
  explicit GradientEdge(const Tensor& tensor);
  GradientEdge(Ref<Node> node, uint32_t output_nr) : edge_{std::move(node), output_nr} {}
  const Edge& edge() const { return edge_; }

 private:
  Edge edge_;
};

// What a gradient is asked of: a tensor, or an edge.
//
//   autograd::GradInput of(ones({3}));
//   bool edge = of.is_edge();  // false
class GradInput {
 public:
  GradInput(Tensor tensor) : tensor_(std::move(tensor)) {}
  GradInput(const GradientEdge& edge) : edge_(edge.edge()) {}
  // Undefined if an edge was given.
  const Tensor& tensor() const { return tensor_; }
  bool is_edge() const { return edge_.valid(); }
  const Edge& edge() const { return edge_; }

 private:
  Tensor tensor_;
  Edge edge_;
};

//   autograd::GradOptions options{.create_graph = true};
struct GradOptions {
  std::vector<Tensor> grad_outputs = {};  // one per output; none: of outputs with one element
  bool retain_graph = false;
  bool create_graph = false;
  std::optional<bool> allow_unused = {};  // not given: as `materialize_grads`
  bool materialize_grads = false;         // zeros for an input that the outputs do not depend on
  // `grad_outputs` have a dimension before the outputs' own, and so have the gradients: one for each of its entries.
  bool is_grads_batched = false;
};

//   autograd::BackwardOptions options{.retain_graph = true};
struct BackwardOptions {
  std::vector<Tensor> gradients = {};
  bool retain_graph = false;
  bool create_graph = false;
  // Those that `grad` is added to, leaves or not; not given: all leaves.
  std::optional<std::vector<GradInput>> inputs = {};
};

// (Names of their own: `{.inputs = {{z}}}` would also do as a list of one tensor.)
std::vector<Tensor> grad_with(const std::vector<Tensor>& outputs, const std::vector<GradInput>& inputs,
                              const GradOptions& options = {});
void backward_with(const std::vector<Tensor>& roots, const BackwardOptions& options);

// Runs one node on its own, outside of a walk: the gradients that leave it. An Error unless there is one gradient for
// each of its inputs.
//
//   Tensor w = ones({3}).set_requires_grad(), twice = w * 2;
//   std::vector<Tensor> leaving = autograd::call_node(autograd::grad_fn(twice), {ones({3})});  // twos
std::vector<Tensor> call_node(const Ref<Node>& node, std::vector<Tensor> gradients);

// The number of the walk that is running on this thread, counted in the process; -1 outside of one.
//
//   bool outside = autograd::current_walk_id() == -1;
int64_t current_walk_id();
// The nodes of the walk that is running, in the order in which they run. An Error outside of one.
//
//   Tensor w = ones({3}).set_requires_grad();
//   autograd::register_hook(w, [](const Tensor&) { size_t nodes = autograd::execution_order().size(); });
//   w.sum().backward();
std::vector<Ref<Node>> execution_order();

}  // namespace tenon::autograd
