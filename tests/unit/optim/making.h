// Optimizers by name, made for given parameters.
#pragma once

#include <tenon/optim/optimizer.h>

#include <functional>
#include <memory>
#include <vector>

namespace tenon::optim {

using Make = std::function<std::unique_ptr<Optimizer>(std::vector<Tensor>)>;

template <typename O, typename Options>
Make making(const Options& options) {
  return [options](std::vector<Tensor> parameters) { return std::make_unique<O>(std::move(parameters), options); };
}

}  // namespace tenon::optim
