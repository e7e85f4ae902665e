#include <tenon/optim/sgd.h>

#include "optim/fused_step.h"

namespace tenon::optim {
namespace {

template <bool kMomentum>
struct SGDRule {
  static constexpr size_t kRemembers = kMomentum ? 1 : 0;
  Direction direction;
  double momentum, dampening, lr;
  bool nesterov, first;

  template <typename X>
  [[gnu::always_inline]] void operator()(X& parameter, const X& gradient, X* state) const {
    X g = direction(parameter, gradient);
    if constexpr (kMomentum) {
      X& velocity = state[0];
      velocity = first ? g : add(velocity * number<X>(momentum), g, number<X>(1 - dampening));
      g = nesterov ? add(g, velocity, number<X>(momentum)) : velocity;
    }
    parameter = add(parameter, g, number<X>(-lr));
  }
};

}  // namespace

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
