// The backward graph. A `Node` is one step of it: it takes the gradients of what an operator gave (its *inputs* here)
// and gives the gradients of what the operator took. An `Edge` says where a gradient goes next: to which input of which
// node. Leaves end in an `AccumulateGrad`, which adds to the leaf's `grad`.
//
// Edges own the nodes that they point to, so a tensor's `grad_fn` keeps all that led to it. Destroying a graph of any
// depth takes constant stack.
#pragma once

#include <tenon/core/tensor.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tenon::autograd {

class Node;
class NodeVisitor;

struct Edge {
  Ref<Node> node;
  uint32_t input_nr = 0;
  bool valid() const { return static_cast<bool>(node); }
};
using Edges = SmallVector<Edge, 2>;

// What a gradient that arrives at a node must look like.
struct InputMeta {
  SymInts sizes;
  Dtype dtype = Dtype::Float32;
  Device device;
  static InputMeta of(const Tensor& tensor);
  std::string str() const;  // "float32[2, 3]"
};

// Of a tensor's gradient; returns a replacement, or an undefined tensor to leave it. The gradient is undefined where
// the operator gave several results, and others alone have one.
using TensorHook = std::function<Tensor(const Tensor& gradient)>;
// Before a node runs: may change the gradients that arrive.
using PreHook = std::function<void(std::vector<Tensor>& gradients)>;
// After it ran: may change the gradients that leave.
using PostHook = std::function<void(std::vector<Tensor>& leaving, const std::vector<Tensor>& arrived)>;

// One hook of several. `kind`: not 0 if it only computes, so that it may be captured (see traceable.h).
template <typename F>
struct HookEntry {
  int64_t id;
  F hook;
  uint64_t kind = 0;
};

// The hooks of one tensor, in order of registration; shared by the tensor and its node.
struct TensorHooks final : public Counted {
  using Entry = HookEntry<TensorHook>;
  std::vector<Entry> entries;
  // An undefined gradient is shown to them, too.
  void run(Tensor& gradient) const;
  int64_t add(TensorHook hook, uint64_t kind);
};

class Node : public Counted {
 public:
  // Later nodes run first; a number per thread counts them.
  explicit Node(std::string_view name);

  const std::string& name() const { return name_; }
  uint64_t sequence() const { return sequence_; }
  // The operator that it differentiates: its number, or one above that and below the next operator's.
  uint64_t operation() const { return operation_; }
  // Where the operator was called: threads are numbered as a Profiler's events number them.
  int32_t thread() const { return thread_; }

  const Edges& next_edges() const { return next_edges_; }
  void set_next_edges(Edges edges) { next_edges_ = std::move(edges); }
  void add_next_edge(Edge edge) { next_edges_.push_back(std::move(edge)); }
  void set_next_edge(size_t at, Edge edge) { next_edges_[at] = std::move(edge); }

  const SmallVector<InputMeta, 1>& inputs() const { return inputs_; }
  // Makes room for one more input, a gradient like `tensor`; its number.
  uint32_t add_input(const Tensor& tensor);
  uint32_t add_input(InputMeta meta);

  // One gradient per next edge; undefined ones mean zero.
  virtual std::vector<Tensor> apply(std::vector<Tensor> gradients) = 0;
  // Drops what was saved for `apply`, after a backward that does not retain the graph.
  virtual void release_saved() {}
  // Whether the node stands for several operations, some inputs being computed from others.
  virtual bool is_compound() const { return false; }
  // Then what arrives at an input need not be its whole gradient: the rest comes by way of other inputs.
  virtual bool is_partial(uint32_t /*input_nr*/, const std::vector<Tensor>& /*gradients*/) const { return false; }
  virtual Tensor whole_gradient(uint32_t input_nr, const std::vector<Tensor>& gradients) const {
    return gradients[input_nr];
  }
  // Whether the running backward wants the gradient of this edge. Outside a backward: whether there is one.
  virtual bool wants(size_t edge) const;

  // Numbers to remove them by.
  int64_t add_pre_hook(PreHook hook, uint64_t kind = 0);
  int64_t add_post_hook(PostHook hook, uint64_t kind = 0);
  void remove_hook(int64_t id);
  const std::vector<HookEntry<PreHook>>& pre_hooks() const { return hooks().before; }
  const std::vector<HookEntry<PostHook>>& post_hooks() const { return hooks().after; }
  void add_tensor_hooks(uint32_t input_nr, Ref<TensorHooks> hooks);
  // The tensor keeps its gradient (`retain_grad`); replaces one with the same number.
  void set_retained(uint32_t input_nr, WeakRef<TensorImpl> tensor);
  void drop_retained(uint32_t input_nr);
  // Hooks of the tensors that these gradients belong to, then retained gradients.
  virtual void run_tensor_hooks(std::vector<Tensor>& gradients);
  using HooksOfInput = std::pair<uint32_t, Ref<TensorHooks>>;
  const std::vector<HooksOfInput>& tensor_hooks() const { return hooks().of_tensors; }
  const std::vector<std::pair<uint32_t, WeakRef<TensorImpl>>>& retained() const { return hooks().retained; }

  // Shows what the node holds (visit.h). False: it cannot be repeated from that, and is called as it is. It may have
  // shown some of it by then.
  virtual bool visit(NodeVisitor& visitor);
  // Of one that can be repeated: a node that does the same, with the same inputs and edges and no hooks.
  virtual Ref<Node> copy() const { return nullptr; }
  // The sizes and dtypes of the gradients that arrive.
  void visit_inputs(NodeVisitor& visitor);
  // Leads the edges, also those of nodes that this one runs, to others.
  virtual void redirect(const std::function<Edge(const Edge&)>& to);

  // Where the operator was called; known in anomaly mode.
  const std::string& made_at() const;

 protected:
  // Of an operator that was called earlier.
  Node(std::string_view name, uint64_t operation);
  struct Leaf {};
  // A node that runs as soon as it can, whatever else waits.
  Node(std::string_view name, Leaf);

  void copy_structure(const Node& from);

  // Everything that can hold another node; called with the stack kept flat.
  virtual void drop_references();
  void release_resources() final;

 private:
  std::string name_;
  uint64_t sequence_, operation_;
  int32_t thread_;
  // Most nodes have few edges, one input and no hooks: making one should take little memory.
  Edges next_edges_;
  SmallVector<InputMeta, 1> inputs_;
  struct Hooks {
    std::vector<HookEntry<PreHook>> before;
    std::vector<HookEntry<PostHook>> after;
    std::vector<HooksOfInput> of_tensors;
    std::vector<std::pair<uint32_t, WeakRef<TensorImpl>>> retained;
  };
  static const Hooks& no_hooks();
  const Hooks& hooks() const { return hooks_ ? *hooks_ : no_hooks(); }
  Hooks& own_hooks();  // made if there are none
  std::unique_ptr<Hooks> hooks_;
  std::unique_ptr<const std::string> made_at_;

  // Where the node stands in the walk that has claimed it: a walk finds its own numbers without a table.
  friend class WalkPlan;
  mutable std::atomic<uint64_t> walk_{0};
  mutable uint32_t place_ = 0;
};

// The end of the graph at a leaf. Owns the leaf; the leaf knows it weakly.
class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(const Tensor& leaf);
  const Tensor& leaf() const { return leaf_; }
  std::vector<Tensor> apply(std::vector<Tensor> gradients) override;
  void run_tensor_hooks(std::vector<Tensor>& gradients) override;
  // Adds to the leaf's gradient, or makes this one it.
  void accumulate(Tensor gradient);
  void run_hooks_after();

 protected:
  void drop_references() override;

 private:
  Tensor leaf_;
};

}  // namespace tenon::autograd
