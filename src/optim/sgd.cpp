#include <tenon/generated/ops.h>
#include <tenon/optim/sgd.h>

namespace tenon::optim {

SGD::SGD(std::vector<Tensor> parameters, const SGDOptions& options) : OptimizerOf("SGD") {
  add_group(std::move(parameters), options);
}

void SGD::check_options(const SGDOptions& options) const {
  check_lr(options.lr);
  TENON_CHECK_VALUE(options.momentum >= 0, "[SGD] expected a momentum of at least 0, got {}", options.momentum);
  TENON_CHECK_VALUE(options.weight_decay >= 0, "[SGD] expected a weight decay of at least 0, got {}",
                    options.weight_decay);
  TENON_CHECK_VALUE(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
                    "[SGD] nesterov needs a momentum above 0 and no dampening, got momentum {} and dampening {}",
                    options.momentum, options.dampening);
}

void SGD::update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) {
  const SGDOptions& o = options_[group];
  Tensor direction = o.maximize ? neg(gradient) : gradient;
  if (o.weight_decay != 0) direction = add(direction, parameter, o.weight_decay);
  if (o.momentum != 0) {
    Tensor& velocity = state.tensors[0];
    if (velocity.defined())
      velocity.mul_(o.momentum).add_(direction, 1 - o.dampening);
    else
      velocity = clone(direction);  // a copy: the gradient itself belongs to the parameter and will be added to
    direction = o.nesterov ? add(direction, velocity, o.momentum) : velocity;
  }
  parameter.add_(direction, -o.lr);
}

}  // namespace tenon::optim
