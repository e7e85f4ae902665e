// Backward hooks of modules. What a module is given passes a node of its own on the way in, and its output one on the
// way out: backward comes to the latter first, with the gradient of the output, and to the former once the gradients of
// the inputs are known.
#pragma once

#include <tenon/nn/module.h>

namespace tenon::nn {

// The hooks that a call of a module began with.
struct BackwardHooks {
  Module module;
  std::vector<Module::BackwardPreHook> pre_hooks;
  std::vector<Module::BackwardHook> hooks;
};

// The inputs as `forward` gets them. In a captured function an effect: it happens at every call.
std::vector<Tensor> enter_module(BackwardHooks hooks, std::span<const Tensor> inputs);
// The output as the caller gets it; `inputs` are those of `enter_module`.
Tensor leave_module(BackwardHooks hooks, std::span<const Tensor> inputs, const Tensor& output);

}  // namespace tenon::nn
