#include <tenon/autograd/meta.h>
#include <tenon/autograd/visit.h>

namespace tenon::autograd {
namespace {

class PassOn final : public Node {
 public:
  PassOn() : Node("PassOn") {}
  std::vector<Tensor> apply(std::vector<Tensor> gradients) override { return gradients; }
  bool visit(NodeVisitor& visitor) override {
    static const uint64_t kind = new_kind();
    visitor.fixed(kind);
    return true;
  }
  Ref<Node> copy() const override {
    auto made = make_ref<PassOn>();
    made->copy_structure(*this);
    return made;
  }
};

}  // namespace

Ref<Node> pass_on(const Tensor& tensor, const Tensor& leaf) {
  Ref<Node> node = make_ref<PassOn>();
  node->set_next_edges({gradient_edge(leaf)});
  set_history(tensor, node);
  return node;
}

}  // namespace tenon::autograd
