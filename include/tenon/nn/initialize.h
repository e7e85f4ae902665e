// How the weights of a whole module begin.
//
//   nn::Sequential model(nn::Linear(3, 8), nn::ReLU(), nn::Linear(8, 2));
//   nn::init::each(model, [](const Tensor& parameter) { nn::init::normal_(parameter, 0, 0.02); });
//   nn::init::each(model, [](const std::string& name, const Tensor& parameter) {
//     if (name.ends_with("bias")) nn::init::zeros_(parameter);
//   });
#pragma once

#include <tenon/nn/module.h>

namespace tenon::nn::init {

namespace detail {
void each(const Module& module, const std::function<void(const std::string&, const Tensor&)>& fill);
}

// Every parameter once, without history: what the function does to it in place stays.
template <typename F>
void each(const Module& module, const F& fill) {
  if constexpr (std::is_invocable_v<const F&, const std::string&, const Tensor&>)
    detail::each(module, fill);
  else
    detail::each(module, [&](const std::string&, const Tensor& parameter) { fill(parameter); });
}

}  // namespace tenon::nn::init
