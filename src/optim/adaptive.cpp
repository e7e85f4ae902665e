#include <tenon/generated/ops.h>
#include <tenon/optim/adaptive.h>

#include "optim/checks.h"

namespace tenon::optim {
namespace {

template <typename Options>
Tensor directed(const Tensor& parameter, const Tensor& gradient, const Options& o) {
  Tensor direction = o.maximize ? neg(gradient) : gradient;
  return o.weight_decay == 0 ? direction : add(direction, parameter, o.weight_decay);
}

void begin(Tensor& state, const Tensor& parameter) {
  if (!state.defined()) state = zeros_like(parameter);
}

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
  Tensor g = directed(parameter, gradient, o), &square = state.tensors[0];
  begin(square, parameter);
  square.mul_(o.alpha).addcmul_(g, g, 1 - o.alpha);
  Tensor scale;
  if (o.centered) {
    Tensor& mean = state.tensors[2];
    begin(mean, parameter);
    mean.lerp_(g, 1 - o.alpha);
    scale = sqrt(addcmul(square, mean, mean, -1)).add_(o.eps);
  } else {
    scale = sqrt(square).add_(o.eps);
  }
  if (o.momentum == 0) {
    parameter.addcdiv_(g, scale, -o.lr);
    return;
  }
  Tensor& velocity = state.tensors[1];
  begin(velocity, parameter);
  velocity.mul_(o.momentum).addcdiv_(g, scale);
  parameter.add_(velocity, -o.lr);
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
  Tensor g = directed(parameter, gradient, o), &sum = state.tensors[0];
  if (!sum.defined()) sum = full_like(parameter, o.initial_accumulator_value);
  sum.addcmul_(g, g);
  double lr = o.lr / (1 + static_cast<double>(state.step - 1) * o.lr_decay);
  parameter.addcdiv_(g, sqrt(sum).add_(o.eps), -lr);
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
  Tensor g = directed(parameter, gradient, o), &square = state.tensors[0], &steps = state.tensors[1];
  begin(square, parameter);
  begin(steps, parameter);
  square.mul_(o.rho).addcmul_(g, g, 1 - o.rho);
  Tensor delta = sqrt(steps + o.eps) / sqrt(square + o.eps) * g;
  steps.mul_(o.rho).addcmul_(delta, delta, 1 - o.rho);
  parameter.add_(delta, -o.lr);
}

}  // namespace tenon::optim
