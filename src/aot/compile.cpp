// The run-time wrapper around the compiled forward and backward graphs.
#include "gradient_layout.h"
#include "without_tangents.h"

#include <tenon/aot/aot.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/autograd/saved_tensor.h>
#include <tenon/support/counters.h>
#include <tenon/support/log.h>

#include <map>
#include <mutex>

namespace tenon::aot {
namespace {

using dispatch::Value;

Tensor call_tensor(const char* name, std::initializer_list<Value> args) {
  return dispatch::call_boxed(dispatch::find_operator(name), std::span<const Value>(args))[0].take_tensor();
}

// The same memory under a tensor of its own, without history.
Tensor alias_without_history(const Tensor& tensor) {
  return core::make_view(tensor, tensor.sym_sizes(), tensor.sym_strides(), tensor.sym_storage_offset());
}

// The same elements in memory of their own, which lies as is said.
Tensor copy_laid_out(const Tensor& tensor, std::span<const int64_t> strides, Dtype dtype, Device device) {
  dispatch::ExcludeKeys below(KeySet{DispatchKey::Autograd, DispatchKey::ADInplaceOrView});
  Tensor copy = core::allocate(tensor.sizes(), strides, dtype, device);
  return call_tensor("aten::copy_", {Value(copy), Value(tensor), Value(false)});
}

struct State {
  JointGraph joint;
  Partition parts;
  GraphCompiler compiler;
  GraphFunction forward;
  std::shared_ptr<graph::Graph> backward_graph;

  std::once_flag backward_compiled;
  GraphFunction backward;

  const GraphFunction& compiled_backward() {
    std::call_once(backward_compiled, [this] { backward = compiler(parts.backward); });
    return backward;
  }

  // Of a call of which some results were not differentiated.
  struct Partial {
    GraphFunction run;
    std::vector<bool> read;     // by saved value, whether it is an input
    std::vector<bool> reached;  // by gradient, whether there is one
  };
  std::mutex partial_mutex;
  std::map<std::vector<bool>, Partial> partial;  // by which tangents are given

  const Partial& compiled_partial(const std::vector<bool>& given) {
    std::lock_guard lock(partial_mutex);
    auto [found, added] = partial.try_emplace(given);
    if (added) {
      graph::Graph graph = without_tangents(parts.backward, parts.saved.size(), given);
      std::vector<graph::Argument> outputs;
      for (const graph::Argument& output : graph.outputs) {
        const auto* id = std::get_if<graph::ValueId>(&output);
        found->second.reached.push_back(!id || *id != graph::kNoValue);
        if (found->second.reached.back()) outputs.push_back(output);
      }
      graph.outputs = std::move(outputs);
      // A value that only the other results need may have been changed since, or given back.
      found->second.read = drop_unused_inputs(graph, parts.saved.size());
      TENON_LOG(Graph, "backward of some results:\n{}", graph::to_string(graph));
      found->second.run = compiler(graph);
    }
    return found->second;
  }
};

Ints evaluate(const SymInts& numbers, std::span<const int64_t> symbols) {
  Ints values;
  for (const SymInt& number : numbers)
    values.push_back(number.is_symbolic() ? sym::evaluate(number.expr(), symbols) : number.plain());
  return values;
}

// The step of the backward graph that stands for a whole compiled forward.
class CompiledNode final : public autograd::Node {
 public:
  CompiledNode(std::shared_ptr<State> state, std::span<const int64_t> symbols)
      : Node("CompiledFunction"), state_(std::move(state)), symbols_(symbols.begin(), symbols.end()) {}

  void save(std::span<const Tensor> inputs, std::span<Value> forward_results) {
    const Partition& parts = state_->parts;
    for (size_t at = 0; at < parts.saved.size(); ++at) {
      int32_t input = parts.saved_inputs[at];
      Tensor kept = input >= 0 ? inputs[static_cast<size_t>(input)]
                               : alias_without_history(forward_results[state_->joint.forward_outputs + at].tensor());
      // Backward wants the value before the function itself writes to it, with the strides that it was traced with.
      for (int32_t mutated : state_->joint.mutated)
        if (kept.is_same_storage(inputs[static_cast<size_t>(mutated)])) {
          kept = copy_laid_out(kept, kept.strides(), kept.dtype(), kept.device());
          break;
        }
      saved_.push_back(autograd::SavedTensor::input(kept));
    }
    alive_ = true;
  }

  std::vector<Tensor> apply(std::vector<Tensor> gradients) override {
    TENON_CHECK(
        alive_,
        "[backward] the graph was freed: pass retain_graph=true to run backward through a compiled function again");
    if (autograd::grad_enabled())
      for (const Tensor& gradient : gradients)
        TENON_CHECK(!gradient.defined() || !gradient.requires_grad(),
                    "[backward] a compiled function cannot be differentiated twice: compile it with backend \"eager\"");
    std::vector<bool> given;
    for (const Tensor& gradient : gradients) given.push_back(gradient.defined());
    bool all = std::find(given.begin(), given.end(), false) == given.end();
    const State::Partial* partial = all ? nullptr : &state_->compiled_partial(given);
    std::vector<Tensor> inputs;
    for (size_t at = 0; at < saved_.size(); ++at)
      if (all || partial->read[at]) inputs.push_back(saved_[at].unpack(name(), nullptr));
    dispatch::ExcludeKeys below(KeySet{DispatchKey::Autograd, DispatchKey::ADInplaceOrView});
    for (size_t at = 0; at < gradients.size(); ++at)
      if (given[at])
        inputs.push_back(
            as_traced(gradients[at], state_->parts.backward.meta(state_->parts.backward.inputs[saved_.size() + at])));
    std::vector<Value> computed = all ? state_->compiled_backward()(inputs, symbols_) : partial->run(inputs, symbols_);
    std::vector<Tensor> results;
    size_t next = 0;
    for (size_t at = 0; at < state_->joint.gradients.size(); ++at)
      results.push_back(all || partial->reached[at] ? computed[next++].take_tensor() : Tensor());
    return results;
  }

  void release_saved() override {
    saved_.clear();
    alive_ = false;
  }

 private:
  // A gradient with the sizes and strides that backward was traced with.
  Tensor as_traced(const Tensor& gradient, const Tensor& meta) const {
    Ints sizes = evaluate(meta.sym_sizes(), symbols_), strides = evaluate(meta.sym_strides(), symbols_);
    bool same = gradient.dtype() == meta.dtype();
    for (size_t dim = 0; same && dim < sizes.size(); ++dim)
      same = gradient.strides()[dim] == strides[dim] || sizes[dim] <= 1;
    if (same) return gradient;
    return copy_laid_out(gradient, strides.span(), meta.dtype(), meta.device());
  }

  std::shared_ptr<State> state_;
  std::vector<int64_t> symbols_;
  std::vector<autograd::SavedTensor> saved_;
  bool alive_ = false;
};

Tensor make_view_of(const Tensor& input, const std::vector<ViewLink>& chain, std::span<const int64_t> symbols) {
  Tensor view = input;
  for (const ViewLink& link : chain) {
    dispatch::Values args;
    args.push_back(Value(view));
    for (size_t at = 1; at < link.args.size(); ++at) args.push_back(graph::evaluate_numbers(link.args[at], symbols));
    view = dispatch::call_boxed(*link.op, args)[0].take_tensor();
  }
  return view;
}

bool is_view(const Tensor& tensor) {
  const autograd::AutogradMeta* meta = autograd::meta_of(tensor);
  return meta && meta->view;
}

// What eager asks of a tensor that is about to be changed in place. The capture has asked its stand-in; but another
// call may bring a leaf, or a view of one, where that call had none.
void check_written(const JointGraph& joint, std::span<const Tensor> inputs) {
  for (size_t at = 0; at < joint.mutated.size(); ++at) {
    const Tensor& input = inputs[static_cast<size_t>(joint.mutated[at])];
    bool has_history =
        std::find(joint.tangents.begin(), joint.tangents.end(), static_cast<int32_t>(at)) != joint.tangents.end();
    if (!joint.writers[at].empty() && input.is_floating_point())
      autograd::check_inplace(input, joint.writers[at], has_history);
  }
}

std::vector<Value> run_wrapped(const std::shared_ptr<State>& state, std::span<const Tensor> inputs,
                               std::span<const int64_t> symbols) {
  const JointGraph& joint = state->joint;
  check_written(joint, inputs);
  std::vector<Value> results;
  {
    dispatch::ExcludeKeys below(KeySet{DispatchKey::Autograd, DispatchKey::ADInplaceOrView});
    results = state->forward(inputs, symbols);
  }
  // What forward took from data joins what was known of the sizes.
  std::vector<int64_t> with_bound;
  if (const std::vector<int32_t>& bound = state->parts.bound; !bound.empty()) {
    with_bound.assign(symbols.begin(), symbols.end());
    with_bound.resize(static_cast<size_t>(joint.graph.env->pool().symbol_count()));
    size_t first = joint.forward_outputs + state->parts.saved.size();
    for (size_t at = 0; at < bound.size(); ++at)
      with_bound[static_cast<size_t>(bound[at])] = graph::symbol_bits(results[first + at]);
    symbols = with_bound;
  }
  // Outputs that happen to be one tensor get a handle each, because each has a history of its own.
  for (size_t at = 0; at < joint.forward_outputs; ++at) {
    bool shared = false;
    for (const Tensor& input : inputs) shared |= results[at].tensor().is(input);
    for (size_t before = 0; before < at; ++before) shared |= results[at].tensor().is(results[before].tensor());
    if (shared) results[at] = Value(alias_without_history(results[at].tensor()));
  }
  Ref<CompiledNode> node;
  std::vector<int64_t> history(joint.forward_outputs, -1);  // by forward output: which input of the node it is
  if (!joint.tangents.empty()) {
    node = make_ref<CompiledNode>(state, symbols);
    std::vector<autograd::Edge> edges;
    for (int32_t input : joint.gradients) edges.push_back(autograd::gradient_edge(inputs[static_cast<size_t>(input)]));
    node->set_next_edges(std::move(edges));
    node->save(inputs, results);
    for (int32_t at : joint.tangents)
      history[static_cast<size_t>(at)] = node->add_input(results[static_cast<size_t>(at)].tensor());
  }
  auto set_history = [&](const Tensor& tensor, size_t forward_output) {
    if (int64_t nr = history[forward_output]; nr >= 0) autograd::set_history(tensor, {node, static_cast<uint32_t>(nr)});
  };
  for (size_t at = 0; at < joint.forward_outputs; ++at)
    if (at >= joint.mutated.size() || is_view(inputs[static_cast<size_t>(joint.mutated[at])]))
      set_history(results[at].tensor(), at);
  for (size_t at = 0; at < joint.mutated.size(); ++at) {
    const Tensor& input = inputs[static_cast<size_t>(joint.mutated[at])];
    // A view is changed as eager changes it, so that the history of what it looks into is written anew.
    bool through_autograd = history[at] >= 0 && is_view(input);
    autograd::SetGradMode mode(autograd::grad_enabled() || through_autograd);
    dispatch::ExcludeKeys below(through_autograd ? KeySet{} : KeySet{DispatchKey::Autograd});
    call_tensor("aten::copy_", {Value(input), Value(results[at].tensor()), Value(false)});
    if (!through_autograd) set_history(input, at);
  }
  // A view of an input that autograd does not see as one has a history of its own.
  auto with_history = [&](Tensor view, int32_t forward_output) {
    if (forward_output >= 0) set_history(view, static_cast<size_t>(forward_output));
    return view;
  };
  std::vector<Value> outputs;
  outputs.reserve(joint.outputs.size());
  for (const OutputPlan& plan : joint.outputs) {
    auto at = static_cast<size_t>(plan.index);
    switch (plan.kind) {
      case OutputPlan::Kind::Value: outputs.push_back(Tensor(results[at].tensor())); break;
      case OutputPlan::Kind::Input: outputs.push_back(Tensor(inputs[at])); break;
      case OutputPlan::Kind::ViewOfInput:
        outputs.push_back(with_history(make_view_of(inputs[at], plan.chain, symbols), plan.history));
        break;
      case OutputPlan::Kind::Number: outputs.push_back(graph::evaluate_numbers(plan.number, symbols)); break;
    }
  }
  return outputs;
}

}  // namespace

Compiled compile(const graph::Graph& captured, const std::vector<bool>& requires_grad, bool grad_enabled,
                 const GraphCompiler& compiler) {
  auto state = std::make_shared<State>();
  bool any = grad_enabled && std::find(requires_grad.begin(), requires_grad.end(), true) != requires_grad.end();
  state->joint = trace_joint(captured, requires_grad, any);
  state->parts = partition(state->joint);
  make_gradients_dense(state->parts.backward);
  state->compiler = compiler;
  Compiled compiled;
  compiled.joint = std::make_shared<graph::Graph>(state->joint.graph);
  compiled.forward = std::make_shared<graph::Graph>(state->parts.forward);
  if (!state->joint.tangents.empty()) compiled.backward = std::make_shared<graph::Graph>(state->parts.backward);
  TENON_LOG(Graph, "forward:\n{}", graph::to_string(state->parts.forward));
  if (compiled.backward) TENON_LOG(Graph, "backward:\n{}", graph::to_string(state->parts.backward));
  state->forward = compiler(state->parts.forward);
  compiled.run = [state](std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
    return run_wrapped(state, inputs, symbols);
  };
  return compiled;
}

}  // namespace tenon::aot
