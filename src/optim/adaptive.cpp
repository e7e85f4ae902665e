#include <tenon/optim/adaptive.h>

#include "optim/checks.h"
#include "optim/shared_rules.h"

namespace tenon::optim {
namespace {

void begin(Tensor& state, const Tensor& parameter) {
  if (!state.defined()) state = zeros_like(parameter);
}

template <bool kMomentum, bool kCentered>
struct RMSpropRule {
  static constexpr size_t kRemembers = 1 + kMomentum + kCentered;
  Direction direction;
  double alpha, eps, momentum, lr;

  template <typename X>
  [[gnu::always_inline]] void operator()(X& parameter, const X& gradient, X* state) const {
    X g = direction(parameter, gradient), &square = state[0];
    square = addcmul(square * number<X>(alpha), g, g, number<X>(1 - alpha));
    X variance = square;
    if constexpr (kCentered) {
      X& mean = state[1 + kMomentum];
      mean = lerp(mean, g, number<X>(1 - alpha));
      variance = addcmul(square, mean, mean, number<X>(-1));
    }
    X scale = sqrt(variance) + number<X>(eps);
    if constexpr (kMomentum) {
      X& velocity = state[1];
      velocity = addcdiv(velocity * number<X>(momentum), g, scale, number<X>(1));
      parameter = add(parameter, velocity, number<X>(-lr));
    } else {
      parameter = addcdiv(parameter, g, scale, number<X>(-lr));
    }
  }
};

struct AdadeltaRule {
  static constexpr size_t kRemembers = 2;
  Direction direction;
  double rho, eps, lr;

  template <typename X>
  [[gnu::always_inline]] void operator()(X& parameter, const X& gradient, X* state) const {
    X g = direction(parameter, gradient);
    state[0] = addcmul(state[0] * number<X>(rho), g, g, number<X>(1 - rho));
    X delta = sqrt(state[1] + number<X>(eps)) / sqrt(state[0] + number<X>(eps)) * g;
    state[1] = addcmul(state[1] * number<X>(rho), delta, delta, number<X>(1 - rho));
    parameter = add(parameter, delta, number<X>(-lr));
  }
};

}  // namespace

RMSprop::RMSprop(std::vector<Tensor> parameters, const RMSpropOptions& options) : OptimizerOf("RMSprop") {
  add_group(std::move(parameters), options);
}

void RMSprop::check_options(const RMSpropOptions& options) const {
  check_lr(options.lr);
  check_not_negative("RMSprop", "alpha", options.alpha);
  check_not_negative("RMSprop", "eps", options.eps);
  check_not_negative("RMSprop", "weight_decay", options.weight_decay);
  check_not_negative("RMSprop", "momentum", options.momentum);
}

void RMSprop::update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) {
  const RMSpropOptions& o = options_[group];
  Tensor &square = state.tensors[0], &velocity = state.tensors[1], &mean = state.tensors[2];
  begin(square, parameter);
  if (o.momentum != 0) begin(velocity, parameter);
  if (o.centered) begin(mean, parameter);
  auto apply_rule = [&]<bool kMomentum, bool kCentered>(const std::array<Tensor*, 1 + kMomentum + kCentered>& tensors) {
    apply(RMSpropRule<kMomentum, kCentered>{Direction::of(o), o.alpha, o.eps, o.momentum, o.lr}, parameter, gradient,
          tensors);
  };
  if (o.momentum != 0)
    o.centered ? apply_rule.operator()<true, true>({&square, &velocity, &mean})
               : apply_rule.operator()<true, false>({&square, &velocity});
  else
    o.centered ? apply_rule.operator()<false, true>({&square, &mean}) : apply_rule.operator()<false, false>({&square});
}

Adagrad::Adagrad(std::vector<Tensor> parameters, const AdagradOptions& options) : OptimizerOf("Adagrad") {
  add_group(std::move(parameters), options);
}

void Adagrad::check_options(const AdagradOptions& options) const {
  check_lr(options.lr);
  check_not_negative("Adagrad", "lr_decay", options.lr_decay);
  check_not_negative("Adagrad", "weight_decay", options.weight_decay);
  check_not_negative("Adagrad", "initial_accumulator_value", options.initial_accumulator_value);
  check_not_negative("Adagrad", "eps", options.eps);
}

void Adagrad::update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) {
  const AdagradOptions& o = options_[group];
  Tensor& sum = state.tensors[0];
  if (!sum.defined()) sum = full_like(parameter, o.initial_accumulator_value);
  double lr = o.lr / (1 + static_cast<double>(state.step - 1) * o.lr_decay);
  apply(AdagradRule{Direction::of(o), o.eps, lr}, parameter, gradient, {&sum});
}

Adadelta::Adadelta(std::vector<Tensor> parameters, const AdadeltaOptions& options) : OptimizerOf("Adadelta") {
  add_group(std::move(parameters), options);
}

void Adadelta::check_options(const AdadeltaOptions& options) const {
  check_lr(options.lr);
  TENON_CHECK_VALUE(options.rho >= 0 && options.rho <= 1, "[Adadelta] expected rho from 0 to 1, got {}", options.rho);
  check_not_negative("Adadelta", "eps", options.eps);
  check_not_negative("Adadelta", "weight_decay", options.weight_decay);
}

void Adadelta::update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) {
  const AdadeltaOptions& o = options_[group];
  Tensor &square = state.tensors[0], &steps = state.tensors[1];
  begin(square, parameter);
  begin(steps, parameter);
  apply(AdadeltaRule{Direction::of(o), o.rho, o.eps, o.lr}, parameter, gradient, {&square, &steps});
}

}  // namespace tenon::optim
