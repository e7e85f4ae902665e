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

// One call of a module with hooks, from its way in to its way out. Both nodes hold it.
struct Passage : std::enable_shared_from_this<Passage> {
  BackwardHooks called;
  size_t inputs = 0;
  std::vector<size_t> recorded;                // the inputs that require grad
  std::optional<std::vector<Tensor>> leaving;  // the gradient of the output, until the hooks were called

  Passage(BackwardHooks hooks, size_t count) : called(std::move(hooks)), inputs(count) {}

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

// Backward reached the output.
std::vector<Tensor> meet_output(Passage& passage, std::vector<Tensor> gradients) {
  for (const Module::BackwardPreHook& hook : passage.called.pre_hooks)
    passage.replace("register_full_backward_pre_hook", gradients, hook(passage.called.module, gradients));
  passage.leaving = gradients;
  // Nothing leads to the inputs: there is no later moment.
  if (passage.recorded.empty()) (void)passage.call_hooks(std::vector<Tensor>(passage.inputs));
  return gradients;
}

// Backward reached the inputs.
std::vector<Tensor> meet_inputs(Passage& passage, std::vector<Tensor> gradients) {
  // Not through the output: a derivative of a gradient that came by before.
  if (!passage.leaving) return gradients;
  std::vector<Tensor> all(passage.inputs);
  for (size_t at = 0; at < gradients.size(); ++at) all[passage.recorded[at]] = gradients[at];
  all = passage.call_hooks(std::move(all));
  for (size_t at = 0; at < gradients.size(); ++at) gradients[at] = all[passage.recorded[at]];
  return gradients;
}

using Meet = std::vector<Tensor> (*)(Passage& passage, std::vector<Tensor> gradients);

// The same tensors behind a node that calls `meet`.
std::vector<Tensor> behind_node(const std::shared_ptr<Passage>& passage, const std::vector<Tensor>& tensors,
                                Meet meet) {
  auto node = make_ref<FunctionNode>(kNodeName, [passage, meet](AutogradContext&, std::vector<Tensor> gradients) {
    return meet(*passage, std::move(gradients));
  });
  // How `leave_module` finds the passage: the node holds it.
  node->context().saved_data["passage"] = reinterpret_cast<intptr_t>(passage.get());
  node->context().set_materialize_grads(false);
  node->connect(tensors, std::vector<uint32_t>(tensors.size(), 1));
  std::vector<Tensor> results = tensors;
  node->finish(tensors, results);
  return results;
}

bool is_recorded(const Tensor& tensor) { return tensor.requires_grad() && autograd::grad_enabled(); }

std::vector<Tensor> enter(BackwardHooks hooks, std::span<const Tensor> inputs) {
  auto passage = std::make_shared<Passage>(std::move(hooks), inputs.size());
  std::vector<Tensor> recorded, results(inputs.begin(), inputs.end());
  for (size_t at = 0; at < inputs.size(); ++at)
    if (is_recorded(inputs[at])) {
      passage->recorded.push_back(at);
      recorded.push_back(inputs[at]);
    }
  if (recorded.empty()) return results;
  recorded = behind_node(passage, recorded, meet_inputs);
  for (size_t at = 0; at < recorded.size(); ++at) results[passage->recorded[at]] = recorded[at];
  return results;
}

std::shared_ptr<Passage> passage_of(const Tensor& input) {
  if (!input.requires_grad()) return nullptr;
  const Ref<autograd::Node> node = autograd::grad_fn(input);
  const auto* function = dynamic_cast<const FunctionNode*>(node.get());
  if (!function || function->name() != kNodeName) return nullptr;
  return reinterpret_cast<Passage*>(function->context().saved_data.at("passage").integer())->shared_from_this();
}

Tensor leave(BackwardHooks hooks, std::span<const Tensor> inputs, const Tensor& output) {
  if (!is_recorded(output)) return output;
  std::shared_ptr<Passage> passage;
  for (const Tensor& input : inputs)
    if (!passage) passage = passage_of(input);
  if (!passage) passage = std::make_shared<Passage>(std::move(hooks), inputs.size());
  return behind_node(passage, {output}, meet_output)[0];
}

}  // namespace

std::vector<Tensor> enter_module(BackwardHooks hooks, std::span<const Tensor> inputs) {
  const core::EffectInterceptor* instead = core::effect_interceptor();
  if (!instead) return enter(std::move(hooks), inputs);
  return (*instead)({"a module has backward hooks", inputs,
                     [hooks = std::move(hooks)](std::span<const Tensor> real) { return enter(hooks, real); }});
}

Tensor leave_module(BackwardHooks hooks, std::span<const Tensor> inputs, const Tensor& output) {
  const core::EffectInterceptor* instead = core::effect_interceptor();
  if (!instead) return leave(std::move(hooks), inputs, output);
  std::vector<Tensor> all(inputs.begin(), inputs.end());
  all.push_back(output);
  return (*instead)({"a module has backward hooks", all, [hooks = std::move(hooks)](std::span<const Tensor> real) {
                       return std::vector<Tensor>{leave(hooks, real.first(real.size() - 1), real.back())};
                     }})[0];
}

}  // namespace tenon::nn
