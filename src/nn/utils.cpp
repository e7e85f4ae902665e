#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>
#include <tenon/nn/utils.h>

#include "core/effects.h"

namespace tenon::nn {
namespace {

std::vector<Tensor> gradients(const std::vector<Tensor>& parameters) {
  auto read = [](std::span<const Tensor> tensors) {
    std::vector<Tensor> found;
    for (const Tensor& tensor : tensors) found.push_back(tensor.grad());
    return found;
  };
  const core::EffectInterceptor* instead = core::effect_interceptor();
  std::vector<Tensor> found = instead ? (*instead)({"gradients are read", parameters, read}) : read(parameters);
  std::erase_if(found, [](const Tensor& gradient) { return !gradient.defined(); });
  return found;
}

}  // namespace

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  NoGrad off;
  std::vector<Tensor> list = gradients(parameters), norms;
  if (list.empty()) return zeros(SymInts{});
  for (const Tensor& gradient : list) norms.push_back(linalg_vector_norm(gradient, norm_type));
  Tensor total = linalg_vector_norm(stack(norms), norm_type);
  TENON_CHECK(!error_if_nonfinite || isfinite(total).item<bool>(),
              "[clip_grad_norm_] the gradients have a norm of {}, which cannot be made {}", total.item().str(),
              max_norm);
  Tensor factor = clamp_max(max_norm / (total + 1e-6), 1.0);
  for (const Tensor& gradient : list) gradient.mul_(factor.to(gradient.dtype()));
  return total;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  TENON_CHECK_VALUE(clip_value >= 0, "[clip_grad_value_] expected a value of at least 0, got {}", clip_value);
  NoGrad off;
  for (const Tensor& gradient : gradients(parameters)) gradient.copy_(clamp(gradient, -clip_value, clip_value));
}

Tensor parameters_to_vector(const std::vector<Tensor>& parameters) {
  TENON_CHECK_VALUE(!parameters.empty(), "[parameters_to_vector] expected at least one parameter");
  std::vector<Tensor> flat;
  for (const Tensor& parameter : parameters) flat.push_back(reshape(parameter, {-1}));
  return cat(flat);
}

void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters) {
  NoGrad off;
  SymInt total = 0;
  for (const Tensor& parameter : parameters) total += parameter.numel();
  TENON_CHECK_VALUE(vector.defined() && vector.dim() == 1 && bool(vector.size(0) == total),
                    "[vector_to_parameters] expected a vector of {} elements, got {}", total.str(),
                    vector.defined() ? vector.description() : "an undefined one");
  SymInt at = 0;
  for (const Tensor& parameter : parameters) {
    parameter.copy_(view(narrow(vector, 0, at, parameter.numel()), parameter.sym_sizes()));
    at += parameter.numel();
  }
}

}  // namespace tenon::nn
