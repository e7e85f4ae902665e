#include <tenon/autograd/function.h>
#include <tenon/autograd/meta.h>

#include <algorithm>

namespace tenon::autograd {
namespace {

// Stands where a graph has no derivative.
class ErrorNode final : public Node {
 public:
  explicit ErrorNode(std::string text) : Node("Error"), text_(std::move(text)) {}
  std::vector<Tensor> apply(std::vector<Tensor>) override { throw RuntimeError(text_); }

 private:
  std::string text_;
};

bool flows(const Tensor& tensor) { return tensor.defined() && tensor.is_floating_point() && tensor.requires_grad(); }

}  // namespace

std::vector<Tensor> detail::backward_once(const std::string& name, std::vector<Tensor> gradients,
                                          const std::function<std::vector<Tensor>(std::vector<Tensor>)>& backward) {
  Edges edges;
  if (grad_enabled() && std::any_of(gradients.begin(), gradients.end(), flows))
    for (const Tensor& gradient : gradients) edges.push_back(flows(gradient) ? gradient_edge(gradient) : Edge{});
  std::vector<Tensor> leaving;
  {
    NoGrad off;
    leaving = backward(std::move(gradients));
  }
  if (edges.empty()) return leaving;
  auto node = make_ref<ErrorNode>(
      fmt::format("[backward] trying to differentiate twice a function that was marked once_differentiable: {}", name));
  node->set_next_edges(std::move(edges));
  for (Tensor& each : leaving) {
    if (!each.defined() || !each.is_floating_point()) continue;
    each = detach_below(each);
    set_history(each, node);
  }
  return leaving;
}

}  // namespace tenon::autograd
