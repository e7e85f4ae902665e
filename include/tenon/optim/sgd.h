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

#include <tenon/optim/optimizer.h>

namespace tenon::optim {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double weight_decay = 0;
  double dampening = 0;
  bool nesterov = false;
  bool maximize = false;  // climbs instead

  template <typename Visit>
  void visit(const Visit& each) {
    each("lr", lr);
    each("momentum", momentum);
    each("weight_decay", weight_decay);
    each("dampening", dampening);
    detail::visit_flag(each, "nesterov", nesterov);
    detail::visit_flag(each, "maximize", maximize);
  }
};

class SGD : public OptimizerOf<SGDOptions> {
 public:
  SGD(std::vector<Tensor> parameters, const SGDOptions& options = {});

 private:
  void check_options(const SGDOptions& options) const override;
  std::vector<std::string> state_names() const override { return {"momentum_buffer"}; }
  void update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) override;
};

}  // namespace tenon::optim
