#include "nn/backward_hooks.h"

#include "core/effects.h"

#include <tenon/autograd/function.h>
#include <tenon/autograd/meta.h>

#include <memory>
#include <optional>

namespace tenon::nn {
namespace {

using autograd::AutogradContext;
using autograd::FunctionNode;

constexpr const char* kNodeName = "BackwardHookFunctionBackward";

// Some of `count` tensors, by their places: the rest are undefined in the whole list.
struct Part {
  size_t count = 0;
  std::vector<size_t> places;

  template <typename Belongs>
  static Part of(std::span<const Tensor> all, Belongs&& belongs) {
    Part part{all.size(), {}};
    for (size_t at = 0; at < all.size(); ++at)
      if (belongs(all[at])) part.places.push_back(at);
    return part;
  }
  std::vector<Tensor> take(std::span<const Tensor> all) const {
    std::vector<Tensor> part;
    for (size_t place : places) part.push_back(all[place]);
    return part;
  }
  void put(std::span<const Tensor> part, std::vector<Tensor>& all) const {
    for (size_t at = 0; at < places.size(); ++at) all[places[at]] = part[at];
  }
  std::vector<Tensor> whole(std::span<const Tensor> part) const {
    std::vector<Tensor> all(count);
    put(part, all);
    return all;
  }
};

// One call of a module with hooks, from its way in to its way out. Both nodes hold it.
struct Passage : std::enable_shared_from_this<Passage> {
  BackwardHooks called;
  Part inputs, outputs;                        // those that require grad
  std::optional<std::vector<Tensor>> leaving;  // the gradients of the outputs, until the hooks were called

  Passage(BackwardHooks hooks, Part recorded) : called(std::move(hooks)), inputs(std::move(recorded)) {}

  std::vector<Tensor> call_hooks(std::vector<Tensor> grad_input) {
    const std::vector<Tensor> grad_output = *std::exchange(leaving, std::nullopt);
    for (const Module::BackwardHook& hook : called.hooks)
      replace("register_full_backward_hook", grad_input, hook(called.module, grad_input, grad_output));
    return grad_input;
  }

  void replace(const char* who, std::vector<Tensor>& gradients, std::vector<Tensor> given) const {
    if (given.empty()) return;
    TENON_CHECK_VALUE(given.size() == gradients.size(),
                      "[{}] a hook of the {} returned {} gradients: expected {}, or none at all", who,
                      called.module.kind(), given.size(), gradients.size());
    gradients = std::move(given);
  }
};

// Backward reached the outputs.
std::vector<Tensor> meet_outputs(Passage& passage, std::vector<Tensor> gradients) {
  std::vector<Tensor> all = passage.outputs.whole(gradients);
  for (const Module::BackwardPreHook& hook : passage.called.pre_hooks)
    passage.replace("register_full_backward_pre_hook", all, hook(passage.called.module, all));
  passage.leaving = all;
  // Nothing leads to the inputs: there is no later moment.
  if (passage.inputs.places.empty()) (void)passage.call_hooks(std::vector<Tensor>(passage.inputs.count));
  return passage.outputs.take(all);
}

// Backward reached the inputs.
std::vector<Tensor> meet_inputs(Passage& passage, std::vector<Tensor> gradients) {
  // Not through the outputs: a derivative of a gradient that came by before.
  if (!passage.leaving) return gradients;
  return passage.inputs.take(passage.call_hooks(passage.inputs.whole(gradients)));
}

using Meet = std::vector<Tensor> (*)(Passage& passage, std::vector<Tensor> gradients);

// The same tensors, those of `part` behind a node that calls `meet`.
std::vector<Tensor> behind_node(const std::shared_ptr<Passage>& passage, const Part& part,
                                std::span<const Tensor> tensors, Meet meet) {
  const std::vector<Tensor> recorded = part.take(tensors);
  auto node = make_ref<FunctionNode>(kNodeName, [passage, meet](AutogradContext&, std::vector<Tensor> gradients) {
    return meet(*passage, std::move(gradients));
  });
  // How `leave_module` finds the passage: the node holds it.
  node->context().saved_data["passage"] = reinterpret_cast<intptr_t>(passage.get());
  node->context().set_materialize_grads(false);
  node->connect(recorded, std::vector<uint32_t>(recorded.size(), 1));
  std::vector<Tensor> results = recorded, all(tensors.begin(), tensors.end());
  node->finish(recorded, results);
  part.put(results, all);
  return all;
}

bool is_defined(const Tensor& tensor) { return tensor.defined(); }
bool is_recorded(const Tensor& tensor) {
  return tensor.defined() && tensor.requires_grad() && autograd::grad_enabled();
}

std::vector<Tensor> enter(BackwardHooks hooks, std::span<const Tensor> inputs) {
  auto passage = std::make_shared<Passage>(std::move(hooks), Part::of(inputs, is_recorded));
  if (passage->inputs.places.empty()) return {inputs.begin(), inputs.end()};
  return behind_node(passage, passage->inputs, inputs, meet_inputs);
}

std::shared_ptr<Passage> passage_of(const Tensor& input) {
  if (!input.defined() || !input.requires_grad()) return nullptr;
  const Ref<autograd::Node> node = autograd::grad_fn(input);
  const auto* function = dynamic_cast<const FunctionNode*>(node.get());
  if (!function || function->name() != kNodeName) return nullptr;
  return reinterpret_cast<Passage*>(function->context().saved_data.at("passage").integer())->shared_from_this();
}

std::vector<Tensor> leave(BackwardHooks hooks, std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  Part recorded = Part::of(outputs, is_recorded);
  if (recorded.places.empty()) return {outputs.begin(), outputs.end()};
  std::shared_ptr<Passage> passage;
  for (const Tensor& input : inputs)
    if (!passage) passage = passage_of(input);
  if (!passage) passage = std::make_shared<Passage>(std::move(hooks), Part{inputs.size(), {}});
  passage->outputs = std::move(recorded);
  return behind_node(passage, passage->outputs, outputs, meet_outputs);
}

// `act` on the tensors; in a capture, on those of every call. An undefined tensor is nothing that a capture knows of.
std::vector<Tensor> as_effect(std::span<const Tensor> tensors, size_t results_from,
                              std::function<std::vector<Tensor>(std::span<const Tensor>)> act) {
  const core::EffectInterceptor* instead = core::effect_interceptor();
  if (!instead) return act(tensors);
  Part given = Part::of(tensors, is_defined), results = Part::of(tensors.subspan(results_from), is_defined);
  return results.whole((*instead)({"a module has backward hooks", given.take(tensors),
                                   [given, results, act = std::move(act)](std::span<const Tensor> real) {
                                     return results.take(act(given.whole(real)));
                                   }}));
}

}  // namespace

std::vector<Tensor> enter_module(BackwardHooks hooks, std::span<const Tensor> inputs) {
  return as_effect(inputs, 0, [hooks = std::move(hooks)](std::span<const Tensor> real) { return enter(hooks, real); });
}

std::vector<Tensor> leave_module(BackwardHooks hooks, std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  std::vector<Tensor> all(inputs.begin(), inputs.end());
  all.insert(all.end(), outputs.begin(), outputs.end());
  const size_t count = inputs.size();
  return as_effect(all, count, [hooks = std::move(hooks), count](std::span<const Tensor> real) {
    return leave(hooks, real.first(count), real.subspan(count));
  });
}

}  // namespace tenon::nn
