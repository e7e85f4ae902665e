// The Autograd kernel of operators with a formula of their own.
#pragma once

#include <tenon/library/custom_op.h>

namespace tenon::library {

// Runs what is below the Autograd key; operators that the kernel calls are part of it and are not recorded.
void run_below_autograd(dispatch::Call& call);
// Whether grad mode is on and a gradient flows into one of the call's tensors.
bool is_recorded(const dispatch::Call& call);

// Runs the call and records it. Without a formula (null) backward raises.
void run_with_formula(dispatch::Call& call, const std::shared_ptr<const Formula>& formula);

// Arguments of a call that are positional, or keyword-only.
Inputs inputs_of(const dispatch::Call& call, bool keyword_only);
std::vector<Tensor> flatten_tensors(std::span<const dispatch::Value> values);
// The values with their tensors replaced, in order.
void replace_tensors(dispatch::Results& values, std::span<const Tensor> tensors);
// One entry per result of the operator: a tensor, or a list of them; nothing where it gave no tensor.
struct ResultShape {
  bool list = false;
  bool tensors = false;
  size_t count = 0;
};
std::vector<ResultShape> shapes_of(const dispatch::Results& results);
std::vector<AnyValue> group_gradients(const std::vector<ResultShape>& shapes, const std::vector<Tensor>& gradients);

}  // namespace tenon::library
