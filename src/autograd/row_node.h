// The backward step of an operator of the table: holds what its gradient rules declare, and runs them.
#pragma once

#include "autograd/recorded_call.h"
#include "autograd/row_plan.h"

#include <tenon/autograd/node.h>
#include <tenon/autograd/saved_tensor.h>

namespace tenon::autograd {

class RowNode final : public Node {
 public:
  explicit RowNode(Ref<RecordedCall> call);

  const RecordedCall& call() const { return *call_; }

  // Edges are one per tensor of each gradient rule, in the rules' order; those of inputs that need no gradient are
  // invalid.
  void connect(std::span<const dispatch::Value> arguments);
  // The same for a view row, whose only tensor is `self`.
  void connect_to(Edge self);
  // The edge of an argument; -1 if no rule leads to it.
  int edge_of(std::string_view argument) const;

  // What the rules of the connected edges declare. `overwritten` is the tensor that the operator is about to change.
  void save_arguments(std::span<const dispatch::Value> arguments, const Tensor& overwritten);
  void save_results(std::span<const dispatch::Value> results);
  // The result is a view, and `outer` the step of its base that runs this node.
  void set_outer(const Ref<Node>& outer, Ref<ViewStep> chain);

  std::vector<Tensor> apply(std::vector<Tensor> gradients) override;
  void release_saved() override;
  bool visit(NodeVisitor& visitor) override;
  Ref<Node> copy() const override;

 protected:
  void drop_references() override;

 private:
  friend class RowGrad;
  struct Saved {
    std::string_view name;  // of a rule, which outlives the node
    SavedTensor tensor;
    bool listed = false;  // one of a list, in its order
  };
  // Calls `visit` with what the rules of connected edges save and is not saved yet.
  template <typename Visit>
  void each_to_save(const Visit& visit);
  Edge own_history(size_t result);

  Ref<RecordedCall> call_;
  const RowPlan& plan_;
  SmallVector<uint32_t, 4> edge_counts_;  // of each rule
  SmallVector<Saved, 2> saved_;
  bool released_ = false;
  WeakRef<Node> outer_;
  Ref<ViewStep> outer_chain_;
};

// "result" and "result0" are 0, "result1" is 1, a return's own name its position; -1 otherwise.
int result_index(const schema::Schema& schema, std::string_view name);
// Whether a gradient may come to the row's result.
bool carries_gradient(const ops::Row& row, size_t result);
// The history of a view of a tensor whose gradient goes to `base`; the view's own sizes are `meta`.
Edge view_history(Edge base, const ViewStep* chain, const InputMeta& meta);
bool same_sizes(const SymInts& a, const SymInts& b);

}  // namespace tenon::autograd
