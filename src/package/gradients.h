// Functions from files have no gradients; a program that could ask for some is told so. Programs without autograd
// cannot ask.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon::package {

// `would_record`: whether an operator that was given this tensor now would be recorded.
void ask_for_gradients(bool (*would_record)(const Tensor&));

}  // namespace tenon::package
