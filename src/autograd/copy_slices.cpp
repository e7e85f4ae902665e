#include "autograd/copy_slices.h"

#include <tenon/autograd/meta.h>
#include <tenon/autograd/visit.h>
#include <tenon/generated/ops.h>

namespace tenon::autograd {

// The first edge is the base's old value's; the writer's follow, less the one to the view's old value.
CopySlices::CopySlices(const Tensor& base, Ref<ViewStep> chain, Ref<Node> writer, int self_edge)
    : Node(writer->name()), chain_(std::move(chain)), writer_(std::move(writer)), self_edge_(self_edge) {
  Edge old = gradient_edge(base);
  // The view's old value is part of the base's, so the writer computes its gradient exactly when the base's is wanted.
  if (self_edge >= 0) writer_->set_next_edge(static_cast<size_t>(self_edge), old);
  Edges edges{old};
  for (const Edge& edge : writer_->next_edges()) edges.push_back(edge);
  if (self_edge >= 0) edges[static_cast<size_t>(self_edge) + 1] = Edge{};
  set_next_edges(std::move(edges));
  add_input(base);
}

std::vector<Tensor> CopySlices::apply(std::vector<Tensor> gradients) {
  std::vector<Tensor> leaving(next_edges().size());
  if (!gradients[0].defined()) return leaving;
  std::vector<const ViewStep*> steps = steps_of(chain_.get());
  std::vector<Tensor> stages{gradients[0]};
  for (const ViewStep* step : steps) stages.push_back(step->replay(stages.back()));
  std::vector<Tensor> written = writer_->apply({stages.back()});
  if (wants(0)) {
    Tensor inside = self_edge_ >= 0 ? written[static_cast<size_t>(self_edge_)] : Tensor();
    if (!inside.defined()) inside = zeros_like(stages.back());
    for (size_t at = steps.size(); at-- > 0;) inside = steps[at]->scatter(stages[at], inside);
    leaving[0] = std::move(inside);
  }
  for (size_t at = 0; at < written.size(); ++at)
    if (static_cast<int>(at) != self_edge_) leaving[at + 1] = std::move(written[at]);
  return leaving;
}

bool CopySlices::visit(NodeVisitor& visitor) {
  static const uint64_t kind = new_kind();
  visitor.fixed(kind);
  visitor.fixed(static_cast<uint64_t>(self_edge_ + 1));
  for (ViewStep* step = chain_.get(); step; step = step->previous.get()) {
    visitor.fixed(uint64_t{1});
    step->call->visit(visitor);
  }
  visitor.fixed(uint64_t{0});
  writer_->visit_inputs(visitor);
  return writer_->visit(visitor);
}

CopySlices::CopySlices(const CopySlices& other)
    : Node(other.name(), other.operation()), writer_(other.writer_->copy()), self_edge_(other.self_edge_) {
  copy_structure(other);
  for (const ViewStep* step : steps_of(other.chain_.get()))
    chain_ = make_ref<ViewStep>(step->call->copy(), std::move(chain_));
}

Ref<Node> CopySlices::copy() const { return Ref<Node>(new CopySlices(*this)); }

void CopySlices::redirect(const std::function<Edge(const Edge&)>& to) {
  Node::redirect(to);
  writer_->redirect(to);
}

void CopySlices::drop_references() {
  Node::drop_references();
  writer_ = nullptr;
  chain_ = nullptr;
}

}  // namespace tenon::autograd
