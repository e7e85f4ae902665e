#include "autograd/row_node.h"

#include "autograd/layers.h"
#include "autograd/node_name.h"
#include "support/thread_context.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/autograd/visit.h>
#include <tenon/dispatch/operator.h>
#include <tenon/generated/ops.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>
#include <charconv>

namespace tenon::autograd {

int result_index(const schema::Schema& schema, std::string_view name) {
  for (size_t at = 0; at < schema.returns.size(); ++at)
    if (!schema.returns[at].name.empty() && schema.returns[at].name == name) return static_cast<int>(at);
  constexpr std::string_view kPrefix = "result";
  if (!name.starts_with(kPrefix)) return -1;
  name.remove_prefix(kPrefix.size());
  if (name.empty()) return 0;
  int number = -1;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  bool whole = error == std::errc() && end == name.data() + name.size();
  return whole && number < static_cast<int>(schema.returns.size()) ? number : -1;
}

bool carries_gradient(const ops::Row& row, size_t result) {
  return std::none_of(row.not_differentiable.begin(), row.not_differentiable.end(), [&](const std::string& name) {
    return result_index(row.schema, name) == static_cast<int>(result);
  });
}

bool same_sizes(const SymInts& a, const SymInts& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const SymInt& x, const SymInt& y) { return x.same(y) || decide_or(x == y, false); });
}

// One formula's window on the node.
class RowGrad final : public ops::Grad {
 public:
  // `unpacked`: by place among what the node saved; formulas that read the same share it.
  RowGrad(RowNode& node, const ops::GradRule& rule, std::vector<Tensor>& gradients, std::vector<Tensor>& unpacked,
          std::vector<Tensor>& in_common)
      : node_(node), rule_(rule), gradients_(gradients), unpacked_(unpacked), in_common_(in_common) {}

  Tensor grad(size_t output) const override {
    TENON_ASSERT(output < gradients_.size(), "{} has no output {}", node_.name(), output);
    Tensor& gradient = gradients_[output];
    if (!gradient.defined()) {
      const InputMeta& meta = node_.inputs()[output];
      gradient = zeros(meta.sizes, TensorOptions(meta.dtype, meta.device));
    }
    return gradient;
  }

  size_t outputs() const override { return node_.inputs().size(); }

  Tensor saved(std::string_view name) const override {
    size_t at = find(name);
    Tensor& tensor = unpacked_[at];
    if (!tensor.defined()) {
      int result = result_index(row().schema, name);
      tensor = node_.saved_[at].tensor.unpack(
          node_.name(), [&] { return node_.own_history(static_cast<size_t>(std::max(result, 0))); });
    }
    return tensor;
  }

  std::vector<std::optional<Tensor>> saved_list(std::string_view name) const override {
    (void)find(name);
    std::vector<std::optional<Tensor>> list;
    for (const RowNode::Saved& saved : node_.saved_)
      if (saved.name == name && saved.listed)
        list.push_back(saved.tensor.defined() ? std::optional(saved.tensor.unpack(node_.name(), [] { return Edge(); }))
                                              : std::nullopt);
    return list;
  }

  bool has(std::string_view name) const override { return node_.saved_[find(name)].tensor.defined(); }

  const dispatch::Value& argument(std::string_view name) const override {
    size_t at = node_.call_->argument_index(name);
    TENON_ASSERT(!row().schema.arguments[at].type.is_tensor_like(),
                 "the gradient of {} reads the tensor '{}' as a number", row().schema.str(), name);
    return node_.call_->arguments[at];
  }

  const SymInts& sizes(std::string_view name) const override {
    if (const InputMeta* meta = result(name)) return meta->sizes;
    return shape(name).sizes;
  }

  const SymInts& strides(std::string_view name) const override {
    TENON_ASSERT(row().view.of_storage, "the gradient of {} reads strides", row().schema.str());
    return shape(name).strides;
  }

  Dtype dtype(std::string_view name) const override {
    if (const InputMeta* meta = result(name)) return meta->dtype;
    return shape(name).dtype;
  }

  const std::vector<SymInts>& list_sizes(std::string_view name) const override { return shape(name).list; }

  const std::vector<Tensor>& once(const std::function<std::vector<Tensor>()>& compute) override {
    if (in_common_.empty()) in_common_ = compute();
    return in_common_;
  }

  bool is_recorded() const override { return support::thread_context.grad_enabled; }

 private:
  const ops::Row& row() const { return *node_.call_->row; }

  size_t find(std::string_view name) const {
    bool declared = std::find(rule_.saves.begin(), rule_.saves.end(), name) != rule_.saves.end();
    TENON_ASSERT(declared, "the gradient of {} for '{}' reads '{}', which it did not declare to save",
                 row().schema.str(), rule_.input, name);
    TENON_CHECK(
        !node_.released_,
        "[backward] the graph was freed: {} cannot run a second time (or directly access saved tensors after they have "
        "already been freed). Specify retain_graph=True in the first backward",
        node_.name());
    for (size_t at = 0; at < node_.saved_.size(); ++at)
      if (node_.saved_[at].name == name) return at;
    TENON_ASSERT(false, "the gradient of {} did not save '{}'", row().schema.str(), name);
  }

  const InputMeta* result(std::string_view name) const {
    if (row().schema.argument_index(name) >= 0) return nullptr;
    int at = result_index(row().schema, name);
    return at >= 0 && static_cast<size_t>(at) < node_.inputs().size() ? &node_.inputs()[static_cast<size_t>(at)]
                                                                      : nullptr;
  }

  const ArgumentShape& shape(std::string_view name) const {
    return node_.call_->shapes[node_.call_->argument_index(name)];
  }

  RowNode& node_;
  const ops::GradRule& rule_;
  std::vector<Tensor>& gradients_;
  std::vector<Tensor>& unpacked_;
  std::vector<Tensor>& in_common_;
};

RowNode::RowNode(Ref<RecordedCall> call)
    : Node(node_name(*call), call->operation), call_(std::move(call)), plan_(plan_of(*call_->row)) {}

void RowNode::connect(std::span<const dispatch::Value> arguments) {
  for (const RowPlan::Rule& rule : plan_.rules) {
    uint32_t count = 0;
    arguments[rule.argument].each_tensor([&](const Tensor& tensor) {
      ++count;
      bool flows = tensor.defined() && tensor.is_floating_point();
      add_next_edge(flows ? gradient_edge(tensor) : Edge{});
    });
    edge_counts_.push_back(count);
  }
}

void RowNode::connect_to(Edge self) {
  for (const ops::GradRule& rule : call_->row->grads) edge_counts_.push_back(rule.input == "self" ? 1 : 0);
  set_next_edges({std::move(self)});
}

int RowNode::edge_of(std::string_view argument) const {
  int at = 0;
  for (size_t rule = 0; rule < edge_counts_.size(); ++rule) {
    if (call_->row->grads[rule].input == argument) return edge_counts_[rule] > 0 ? at : -1;
    at += static_cast<int>(edge_counts_[rule]);
  }
  return -1;
}

template <typename Visit>
void RowNode::each_to_save(const Visit& visit) {
  size_t at = 0;
  for (size_t rule = 0; rule < edge_counts_.size(); ++rule) {
    bool used = false;
    for (uint32_t each = 0; each < edge_counts_[rule]; ++each) used |= next_edges()[at++].valid();
    if (!used) continue;
    for (const RowPlan::Save& save : plan_.rules[rule].saves) {
      bool known = std::any_of(saved_.begin(), saved_.end(), [&](const Saved& each) { return each.name == save.name; });
      if (!known) visit(save);
    }
  }
}

void RowNode::save_arguments(std::span<const dispatch::Value> arguments, const Tensor& overwritten) {
  Tensor before;
  saved_.reserve(plan_.saves);
  each_to_save([&](const RowPlan::Save& save) {
    if (save.argument < 0) return;
    std::string_view name = save.name;
    const dispatch::Value& value = arguments[static_cast<size_t>(save.argument)];
    if (value.is_none()) {
      saved_.push_back({name, SavedTensor()});
      return;
    }
    if (value.is_tensors())
      for (const Tensor& each : value.tensors()) saved_.push_back({name, SavedTensor::input(each), true});
    if (value.tag() == dispatch::Value::Tag::OptionalTensors)
      for (const std::optional<Tensor>& each : value.optional_tensors())
        saved_.push_back({name, each && each->defined() ? SavedTensor::input(*each) : SavedTensor(), true});
    if (!value.is_tensor()) return;
    const Tensor& tensor = value.tensor();
    if (!overwritten.defined() || !tensor.is(overwritten)) {
      saved_.push_back({name, SavedTensor::input(tensor)});
      return;
    }
    if (!before.defined()) {
      dispatch::ExcludeKeys below(kAutogradAndAbove);
      before = clone(overwritten);
    }
    saved_.push_back({name, SavedTensor::copy(before, gradient_edge(overwritten))});
  });
}

void RowNode::save_results(std::span<const dispatch::Value> results) {
  if (!plan_.saves_results) return;
  each_to_save([&](const RowPlan::Save& save) {
    if (save.result >= 0)
      saved_.push_back({save.name, SavedTensor::output(results[static_cast<size_t>(save.result)].tensor())});
  });
}

void RowNode::set_outer(const Ref<Node>& outer, Ref<ViewStep> chain) {
  outer_ = WeakRef<Node>(outer);
  outer_chain_ = std::move(chain);
}

Edge RowNode::own_history(size_t result) {
  if (!outer_chain_) return {Ref<Node>(this), static_cast<uint32_t>(result)};
  return view_history({outer_.lock(), 0}, outer_chain_.get(), inputs()[result]);
}

std::vector<Tensor> RowNode::apply(std::vector<Tensor> gradients) {
  std::vector<Tensor> leaving(next_edges().size());
  if (std::none_of(gradients.begin(), gradients.end(), [](const Tensor& g) { return g.defined(); })) return leaving;
  const ops::Row& row = *call_->row;
  // What is not recorded need not pass the layers that record; but hooks that unpack may record.
  std::optional<dispatch::ExcludeKeys> unrecorded;
  bool calls_hooks = std::any_of(saved_.begin(), saved_.end(), [](const Saved& s) { return s.tensor.is_packed(); });
  if (!grad_enabled() && !calls_hooks) unrecorded.emplace(KeySet{DispatchKey::Autograd, DispatchKey::ADInplaceOrView});
  std::vector<Tensor> unpacked(saved_.size()), in_common;
  size_t at = 0;
  for (size_t index = 0; index < edge_counts_.size(); at += edge_counts_[index++]) {
    const ops::GradRule& rule = row.grads[index];
    bool wanted = false;
    for (uint32_t each = 0; each < edge_counts_[index]; ++each) wanted |= wants(at + each);
    if (!wanted) continue;
    RowGrad window(*this, rule, gradients, unpacked, in_common);
    std::vector<Tensor> formula = rule.formula(window);
    TENON_ASSERT(formula.size() == edge_counts_[index], "the gradient of {} for '{}' has {} tensors, expected {}",
                 row.schema.str(), rule.input, formula.size(), edge_counts_[index]);
    const ArgumentShape& shape = call_->shapes[plan_.rules[index].argument];
    for (uint32_t each = 0; each < edge_counts_[index]; ++each) {
      Tensor& gradient = formula[each];
      if (!gradient.defined() || !next_edges()[at + each].valid()) continue;
      if (row.kind == ops::Kind::Pointwise) {
        // The expression ran on broadcast and promoted inputs.
        if (!same_sizes(gradient.sym_sizes(), shape.sizes)) gradient = sum_to_size(gradient, shape.sizes);
        if (gradient.dtype() != shape.dtype) gradient = gradient.to(shape.dtype);
      }
      leaving[at + each] = std::move(gradient);
    }
  }
  return leaving;
}

bool RowNode::visit(NodeVisitor& visitor) {
  if (released_) return false;
  call_->visit(visitor);
  for (uint32_t count : edge_counts_) visitor.fixed(count);
  visitor.fixed(saved_.size());
  for (Saved& saved : saved_) {
    int result = result_index(call_->row->schema, saved.name);
    visitor.fixed(saved.name);
    visitor.saved(saved.tensor, name(), [&] { return own_history(static_cast<size_t>(std::max(result, 0))); });
  }
  return true;
}

Ref<Node> RowNode::copy() const {
  auto made = make_ref<RowNode>(call_->copy());
  made->copy_structure(*this);
  made->edge_counts_ = edge_counts_;
  made->saved_ = saved_;
  return made;
}

void RowNode::release_saved() {
  saved_.clear();
  released_ = true;
}

void RowNode::drop_references() {
  Node::drop_references();
  saved_.clear();
}

Edge view_history(Edge base, const ViewStep* chain, const InputMeta& meta) {
  if (!base.valid()) return base;
  std::vector<const ViewStep*> steps = steps_of(chain);
  for (size_t at = 0; at < steps.size(); ++at) {
    auto node = make_ref<RowNode>(steps[at]->call);
    node->connect_to(std::move(base));
    if (at + 1 < steps.size()) {
      const ArgumentShape& next = steps[at + 1]->call->shapes[0];
      node->add_input(InputMeta{next.sizes, next.dtype, meta.device});
    } else {
      node->add_input(meta);
    }
    base = {node, 0};
  }
  return base;
}

}  // namespace tenon::autograd
