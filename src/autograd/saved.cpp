#include <tenon/autograd/function.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/autograd/saved.h>
#include <tenon/autograd/visit.h>
#include <tenon/generated/ops.h>

#include "autograd/row_node.h"

namespace tenon::autograd {
namespace {

struct Found {
  std::string name;
  SavedTensor* tensor;
  std::function<Edge()> history;  // of a saved result
};

// Of a row's node the name comes before each tensor; those of a function are numbered.
class Lister final : public NodeVisitor {
 public:
  explicit Lister(bool numbered) : numbered_(numbered) {}
  void fixed(uint64_t) override {}
  void fixed(std::string_view text) override { last_ = text; }
  void number(SymInt&) override {}
  void number(SymFloat&) override {}
  void tensor(Tensor&) override {}
  void saved(SavedTensor& tensor, std::string_view, FunctionRef<Edge()> history) override {
    Edge own = tensor.defined() && tensor.is_output() ? history() : Edge();
    found.push_back({numbered_ ? std::to_string(found.size()) : last_, &tensor, [own] { return own; }});
  }
  std::vector<Found> found;

 private:
  bool numbered_;
  std::string last_;
};

std::vector<Found> all_of(const Ref<Node>& node) {
  TENON_CHECK(node, "[saved] expected a node, got none: a leaf has no grad_fn");
  auto* function = dynamic_cast<FunctionNode*>(node.get());
  Lister lister(function != nullptr);
  bool shown = function ? function->visit_saved(lister) : node->visit(lister);
  TENON_CHECK(
      shown || dynamic_cast<AccumulateGrad*>(node.get()),
      "[saved] the graph was freed: {} cannot be read a second time (or directly access saved tensors after they have "
      "already been freed), or it is no node of an operator or a Function",
      node->name());
  return std::move(lister.found);
}

Found find(const Ref<Node>& node, std::string_view name) {
  std::vector<Found> all = all_of(node);
  std::string names;
  for (Found& each : all) {
    if (each.name == name) return std::move(each);
    names += (names.empty() ? "" : ", ") + each.name;
  }
  fail("[saved] {} has saved no '{}'; it has saved: {}", node->name(), name, names.empty() ? "nothing" : names);
}

}  // namespace

std::vector<std::string> saved_names(const Ref<Node>& node) {
  std::vector<std::string> names;
  for (const Found& each : all_of(node)) names.push_back(each.name);
  return names;
}

Tensor saved(const Ref<Node>& node, std::string_view name) {
  Found found = find(node, name);
  EnableGrad on;  // with its history
  return found.tensor->unpack(node->name(), found.history);
}

void register_saved_hooks(const Ref<Node>& node, std::string_view name, SavedTensorHooks hooks) {
  Found found = find(node, name);
  SavedTensor& tensor = *found.tensor;
  TENON_CHECK(tensor.defined(), "[register_saved_hooks] {} saved no tensor as '{}': None is forbidden", node->name(),
              name);
  TENON_CHECK(!tensor.is_packed(), "[register_saved_hooks] hooks of '{}' of {} have already been set", name,
              node->name());
  Tensor whole;
  {
    EnableGrad on;
    whole = tensor.unpack(node->name(), found.history);
  }
  SavedTensorHooksGuard guard(std::move(hooks));
  tensor = tensor.is_output() ? SavedTensor::output(whole) : SavedTensor::input(whole);
}

namespace {

Tensor moved(const Tensor& tensor, Device device) {
  return tensor.device() == device ? tensor : _to_copy(tensor, TensorOptions(tensor.dtype(), device));
}

SavedTensorHooks on_cpu() {
  using Kept = std::pair<Device, Tensor>;
  return {.pack = [](const Tensor& tensor) -> std::any { return Kept(tensor.device(), moved(tensor, kCPU)); },
          .unpack =
              [](const std::any& content) {
                const auto& [device, tensor] = std::any_cast<const Kept&>(content);
                return moved(tensor, device);
              }};
}

}  // namespace

SaveOnCpu::SaveOnCpu() : guard_(on_cpu()) {}

}  // namespace tenon::autograd
