// Backward hooks of modules. What a module is given passes a node of its own on the way in, and its outputs one on the
// way out: backward comes to the latter first, with the gradients of the outputs, and to the former once the gradients
// of the inputs are known.
#pragma once

#include <tenon/nn/module.h>

namespace tenon::nn {

// The hooks that a call of a module began with.
struct BackwardHooks {
  Module module;
  std::vector<Module::BackwardPreHook> pre_hooks;
  std::vector<Module::BackwardHook> hooks;
};

// The inputs as `forward` gets them; undefined ones stay so. In a captured function an effect: it happens at every
// call.
std::vector<Tensor> enter_module(BackwardHooks hooks, std::span<const Tensor> inputs);
// The outputs as the caller gets them; `inputs` are those of `enter_module`.
std::vector<Tensor> leave_module(BackwardHooks hooks, std::span<const Tensor> inputs, std::span<const Tensor> outputs);

}  // namespace tenon::nn
