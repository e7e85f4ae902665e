#include "description.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <typeinfo>

namespace tenon::compiled_autograd {
namespace {

using autograd::Edge;
using autograd::Node;
using autograd::SavedTensor;

class Describer final : public autograd::NodeVisitor {
 public:
  explicit Describer(Description& into) : into_(into) {}

  void fixed(uint64_t number) override { into_.key.add(number); }
  void fixed(std::string_view text) override { into_.key.add(text); }
  void number(SymInt& number) override { into_.numbers.push_back({number.plain(), false}); }
  void number(SymFloat& number) override { into_.numbers.push_back({std::bit_cast<int64_t>(double(number)), true}); }
  void symbol(SymInt& symbol) override {
    number(symbol);
    if (symbol.plain() > 1) into_.foreseen.push_back(symbol.plain());
  }
  void tensor(Tensor& tensor) override {
    fixed(static_cast<uint64_t>(tensor.defined()));
    if (tensor.defined()) into_.tensors.push_back(tensor);
  }
  void saved(SavedTensor& tensor, std::string_view reader, FunctionRef<Edge()> history) override {
    fixed(!tensor.defined() ? uint64_t{0} : tensor.is_packed() ? uint64_t{2} : uint64_t{1});
    if (!tensor.defined()) return;
    if (tensor.is_packed()) {
      ++into_.breaks;
    } else if (!tensor.intact()) {
      into_.broken = fmt::format("a tensor saved for {} was changed in place", reader);
    } else {
      into_.tensors.push_back(tensor.unpack(reader, [&] { return history(); }));
    }
  }

 private:
  Description& into_;
};

// The end of the graph at a leaf, if the node is one. (There is nothing below that class: no cast has to search.)
const autograd::AccumulateGrad* as_end(const Node& node) {
  return typeid(node) == typeid(autograd::AccumulateGrad) ? static_cast<const autograd::AccumulateGrad*>(&node)
                                                          : nullptr;
}

// Hooks that only compute are part of what the walk is; of others, that there are some.
template <typename Entries>
void describe_hooks(const Entries& entries, Description& into, Describer& describer) {
  describer.fixed(entries.size());
  for (const auto& entry : entries) {
    describer.fixed(entry.kind);
    into.breaks += entry.kind == 0;
  }
}

void describe_hooks(const Node& node, const autograd::AccumulateGrad* end, Description& into, Describer& describer) {
  // Most nodes have none.
  bool is_plain = !end && node.tensor_hooks().empty() && node.retained().empty() && node.pre_hooks().empty() &&
                  node.post_hooks().empty();
  describer.fixed(static_cast<uint64_t>(is_plain));
  if (is_plain) return;
  describer.fixed(node.tensor_hooks().size());
  for (const auto& [nr, hooks] : node.tensor_hooks()) {
    describer.fixed(nr);
    describe_hooks(hooks->entries, into, describer);
  }
  size_t retained = 0;
  for (const auto& [nr, tensor] : node.retained())
    if (!tensor.expired()) {
      describer.fixed(nr);
      ++retained;
    }
  describer.fixed(retained);
  describe_hooks(node.pre_hooks(), into, describer);
  describe_hooks(node.post_hooks(), into, describer);
  const autograd::AutogradMeta* meta = end ? autograd::meta_of(end->leaf()) : nullptr;
  describer.fixed(static_cast<uint64_t>(end != nullptr));
  if (!meta) return;
  describer.fixed(static_cast<uint64_t>(meta->requires_grad));
  if (meta->hooks) describe_hooks(meta->hooks->entries, into, describer);
  describer.fixed(~uint64_t{0});
  if (meta->after_accumulation) describe_hooks(meta->after_accumulation->entries, into, describer);
}

// Whether the gradient that arrives at an input may not be the whole one, where the whole one is asked for.
bool may_be_partial(const autograd::RunningWalk& running, const autograd::WalkPlan::Entry& entry) {
  const Node& node = *entry.node;
  if (node.retained().empty() && !entry.captured) return false;
  std::vector<uint32_t> asked;
  for (const auto& [nr, tensor] : node.retained()) asked.push_back(nr);
  if (entry.captured)
    for (const Edge& edge : running.walk.captures)
      if (edge.node.get() == &node) asked.push_back(edge.input_nr);
  if (asked.empty()) return false;
  std::vector<Tensor> all(node.inputs().size(), running.walk.gradients[0]);
  return std::any_of(asked.begin(), asked.end(), [&](uint32_t nr) { return node.is_partial(nr, all); });
}

}  // namespace

Description describe(autograd::RunningWalk& running) {
  const autograd::Walk& walk = running.walk;
  Description made;
  Describer describer(made);
  std::vector<uint32_t> order = running.plan.in_depth(), step_of(running.plan.entries.size(), ~0u);
  for (uint32_t at = 0; at < order.size(); ++at) step_of[order[at]] = at;
  auto add_edge = [&](const Edge& edge) {
    uint32_t to = edge.valid() ? running.plan.find(edge.node.get()) : autograd::WalkPlan::kNone;
    describer.fixed(to == autograd::WalkPlan::kNone ? ~uint64_t{0}
                                                    : static_cast<uint64_t>(step_of[to]) << 32 | edge.input_nr);
  };
  made.steps.reserve(order.size());
  made.key.reserve(order.size() * 32);
  made.numbers.reserve(order.size() * 8);
  made.tensors.reserve(order.size() * 2);
  made.roots = walk.roots.size();
  describer.fixed(static_cast<uint64_t>(walk.create_graph) | static_cast<uint64_t>(walk.accumulate) << 1);
  describer.fixed(walk.roots.size());
  for (size_t at = 0; at < walk.roots.size(); ++at) {
    add_edge(walk.roots[at]);
    made.tensors.push_back(walk.gradients[at]);
  }
  describer.fixed(walk.accumulate ? 0 : walk.captures.size());
  if (!walk.accumulate)
    for (const Edge& each : walk.captures) add_edge(each);
  made.root_key_end = made.key.size();

  autograd::SetGradMode mode(walk.create_graph);
  for (uint32_t at : order) {
    const autograd::WalkPlan::Entry& entry = running.plan.entries[at];
    Node& node = *entry.node;
    Description::Step step{&node, entry.runs};
    describer.fixed(static_cast<uint64_t>(entry.runs) | static_cast<uint64_t>(entry.captured) << 1);
    node.visit_inputs(describer);
    const autograd::AccumulateGrad* end = as_end(node);
    if (entry.runs && !end) {
      size_t key = made.key.size(), numbers = made.numbers.size(), tensors = made.tensors.size(), breaks = made.breaks;
      describer.fixed(uint64_t{1});
      if (may_be_partial(running, entry) || !node.visit(describer)) {
        made.key.resize(key);
        made.numbers.resize(numbers);
        made.tensors.resize(tensors);
        made.breaks = breaks + 1;
        step.opaque = true;
        describer.fixed(uint64_t{0});
      }
      describer.fixed(node.next_edges().size());
      for (const Edge& each : node.next_edges()) add_edge(each);
    }
    describe_hooks(node, end, made, describer);
    step.key_end = made.key.size();
    step.numbers_end = made.numbers.size();
    step.tensors_end = made.tensors.size();
    made.steps.push_back(step);
  }
  return made;
}

namespace {

// Looks at what is saved alone.
class SavedVisitor : public autograd::NodeVisitor {
 public:
  void fixed(uint64_t) override {}
  void fixed(std::string_view) override {}
  void number(SymInt&) override {}
  void number(SymFloat&) override {}
  void tensor(Tensor&) override {}
};

class Unpacker final : public SavedVisitor {
 public:
  explicit Unpacker(size_t number) : left_(number) {}
  void saved(SavedTensor& tensor, std::string_view reader, FunctionRef<Edge()> history) override {
    if (tensor.is_packed() && left_-- == 0) found = tensor.unpack(reader, [&] { return history(); });
  }
  Tensor found;

 private:
  size_t left_;
};

class Checker final : public SavedVisitor {
 public:
  void saved(SavedTensor& tensor, std::string_view reader, FunctionRef<Edge()>) override {
    if (tensor.defined() && !tensor.intact()) tensor.unpack(reader, [] { return Edge(); });
  }
};

class Dropper final : public SavedVisitor {
 public:
  void saved(SavedTensor& tensor, std::string_view, FunctionRef<Edge()>) override { tensor.drop(); }
};

}  // namespace

Tensor unpack(Node& node, size_t number) {
  Unpacker unpacker(number);
  (void)node.visit(unpacker);
  return unpacker.found;
}

void check_saved(Node& node) {
  Checker checker;
  (void)node.visit(checker);
}

void drop_saved(Node& node) {
  Dropper dropper;
  (void)node.visit(dropper);
}

}  // namespace tenon::compiled_autograd
