#include "compiled_node.h"

#include "alias.h"
#include "autograd/current_walk.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/core/given_up.h>
#include <tenon/core/random.h>

#include <algorithm>
#include <optional>

namespace tenon::aot {

using dispatch::Value;

namespace {

constexpr KeySet kAutogradKeys{DispatchKey::Autograd, DispatchKey::ADInplaceOrView};

// The same elements in memory of their own, which lies as is said. Recorded, if grad mode is on.
Tensor copy_laid_out(const Tensor& tensor, std::span<const int64_t> strides, Dtype dtype, Device device) {
  Tensor copy = core::allocate(tensor.sizes(), strides, dtype, device);
  static const dispatch::Operator& copy_op = dispatch::find_operator("aten::copy_");
  const Value args[] = {Value(copy), Value(tensor), Value(false)};
  return dispatch::call_boxed(copy_op, args)[0].take_tensor();
}

Tensor copy_of(const Tensor& tensor) {
  dispatch::ExcludeKeys below(kAutogradKeys);
  return copy_laid_out(tensor, tensor.strides(), tensor.dtype(), tensor.device());
}

Ints evaluate(const SymInts& numbers, std::span<const int64_t> symbols) {
  Ints values;
  for (const SymInt& number : numbers)
    values.push_back(number.is_symbolic() ? sym::evaluate(number.expr(), symbols) : number.plain());
  return values;
}

// Where a second differentiation ends that was refused beforehand.
class RefusedNode final : public autograd::Node {
 public:
  RefusedNode() : Node("CompiledFunctionBackward") {}
  std::vector<Tensor> apply(std::vector<Tensor>) override {
    fail(
        "[backward] torch.compile with aot_autograd does not currently support double backward: the function was "
        "compiled with double_backward = Refuse");
  }
};

}  // namespace

void CompiledNode::save(std::span<const Tensor> inputs, std::span<Value> forward_results) {
  const JointGraph& joint = state_->joint;
  const Partition& parts = state_->parts;
  // Backward wants the value before the function itself writes to it, with the strides that it was traced with.
  auto is_overwritten = [&](const Tensor& tensor) {
    return std::any_of(joint.mutated.begin(), joint.mutated.end(),
                       [&](int32_t mutated) { return tensor.is_same_storage(inputs[static_cast<size_t>(mutated)]); });
  };
  std::vector<int32_t> saved_at(inputs.size(), -1);
  for (size_t at = 0; at < parts.saved.size(); ++at) {
    if (int32_t input = parts.saved_inputs[at]; input >= 0) {
      const Tensor& tensor = inputs[static_cast<size_t>(input)];
      saved_at[static_cast<size_t>(input)] = static_cast<int32_t>(at);
      // What eager does not keep may be changed before backward comes. A parameter is not.
      bool free = joint.kept_by_eager[static_cast<size_t>(input)] || (tensor.is_leaf() && tensor.requires_grad());
      saved_.push_back(free && !is_overwritten(tensor)
                           ? autograd::SavedTensor::input(tensor)
                           : autograd::SavedTensor::copy(copy_of(tensor), autograd::gradient_edge(tensor)));
      continue;
    }
    Tensor kept = alias_without_history(forward_results[joint.forward_outputs + at].tensor());
    if (parts.saved_is_results[at] || is_overwritten(kept)) kept = copy_of(kept);
    saved_.push_back(autograd::SavedTensor::input(kept));
  }
  // What backward has in another form, but eager keeps as it is, is watched as if it were kept.
  for (size_t at = 0; at < inputs.size(); ++at)
    if (saved_at[at] < 0 && inputs[at].defined() && !is_overwritten(inputs[at]))
      watch("an argument of it", inputs[at], joint.primals_needed_by[at]);
  if (!state_->refuse_double_backward) {
    primals_.resize(inputs.size());
    for (size_t at = 0; at < inputs.size(); ++at) {
      if (!joint.read[at] || !inputs[at].defined()) continue;
      primals_[at].saved = saved_at[at];
      if (saved_at[at] < 0)
        primals_[at].own = is_overwritten(inputs[at])
                               ? autograd::SavedTensor::copy(copy_of(inputs[at]), autograd::gradient_edge(inputs[at]))
                               : autograd::SavedTensor::input(inputs[at]);
    }
  }
  alive_ = true;
}

void CompiledNode::watch(const char* what, const Tensor& tensor, const std::vector<int32_t>& needed_by) {
  const Ref<Version>& version = tensor.impl()->version;
  if (version && !needed_by.empty()) watched_.push_back({what, &needed_by, version, version->count});
}

void CompiledNode::check_unchanged(const std::vector<Tensor>& gradients) const {
  for (const Watched& each : watched_)
    for (int32_t tangent : *each.needed_by)
      TENON_CHECK(!gradients[static_cast<size_t>(tangent)].defined() || each.version->count == each.then,
                  "[backward] one of the variables needed for gradient computation has been modified by an inplace "
                  "operation: for {} {} is at version {}, expected version {}",
                  name(), each.what, each.version->count, each.then);
}

void CompiledNode::check_alive() const {
  TENON_CHECK(alive_,
              "[backward] the graph was freed: a compiled function cannot run backward a second time. Specify "
              "retain_graph=True in the "
              "first backward");
}

std::vector<Tensor> CompiledNode::apply(std::vector<Tensor> gradients) {
  if (is_copy_) return apply_inlined(gradients);
  // A walk that needs nothing of this function may come by after its own walk is over.
  bool any = std::any_of(gradients.begin(), gradients.end(), [](const Tensor& each) { return each.defined(); });
  if (!any) return std::vector<Tensor>(state_->joint.gradients.size());
  check_alive();
  check_unchanged(gradients);
  if (!autograd::grad_enabled() || !has_history(gradients)) return apply_once(gradients);
  if (state_->refuse_double_backward) return apply_refusing_more(gradients);
  // Eager computes the gradient from that very result, so that the next derivative goes through its hooks once more.
  auto is_junction = [&](uint32_t nr) {
    for (size_t at = 0; at < junctions_.size(); ++at)
      if (state_->joint.junctions[at].tangent == static_cast<int32_t>(nr)) return junctions_[at].intact();
    return false;
  };
  for (const auto& [nr, hooks] : tensor_hooks())
    TENON_CHECK(hooks->entries.empty() || is_junction(nr) ||
                    !state_->joint.outputs_kept[static_cast<size_t>(state_->joint.tangents[nr])],
                "[backward] a hook is set on a result of {} from which its own gradient is computed, and that gradient "
                "is to be differentiated: set the hook on a copy of the result, clone()",
                name());
  GradientLevel level = level_for(gradients);
  level.of = state_->joint.gradients;
  return run_differentiated(gradients, level, true);
}

// Whether the gradients that leave depend on something that requires grad.
bool CompiledNode::has_history(const std::vector<Tensor>& gradients) const {
  auto requires_grad = [](const Tensor& gradient) { return gradient.defined() && gradient.requires_grad(); };
  if (std::any_of(gradients.begin(), gradients.end(), requires_grad)) return true;
  const JointGraph& joint = state_->joint;
  for (int32_t input : joint.gradients)
    if (joint.read[static_cast<size_t>(input)]) return true;
  return false;
}

std::vector<Tensor> CompiledNode::apply_once(std::vector<Tensor>& gradients) {
  std::vector<bool> given;
  for (const Tensor& gradient : gradients) given.push_back(gradient.defined());
  State::Backward& backward = state_->backward(given, symbols_);
  dispatch::ExcludeKeys below(kAutogradKeys);
  autograd::NoGrad off;
  std::vector<Tensor> inputs;
  for (size_t at = 0; at < saved_.size(); ++at)
    if (backward.read[at]) {
      int32_t input = state_->parts.saved_inputs[at];
      TENON_CHECK(saved_[at].intact() || input < 0 || state_->joint.kept_by_eager[static_cast<size_t>(input)],
                  "[backward] one of the variables needed for gradient computation has been modified by an inplace "
                  "operation: {}, a leaf that requires grad and that a compiled function keeps instead of what it "
                  "computed from it, was changed before the gradient is computed; change it afterwards, or a copy",
                  state_->program.captured
                      .values[static_cast<size_t>(state_->program.captured.inputs[static_cast<size_t>(input)])]
                      .name);
      inputs.push_back(saved_[at].unpack(name(), nullptr));
    }
  for (size_t at = 0; at < gradients.size(); ++at)
    if (given[at]) inputs.push_back(as_traced(gradients[at], at));
  std::shared_ptr<GraphFunction> run = state_->compiled(backward, symbols_);
  // Each goes as soon as it is not needed any more.
  std::optional<core::GiveUp> up;
  if (autograd::walk_frees(*this)) {
    gradients.clear();
    release_saved();
    up.emplace(inputs);
  }
  std::vector<Draw> draws;
  if (state_->joint.draws > 0) {
    draws = draws_;
    draws.resize(static_cast<size_t>(state_->joint.draws));
    for (int32_t draw : backward.draws) draws[static_cast<size_t>(draw)] = default_generator().next();
  }
  FixedDraws fixed(draws);
  std::vector<Value> computed = (*run)(inputs, symbols_);
  std::vector<Tensor> results;
  size_t next = 0;
  for (bool reached : backward.reached) results.push_back(reached ? computed[next++].take_tensor() : Tensor());
  return results;
}

GradientLevel CompiledNode::level_for(const std::vector<Tensor>& gradients) const {
  GradientLevel level;
  level.are_dense = state_->joint.are_dense;
  for (const autograd::SavedTensor& junction : junctions_) level.junctions.push_back(junction.intact());
  for (const Tensor& gradient : gradients) {
    level.given.push_back(gradient.defined());
    level.requires_grad.push_back(gradient.defined() && autograd::grad_enabled() && gradient.requires_grad());
  }
  return level;
}

Tensor CompiledNode::unpack(const Primal& primal) const {
  const autograd::SavedTensor& saved = primal.saved >= 0 ? saved_[static_cast<size_t>(primal.saved)] : primal.own;
  TENON_CHECK(saved.intact(),
              "[backward] one of the variables needed for gradient computation has been modified by an inplace "
              "operation: an argument of a compiled function was changed before a derivative of its gradient is asked "
              "for, which is computed from the arguments; give the function a clone() of what is changed later");
  return saved.unpack(name(), nullptr);
}

std::vector<Tensor> CompiledNode::run_differentiated(const std::vector<Tensor>& gradients, const GradientLevel& level,
                                                     bool history) const {
  std::shared_ptr<State> next = state_->differentiated(level, history, symbols_);
  std::vector<Tensor> inputs;
  for (size_t at = 0; at < primals_.size(); ++at) {
    inputs.push_back(next->reads[at] ? unpack(primals_[at]) : Tensor());
    // What the gradient does not depend on was not kept. A body that is recorded with its history may take it all the
    // same, to write over what it makes of it.
    if (next->reads[at] && !inputs.back().defined()) {
      const Tensor& meta = state_->program.captured.meta(state_->program.captured.inputs[at]);
      const Ints sizes = evaluate(meta.sym_sizes(), symbols_);
      inputs.back() =
          core::allocate(sizes.span(), core::contiguous_strides(sizes.span()).span(), meta.dtype(), meta.device());
      inputs.back().zero_();
    }
  }
  for (size_t at = 0; at < junctions_.size(); ++at)
    if (level.junctions[at])
      inputs.push_back(junctions_[at].unpack(name(), [&] {
        return autograd::Edge{Ref<autograd::Node>(const_cast<CompiledNode*>(this)),
                              static_cast<uint32_t>(state_->joint.junctions[at].tangent)};
      }));
  for (size_t at = 0; at < gradients.size(); ++at)
    if (level.given[at]) inputs.push_back(as_traced(gradients[at], at));
  std::vector<Value> computed = run_wrapped(next, inputs, symbols_, draws_);
  std::vector<Tensor> results;
  size_t at = 0;
  for (bool reached : next->joint.reached) results.push_back(reached ? computed[at++].take_tensor() : Tensor());
  return results;
}

std::vector<Tensor> CompiledNode::apply_refusing_more(std::vector<Tensor>& gradients) {
  std::vector<Tensor> results = apply_once(gradients);
  auto refused = make_ref<RefusedNode>();
  autograd::Edges edges = next_edges();
  for (const Tensor& gradient : gradients)
    if (gradient.defined()) edges.push_back(autograd::gradient_edge(gradient));
  refused->set_next_edges(std::move(edges));
  for (Tensor& result : results)
    if (result.defined()) {
      result = alias_without_history(result);
      autograd::set_history(result, refused);
    }
  return results;
}

Tensor CompiledNode::whole_gradient(uint32_t input_nr, const std::vector<Tensor>& gradients) const {
  if (!is_partial(input_nr, gradients)) return gradients[input_nr];
  check_alive();
  TENON_CHECK(!state_->refuse_double_backward,
              "[grad] the gradient of a result that another result of the same compiled call was computed from needs "
              "double_backward = Allow");
  GradientLevel level = level_for(gradients);
  level.of = {static_cast<int32_t>(input_nr)};
  level.of_results = true;
  return run_differentiated(gradients, level, autograd::grad_enabled())[0];
}

bool CompiledNode::is_partial(uint32_t input_nr, const std::vector<Tensor>& gradients) const {
  const std::vector<int32_t>& behind = state_->joint.behind[input_nr];
  return std::any_of(behind.begin(), behind.end(),
                     [&](int32_t tangent) { return gradients[static_cast<size_t>(tangent)].defined(); });
}

void CompiledNode::release_saved() {
  saved_.clear();
  primals_.clear();
  junctions_.clear();
  watched_.clear();
  alive_ = false;
}

// A gradient with the sizes and strides that backward was traced with.
Tensor CompiledNode::as_traced(const Tensor& gradient, size_t tangent) const {
  const graph::Graph& backward = state_->parts.backward;
  const Tensor& meta = backward.meta(backward.inputs[state_->parts.saved.size() + tangent]);
  Ints sizes = evaluate(meta.sym_sizes(), symbols_), strides = evaluate(meta.sym_strides(), symbols_);
  bool same = gradient.dtype() == meta.dtype();
  for (size_t dim = 0; same && dim < sizes.size(); ++dim)
    same = gradient.strides()[dim] == strides[dim] || sizes[dim] <= 1;
  return same ? gradient : copy_laid_out(gradient, strides.span(), meta.dtype(), meta.device());
}

}  // namespace tenon::aot
