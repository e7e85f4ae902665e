// Stochastic gradient descent, with momentum and weight decay.
//
//   nn::Linear model(3, 1);
//   optim::SGDOptions options{.lr = 0.1, .momentum = 0.9};
//   optim::SGD sgd(model.parameters(), options);
//   for (int i = 0; i < 3; ++i) {
//     sgd.zero_grad();
//     model(x).sum().backward();
//     sgd.step();
//     sgd.set_lr(sgd.options().lr / 2);
//   }
//   size_t trained = sgd.parameters().size();  // 2
#pragma once

#include <tenon/core/tensor.h>

#include <vector>

namespace tenon::optim {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double weight_decay = 0;
  double dampening = 0;
  bool nesterov = false;
};

class SGD {
 public:
  SGD(std::vector<Tensor> parameters, const SGDOptions& options = {});

  // Changes every parameter that has a gradient, in place.
  void step();
  // Drops the gradients, or fills them with zeros.
  void zero_grad(bool set_to_none = true);

  const std::vector<Tensor>& parameters() const { return parameters_; }
  const SGDOptions& options() const { return options_; }
  void set_lr(double lr);

 private:
  std::vector<Tensor> parameters_;
  std::vector<Tensor> momentum_;  // undefined until the first step
  SGDOptions options_;
};

}  // namespace tenon::optim
