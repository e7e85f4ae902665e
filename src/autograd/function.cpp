#include <tenon/autograd/function.h>
#include <tenon/autograd/meta.h>
#include <tenon/generated/ops.h>
#include <tenon/support/warnings.h>

#include "autograd/batched.h"
#include "autograd/function_call.h"
#include "support/out_of_memory.h"

#include <cxxabi.h>

#include <algorithm>

namespace tenon::autograd {
namespace {

bool contains(std::span<const Tensor> list, const Tensor& tensor) {
  return std::any_of(list.begin(), list.end(), [&](const Tensor& each) { return each.defined() && each.is(tensor); });
}

bool flows(const Tensor& tensor) { return tensor.defined() && tensor.is_floating_point() && tensor.requires_grad(); }

}  // namespace

namespace detail {

void check_dirty_is_returned(const Tensor& dirty, std::span<const Tensor> results, const std::string& name) {
  TENON_CHECK(contains(results, dirty),
              "[{}] Some elements marked as dirty during the forward method were not returned as output. What it "
              "changes in place must be a result",
              name);
}

bool is_view(const Tensor& tensor) {
  const AutogradMeta* meta = meta_of(tensor);
  return meta && meta->view;
}

void mark_views(std::span<const Tensor> arguments, std::span<const Tensor> results) {
  if (!grad_enabled()) return;  // they are views without grad
  for (const Tensor& result : results)
    if (result.defined() && is_view(result) && !contains(arguments, result))
      meta_of(result)->creation = Creation::InFunction;
}

bool records(std::span<const Tensor> arguments) {
  bool recorded = grad_enabled() && std::any_of(arguments.begin(), arguments.end(), flows);
  TENON_CHECK_IMPLEMENTED(!recorded || !innermost_level(arguments),
                          "[Function] vmap: an autograd::Function takes no batched tensors that require grad: its "
                          "backward knows nothing of the batch. Write it with operators, or call it outside of vmap");
  return recorded;
}

std::string type_name(const std::type_info& type) {
  int status = 0;
  char* readable = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string name = status == 0 ? readable : type.name();
  std::free(readable);
  return name;
}

}  // namespace detail

std::string detail::node_name_of(const std::string& type) {
  // "ns::Wrap<ns::Inner>::Cube" gives "Cube": what stands in brackets belongs to a name, not to its path.
  size_t from = 0, depth = 0;
  for (size_t at = 0; at < type.size(); ++at) {
    if (type[at] == '<' || type[at] == '(') ++depth;
    if ((type[at] == '>' || type[at] == ')') && depth > 0) --depth;
    if (type[at] == ':' && depth == 0) from = at + 1;
  }
  return type.substr(from) + "Backward";
}

static void check_kept(bool released, const FunctionNode* node) {
  TENON_CHECK(
      !released,
      "[backward] the graph was freed: {} cannot run a second time (or directly access saved tensors after they have "
      "already been freed). Specify retain_graph=True in the first backward",
      node ? node->name() : "a function");
}

std::vector<Tensor> AutogradContext::saved_tensors() const {
  if (in_jvp_) return for_forward_;
  check_kept(released_, node_);
  std::vector<Tensor> tensors;
  for (size_t at = 0; at < saved_.size(); ++at) tensors.push_back(saved_tensor(at));
  return tensors;
}

Tensor AutogradContext::saved_tensor(size_t at) const {
  if (in_jvp_) return for_forward_.at(at);
  check_kept(released_, node_);
  TENON_CHECK(at < saved_.size(), "[saved_tensor] expected one of {} tensors, got {}", saved_.size(), at);
  const Saved& saved = saved_[at];
  return saved.tensor.unpack(node_->name(), [&] { return Edge{Ref<Node>(node_), saved.output}; });
}

bool AutogradContext::needs_input_grad(size_t at) const {
  if (!needs_.empty()) return at < needs_.size() && needs_[at];
  return node_ && node_->wants(at);
}

std::vector<bool> AutogradContext::needs_input_grads(size_t argument) const {
  TENON_CHECK_INDEX(argument < counts_.size(), "[needs_input_grads] argument {} of a function with {}", argument,
                    counts_.size());
  size_t first = 0;
  for (size_t at = 0; at < argument; ++at) first += counts_[at];
  std::vector<bool> needs;
  for (size_t at = 0; at < counts_[argument]; ++at) needs.push_back(needs_input_grad(first + at));
  return needs;
}

void FunctionNode::connect(std::span<const Tensor> arguments, std::vector<uint32_t> counts) try {
  context_.counts_ = std::move(counts);
  Edges edges;
  bool recording = grad_enabled();
  for (const Tensor& argument : arguments) {
    edges.push_back(recording && flows(argument) ? gradient_edge(argument) : Edge{});
    context_.needs_.push_back(edges.back().valid());
  }
  set_next_edges(std::move(edges));
} catch (...) {
  support::rethrow_named("Function");
}

void FunctionNode::finish(std::span<const Tensor> arguments, std::vector<Tensor>& results) try {
  context_.needs_.clear();
  Ref<Node> self(this);
  // Not held beyond this, however it ends (checkpoints leave in the middle): results hold the node.
  const std::vector<Tensor> to_save = std::exchange(context_.to_save_, {}),
                            changed = std::exchange(context_.dirty_, {}),
                            without_gradient = std::exchange(context_.non_differentiable_, {});
  context_.for_forward_.clear();
  for (const Tensor& dirty : changed) {
    detail::check_dirty_is_returned(dirty, results, name());
    if (!contains(arguments, dirty))
      warn(
          fmt::format("[{}] a tensor is marked dirty that is no argument of forward: mark_dirty is for arguments that "
                      "it changes in place",
                      name()));
  }
  for (size_t at = 0; at < results.size(); ++at) {
    Tensor& result = results[at];
    bool marked = result.defined() && contains(without_gradient, result);
    context_.non_diff_results_.push_back(marked);
    if (!result.defined()) {
      add_input(InputMeta{{}, kBool, {}});  // no gradient comes here
      continue;
    }
    bool is_argument = contains(arguments, result);
    bool dirty = contains(changed, result);
    bool differentiable = result.is_floating_point() && !marked;
    if (dirty && is_argument) {
      check_inplace(result, name(), true);
      const AutogradMeta* meta = meta_of(result);
      TENON_CHECK(results.size() == 1 || !meta || !meta->view,
                  "[{}] your Function modifies inplace an input that is a view of another Tensor, and returns {} "
                  "results: it may return that one alone, or change a clone()",
                  name(), results.size());
      auto place = std::find_if(arguments.begin(), arguments.end(),
                                [&](const Tensor& each) { return each.defined() && each.is(result); });
      rebase_history(result, self, static_cast<int>(place - arguments.begin()));
      continue;
    }
    // An argument keeps the history that it has. A result that stands twice in the list takes its gradient at the
    // second place.
    bool is_alias = is_argument || detail::is_view(result);
    if (is_argument) result = detach_below(result);
    uint32_t number = add_input(result);
    if (differentiable) set_history(result, {self, number});
    if (is_alias) ensure_meta(result).creation = Creation::InFunction;
  }
  for (const Tensor& tensor : to_save) {
    AutogradContext::Saved saved;
    auto found = std::find_if(results.begin(), results.end(), [&](const Tensor& each) {
      return each.defined() && tensor.defined() && each.is(tensor);
    });
    if (found != results.end()) {
      saved.output = static_cast<uint32_t>(found - results.begin());
      saved.tensor = SavedTensor::output(tensor);
    } else {
      saved.tensor = SavedTensor::input(tensor);
    }
    context_.saved_.push_back(std::move(saved));
  }
} catch (...) {
  support::rethrow_named("Function");
}

std::vector<Tensor> FunctionNode::apply(std::vector<Tensor> gradients) {
  gradients.resize(inputs().size());
  auto materializes = [&](size_t at) {
    bool marked = at < context_.non_diff_results_.size() && context_.non_diff_results_[at];
    return is_floating(inputs()[at].dtype) && (context_.materialize_non_diff_ || !marked);
  };
  if (context_.materialize_)
    for (size_t at = 0; at < gradients.size(); ++at)
      if (!gradients[at].defined() && materializes(at))
        gradients[at] = zeros(inputs()[at].sizes, TensorOptions(inputs()[at].dtype, inputs()[at].device));
  std::vector<Tensor> leaving = backward_(context_, std::move(gradients));
  size_t expected = next_edges().size();
  // Trailing undefined gradients beyond the arguments do no harm.
  while (leaving.size() > expected && !leaving.back().defined()) leaving.pop_back();
  TENON_CHECK(leaving.size() == expected,
              "[backward] {} returned an incorrect number of gradients (expected {}, got {})", name(), expected,
              leaving.size());
  return leaving;
}

bool FunctionNode::visit(NodeVisitor& visitor) {
  if (kind_ == 0 || context_.released_) return false;
  visitor.fixed(kind_);
  visitor.fixed(static_cast<uint64_t>(context_.materialize_) | static_cast<uint64_t>(context_.materialize_non_diff_)
                                                                   << 1);
  for (bool marked : context_.non_diff_results_) visitor.fixed(static_cast<uint64_t>(marked));
  visitor.fixed(context_.counts_.size());
  for (uint32_t count : context_.counts_) visitor.fixed(count);
  visitor.fixed(context_.saved_.size());
  (void)visit_saved(visitor);
  visitor.fixed(context_.saved_data.size());
  for (auto& [key, value] : context_.saved_data) {
    visitor.fixed(key);
    visitor.value(value);
  }
  return true;
}

bool FunctionNode::visit_saved(NodeVisitor& visitor) {
  if (context_.released_) return false;
  for (AutogradContext::Saved& saved : context_.saved_)
    visitor.saved(saved.tensor, name(), [&] { return Edge{Ref<Node>(this), saved.output}; });
  return true;
}

Ref<Node> FunctionNode::copy() const {
  auto made = make_ref<FunctionNode>(name(), backward_, kind_);
  made->copy_structure(*this);
  made->context_.saved_data = context_.saved_data;
  made->context_.saved_ = context_.saved_;
  made->context_.counts_ = context_.counts_;
  made->context_.materialize_ = context_.materialize_;
  made->context_.materialize_non_diff_ = context_.materialize_non_diff_;
  made->context_.non_diff_results_ = context_.non_diff_results_;
  return made;
}

void FunctionNode::release_saved() {
  context_.saved_.clear();
  context_.released_ = true;
}

void FunctionNode::drop_references() {
  Node::drop_references();
  context_.saved_.clear();
  context_.saved_data.clear();
}

}  // namespace tenon::autograd
