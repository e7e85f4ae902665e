#include <tenon/optim/sgd.h>

#include "optim/shared_rules.h"

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
  Tensor& velocity = state.tensors[0];
  const bool first = !velocity.defined();
  const Direction direction = Direction::of(o);
  if (o.momentum == 0) {
    apply(SGDRule<false>{direction, 0, 0, o.lr, false, first}, parameter, gradient, {});
    return;
  }
  if (first) velocity = zeros_like(parameter);
  apply(SGDRule<true>{direction, o.momentum, o.dampening, o.lr, o.nesterov, first}, parameter, gradient, {&velocity});
}

}  // namespace tenon::optim
