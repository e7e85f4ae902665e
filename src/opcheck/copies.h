// Copies of an operator's arguments, so that a check may run it as often as it likes.
#pragma once

#include <tenon/dispatch/value.h>

#include <span>

namespace tenon::opcheck {

// Fresh tensors of the same values, sizes and strides. Those that share memory share it in the copy too, and the same
// tensor twice stays one. A copy is a leaf; it requires grad if the original does.
dispatch::Values copy_arguments(std::span<const dispatch::Value> args);
// The same as fakes.
dispatch::Values fake_arguments(std::span<const dispatch::Value> args);

// All tensors of some values, in order; undefined ones left out.
std::vector<Tensor> tensors_of(std::span<const dispatch::Value> values);
bool any_requires_grad(std::span<const dispatch::Value> values);

}  // namespace tenon::opcheck
