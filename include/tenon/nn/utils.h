// What is done to all parameters at once.
//
//   nn::Linear model(3, 2);
//   model(x).sum().backward();
//   Tensor norm = nn::clip_grad_norm_(model.parameters(), 1.0);  // as it was
//   nn::clip_grad_value_(model.parameters(), 0.5);
//   Tensor all = nn::parameters_to_vector(model.parameters());   // [8]
//   nn::vector_to_parameters(all * 2, model.parameters());
#pragma once

#include <tenon/core/tensor.h>

namespace tenon::nn {

// Scales the gradients so that all of them together have a p-norm of at most `max_norm`. A norm that is infinite or not
// a number is an error if `error_if_nonfinite`.
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2,
                       bool error_if_nonfinite = false);
// Each element to ±clip_value at most.
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

Tensor parameters_to_vector(const std::vector<Tensor>& parameters);
// Copies, in place.
void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters);

}  // namespace tenon::nn
