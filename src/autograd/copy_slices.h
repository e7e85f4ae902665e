// The backward step of a base that was changed in place through a view of it.
//
// The gradient of the base's new value is, outside the view, the gradient of its old value; inside, it belongs to the
// operator that wrote there, whose own node turns it into the gradient of what was there before.
#pragma once

#include "autograd/recorded_call.h"

#include <tenon/autograd/node.h>

namespace tenon::autograd {

class CopySlices final : public Node {
 public:
  // `writer` is the operator's node; its edge `self_edge` (-1: none) leads to the view's old value.
  CopySlices(const Tensor& base, Ref<ViewStep> chain, Ref<Node> writer, int self_edge);

  std::vector<Tensor> apply(std::vector<Tensor> gradients) override;
  void release_saved() override { writer_->release_saved(); }
  bool visit(NodeVisitor& visitor) override;
  Ref<Node> copy() const override;
  void redirect(const std::function<Edge(const Edge&)>& to) override;

 protected:
  void drop_references() override;

 private:
  explicit CopySlices(const CopySlices& other);

  Ref<ViewStep> chain_;
  Ref<Node> writer_;
  int self_edge_;
};

}  // namespace tenon::autograd
