// The run-time wrapper around the compiled forward and backward graphs.
#include "alias.h"
#include "compiled_node.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/core/given_up.h>
#include <tenon/core/random.h>

#include <algorithm>

namespace tenon::aot {
namespace {

using dispatch::Value;

Tensor call_tensor(const char* name, std::initializer_list<Value> args) {
  return dispatch::call_boxed(dispatch::find_operator(name), std::span<const Value>(args))[0].take_tensor();
}

Tensor follow(const ViewLink& link, const Tensor& from, std::span<const int64_t> symbols) {
  dispatch::Values args;
  args.push_back(Value(from));
  for (size_t at = 1; at < link.args.size(); ++at) args.push_back(graph::evaluate_numbers(link.args[at], symbols));
  autograd::SetGradMode mode(link.grad_enabled);
  return dispatch::call_boxed(*link.op, args)[0].take_tensor();
}

Tensor make_view_of(const Tensor& input, const std::vector<ViewLink>& chain, std::span<const int64_t> symbols) {
  Tensor view = input;
  for (const ViewLink& link : chain) view = follow(link, view, symbols);
  return view;
}

// What the program does to the generator happens now, in its order; nodes find their draws by number.
std::vector<Draw> take_draws(const JointGraph& joint, std::span<const int64_t> symbols, std::span<const Draw> given) {
  std::vector<Draw> draws(given.begin(), given.end());
  for (const RandomEvent& event : joint.random) {
    if (event.seed)
      manual_seed(static_cast<uint64_t>(graph::evaluate_numbers(*event.seed, symbols).integer()));
    else
      draws.push_back(default_generator().next());
  }
  return draws;
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

}  // namespace

std::vector<Value> run_wrapped(const std::shared_ptr<State>& state, std::span<const Tensor> inputs,
                               std::span<const int64_t> symbols, std::span<const Draw> given) {
  const JointGraph& joint = state->joint;
  check_written(joint, inputs);
  // What is looked at again afterwards is not given up.
  if (!joint.mutated.empty() || !joint.tangents.empty() ||
      std::any_of(joint.outputs.begin(), joint.outputs.end(), [](const OutputPlan& plan) {
        return plan.kind == OutputPlan::Kind::Input || plan.kind == OutputPlan::Kind::ViewOfInput;
      }))
    (void)core::taken(inputs);
  std::vector<Draw> draws = take_draws(joint, symbols, given);
  std::vector<Value> results;
  {
    dispatch::ExcludeKeys below(KeySet{DispatchKey::Autograd, DispatchKey::ADInplaceOrView});
    FixedDraws fixed(draws);
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
  // A plan may have written a new value where it belongs: then it gives the input itself.
  SmallVector<bool, 8> is_there;
  for (size_t at = 0; at < joint.mutated.size(); ++at)
    is_there.push_back(results[at].tensor().is(inputs[static_cast<size_t>(joint.mutated[at])]));
  // Outputs that happen to be one tensor get a handle each, because each has a history of its own.
  for (size_t at = 0; at < joint.forward_outputs; ++at) {
    bool shared = false;
    const Tensor& result = results[at].tensor();
    for (const Tensor& input : inputs) shared |= result.is(input);
    for (size_t before = 0; before < at; ++before) shared |= results[at].tensor().is(results[before].tensor());
    if (shared) results[at] = Value(alias_without_history(results[at].tensor()));
  }
  Ref<CompiledNode> node;
  SmallVector<int64_t, 8> history;  // by forward output: which input of the node it is
  history.resize(joint.forward_outputs, -1);
  if (!joint.tangents.empty()) {
    node = make_ref<CompiledNode>(state, symbols, std::move(draws));
    autograd::Edges edges;
    for (int32_t input : joint.gradients) {
      const Tensor& tensor = inputs[static_cast<size_t>(input)];
      edges.push_back(tensor.defined() ? autograd::gradient_edge(tensor) : autograd::Edge{});
    }
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
    bool is_current = node && history[at] < 0 && is_view(input) && autograd::grad_fn(input);
    if (is_there[at] && history[at] < 0) {
      if (input.impl()->version) ++input.impl()->version->count;
    } else {
      autograd::SetGradMode mode(autograd::grad_enabled() || through_autograd);
      dispatch::ExcludeKeys below(through_autograd ? KeySet{} : KeySet{DispatchKey::Autograd});
      call_tensor("aten::copy_", {Value(input), Value(results[at].tensor()), Value(false)});
    }
    if (!through_autograd) set_history(input, at);
    // A write that autograd does not see leaves a view its history, which is the one that the results lead to.
    if (is_current) autograd::meta_of(input)->view->version = input.version();
  }
  if (node && !state->refuse_double_backward)
    for (const Junction& junction : joint.junctions)
      node->save_junction(results[static_cast<size_t>(joint.tangents[static_cast<size_t>(junction.tangent)])].tensor());
  for (size_t at = 0; node && at < joint.forward_outputs; ++at)
    node->watch("a result of it",
                at < joint.mutated.size() ? inputs[static_cast<size_t>(joint.mutated[at])] : results[at].tensor(),
                joint.needed_by[at]);
  // A view of an input that autograd does not see as one has a history of its own.
  auto with_history = [&](Tensor view, int32_t forward_output) {
    if (forward_output >= 0) set_history(view, static_cast<size_t>(forward_output));
    return view;
  };
  std::vector<Tensor> remade;
  for (const RemadeView& view : joint.remade) {
    if (view.output >= 0)
      remade.push_back(results[static_cast<size_t>(view.output)].tensor());
    else if (view.input >= 0)
      remade.push_back(
          with_history(make_view_of(inputs[static_cast<size_t>(view.input)], view.chain, symbols), view.history));
    else
      remade.push_back(
          with_history(follow(view.link, remade[static_cast<size_t>(view.parent)], symbols), view.history));
    if (view.is_apart && is_view(remade.back())) autograd::meta_of(remade.back())->view->version = -1;
  }
  std::vector<Value> outputs;
  outputs.reserve(joint.outputs.size());
  for (const OutputPlan& plan : joint.outputs) {
    auto at = static_cast<size_t>(plan.index);
    if (plan.same_as >= 0) {
      outputs.push_back(Tensor(outputs[static_cast<size_t>(plan.same_as)].tensor()));
      continue;
    }
    switch (plan.kind) {
      case OutputPlan::Kind::Value: outputs.push_back(Tensor(results[at].tensor())); break;
      case OutputPlan::Kind::Input: outputs.push_back(Tensor(inputs[at])); break;
      case OutputPlan::Kind::ViewOfInput: {
        Tensor view = with_history(make_view_of(inputs[at], plan.chain, symbols), plan.history);
        // As in eager: if the input comes to require grad later on, it does too.
        if (plan.is_older && !view.requires_grad() && is_view(view)) autograd::meta_of(view)->view->version = -1;
        outputs.push_back(std::move(view));
        break;
      }
      case OutputPlan::Kind::ViewOfOutput: outputs.push_back(Tensor(remade[at])); break;
      case OutputPlan::Kind::Number: outputs.push_back(graph::evaluate_numbers(plan.number, symbols)); break;
    }
    if (plan.creation != autograd::Creation::Ordinary && plan.kind != OutputPlan::Kind::Input)
      autograd::ensure_meta(outputs.back().tensor()).creation = plan.creation;
  }
  return outputs;
}

Compiled compile(const graph::Graph& captured, const std::vector<bool>& requires_grad, bool grad_enabled,
                 const GraphCompiler& compiler, const Options& options) {
  Program program{captured, requires_grad, options.leaves, grad_enabled};
  std::shared_ptr<State> state = make_state(std::move(program), compiler, options.refuse_double_backward);
  Compiled compiled;
  compiled.program = {state, &state->program};
  compiled.traced = {state, &state->joint};
  compiled.bound = state->parts.bound;
  compiled.joint = std::make_shared<graph::Graph>(state->joint.graph);
  compiled.forward = std::make_shared<graph::Graph>(state->parts.forward);
  if (!state->joint.tangents.empty()) compiled.backward = std::make_shared<graph::Graph>(state->parts.backward);
  compiled.run = [state](std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
    if (state->program.hoisted.empty()) return run_wrapped(state, inputs, symbols);
    std::vector<Tensor> all(inputs.begin(), inputs.end());
    for (const HoistedView& view : state->program.hoisted) {
      all.push_back(make_view_of(all[static_cast<size_t>(view.input)], view.chain, symbols));
      if (view.creation != autograd::Creation::Ordinary) autograd::ensure_meta(all.back()).creation = view.creation;
    }
    return run_wrapped(state, all, symbols);
  };
  return compiled;
}

}  // namespace tenon::aot
