#include <tenon/nn/initialize.h>

#include <tenon/autograd/grad_mode.h>

namespace tenon::nn::init::detail {

void each(const Module& module, const std::function<void(const std::string&, const Tensor&)>& fill) {
  NoGrad off;
  for (const auto& [name, parameter] : module.named_parameters()) fill(name, parameter);
}

}  // namespace tenon::nn::init::detail
