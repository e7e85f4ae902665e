#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>
#include <tenon/optim/sgd.h>

namespace tenon::optim {

SGD::SGD(std::vector<Tensor> parameters, const SGDOptions& options)
    : parameters_(std::move(parameters)), momentum_(parameters_.size()), options_(options) {
  TENON_CHECK_VALUE(!parameters_.empty(), "[SGD] expected at least one parameter, got an empty list");
  set_lr(options.lr);
  TENON_CHECK_VALUE(options.momentum >= 0, "[SGD] expected a momentum of at least 0, got {}", options.momentum);
  TENON_CHECK_VALUE(options.weight_decay >= 0, "[SGD] expected a weight decay of at least 0, got {}",
                    options.weight_decay);
  TENON_CHECK_VALUE(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
                    "[SGD] nesterov needs a momentum above 0 and no dampening, got momentum {} and dampening {}",
                    options.momentum, options.dampening);
  for (size_t at = 0; at < parameters_.size(); ++at) {
    const Tensor& parameter = parameters_[at];
    TENON_CHECK_TYPE(parameter.defined(), "[SGD] parameter {} is an undefined tensor", at);
    TENON_CHECK_VALUE(parameter.is_leaf(), "[SGD] parameter {} is not a leaf: {}", at, parameter.description());
    for (size_t before = 0; before < at; ++before)
      TENON_CHECK_VALUE(!parameter.is(parameters_[before]), "[SGD] parameters {} and {} are the same tensor {}", before,
                        at, parameter.description());
  }
}

void SGD::set_lr(double lr) {
  TENON_CHECK_VALUE(lr >= 0, "[SGD] expected a learning rate of at least 0, got {}", lr);
  options_.lr = lr;
}

void SGD::step() {
  autograd::NoGrad off;
  for (size_t at = 0; at < parameters_.size(); ++at) {
    const Tensor& parameter = parameters_[at];
    Tensor direction = parameter.grad();
    if (!direction.defined()) continue;
    if (options_.weight_decay != 0) direction = add(direction, parameter, options_.weight_decay);
    if (options_.momentum != 0) {
      Tensor& velocity = momentum_[at];
      if (velocity.defined()) {
        velocity.mul_(options_.momentum).add_(direction, 1 - options_.dampening);
      } else {
        // A copy: the gradient itself belongs to the parameter and will be added to.
        velocity = clone(direction);
      }
      direction = options_.nesterov ? add(direction, velocity, options_.momentum) : velocity;
    }
    parameter.add_(direction, -options_.lr);
  }
}

void SGD::zero_grad(bool set_to_none) {
  autograd::NoGrad off;
  for (const Tensor& parameter : parameters_) {
    Tensor gradient = parameter.grad();
    if (!gradient.defined()) continue;
    if (set_to_none) {
      parameter.set_grad(Tensor());
    } else if (gradient.is_leaf()) {
      gradient.zero_();
    } else {
      parameter.set_grad(zeros_like(gradient));
    }
  }
}

}  // namespace tenon::optim
