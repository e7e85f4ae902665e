#include "autograd/copy_slices.h"

#include <tenon/autograd/meta.h>
#include <tenon/generated/ops.h>

namespace tenon::autograd {

// The first edge is the base's old value's; the writer's follow, less the one to the view's old value.
CopySlices::CopySlices(const Tensor& base, Ref<ViewStep> chain, Ref<Node> writer, int self_edge)
    : Node(writer->name()), chain_(std::move(chain)), writer_(std::move(writer)), self_edge_(self_edge) {
  Edge old = gradient_edge(base);
  // The view's old value is part of the base's, so the writer computes its gradient exactly when the base's is wanted.
  if (self_edge >= 0) writer_->set_next_edge(static_cast<size_t>(self_edge), old);
  std::vector<Edge> edges{old};
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

void CopySlices::drop_references() {
  Node::drop_references();
  writer_ = nullptr;
  chain_ = nullptr;
}

}  // namespace tenon::autograd
