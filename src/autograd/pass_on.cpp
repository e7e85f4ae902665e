#include <tenon/autograd/meta.h>

namespace tenon::autograd {
namespace {

class PassOn final : public Node {
 public:
  PassOn() : Node("PassOn") {}
  std::vector<Tensor> apply(std::vector<Tensor> gradients) override { return gradients; }
};

}  // namespace

Ref<Node> pass_on(const Tensor& tensor, const Tensor& leaf) {
  Ref<Node> node = make_ref<PassOn>();
  node->set_next_edges({gradient_edge(leaf)});
  set_history(tensor, node);
  return node;
}

}  // namespace tenon::autograd
