#include "core/effects.h"
#include "optim/checks.h"
#include "optim/fused_adam.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>
#include <tenon/optim/adam.h>

#include <cmath>
#include <set>

namespace tenon::optim {
namespace {

template <typename Options>
void check_adam(const char* name, const Options& options) {
  for (double beta : options.betas)
    TENON_CHECK_VALUE(beta >= 0 && beta < 1, "[{}] expected betas from 0 to below 1, got {} and {}", name,
                      options.betas[0], options.betas[1]);
  check_not_negative(name, "weight_decay", options.weight_decay);
  if constexpr (requires { options.eps; }) check_not_negative(name, "eps", options.eps);
}

// The gradient, with the decay of weights in it, or in the parameter.
template <typename Options>
Tensor directed(const Tensor& parameter, const Tensor& gradient, const Options& o, bool decoupled) {
  Tensor direction = o.maximize ? neg(gradient) : gradient;
  if (o.weight_decay == 0) return direction;
  if (!decoupled) return add(direction, parameter, o.weight_decay);
  parameter.mul_(1 - o.lr * o.weight_decay);
  return direction;
}

void begin(State& state, const Tensor& parameter, size_t count) {
  for (size_t which = 0; which < count; ++which)
    if (!state.tensors[which].defined()) state.tensors[which] = zeros_like(parameter);
}

// What a running mean that began at 0 lacks.
double correction(double beta, int64_t step) { return 1 - std::pow(beta, static_cast<double>(step)); }

void update_means(const State& state, const Tensor& gradient, const Betas& betas) {
  state.tensors[0].lerp_(gradient, 1 - betas[0]);
  state.tensors[1].mul_(betas[1]).addcmul_(gradient, gradient, 1 - betas[1]);
}

}  // namespace

Adam::Adam(const char* name, std::vector<Tensor> parameters, const AdamOptions& options) : OptimizerOf(name) {
  add_group(std::move(parameters), options);
}
Adam::Adam(std::vector<Tensor> parameters, const AdamOptions& options) : Adam("Adam", std::move(parameters), options) {}
AdamW::AdamW(std::vector<Tensor> parameters, const AdamWOptions& o)
    : Adam("AdamW", std::move(parameters), {o.lr, o.betas, o.eps, o.weight_decay, true, o.amsgrad, o.maximize}) {}

void Adam::check_options(const AdamOptions& options) const {
  check_lr(options.lr);
  check_adam(name_, options);
}

void Adam::step() {
  if (holds_real_tensors() && core::is_taken_as_effect("an optimizer steps", alive_, [this] { step(); })) return;
  NoGrad off;
  std::vector<FusedAdamPart> fused;
  std::set<const void*> seen;  // parameters that look into one memory are changed one by one
  size_t at = 0;
  for (size_t group = 0; group < group_sizes_.size(); ++group)
    for (size_t end = at + group_sizes_[group]; at < end; ++at) {
      const Tensor& parameter = parameters_[at];
      Tensor gradient = parameter.grad();
      if (!gradient.defined()) continue;
      State& state = states_[at];
      ++state.step;
      state.tensors.resize(state_names().size());
      const AdamOptions& o = options_[group];
      begin(state, parameter, o.amsgrad ? 3 : 2);
      FusedAdamPart part{parameter, gradient, state.tensors[0], state.tensors[1], {}, &o, state.step};
      if (o.amsgrad) part.largest = state.tensors[2];
      if (can_be_fused(part) && seen.insert(parameter.impl()->storage.get()).second)
        fused.push_back(std::move(part));
      else
        update(parameter, gradient, state, group);
    }
  if (!fused.empty()) fused_adam_step(fused);
}

void Adam::update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) {
  const AdamOptions& o = options_[group];
  Tensor g = directed(parameter, gradient, o, o.decoupled_weight_decay);
  begin(state, parameter, o.amsgrad ? 3 : 2);
  update_means(state, g, o.betas);
  Tensor square = state.tensors[1];
  if (o.amsgrad) square = state.tensors[2] = maximum(state.tensors[2], square);
  Tensor scale = (sqrt(square) / std::sqrt(correction(o.betas[1], state.step))).add_(o.eps);
  parameter.addcdiv_(state.tensors[0], scale, -o.lr / correction(o.betas[0], state.step));
}

Adamax::Adamax(std::vector<Tensor> parameters, const AdamaxOptions& options) : OptimizerOf("Adamax") {
  add_group(std::move(parameters), options);
}

void Adamax::check_options(const AdamaxOptions& options) const {
  check_lr(options.lr);
  check_adam("Adamax", options);
}

void Adamax::update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) {
  const AdamaxOptions& o = options_[group];
  Tensor g = directed(parameter, gradient, o, false);
  begin(state, parameter, 2);
  state.tensors[0].lerp_(g, 1 - o.betas[0]);
  state.tensors[1] = maximum(state.tensors[1] * o.betas[1], abs(g) + o.eps);
  parameter.addcdiv_(state.tensors[0], state.tensors[1], -o.lr / correction(o.betas[0], state.step));
}

NAdam::NAdam(std::vector<Tensor> parameters, const NAdamOptions& options) : OptimizerOf("NAdam") {
  add_group(std::move(parameters), options);
}

void NAdam::check_options(const NAdamOptions& options) const {
  check_lr(options.lr);
  check_adam("NAdam", options);
  check_not_negative("NAdam", "momentum_decay", options.momentum_decay);
}

void NAdam::update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) {
  const NAdamOptions& o = options_[group];
  Tensor g = directed(parameter, gradient, o, o.decoupled_weight_decay);
  begin(state, parameter, 2);
  update_means(state, g, o.betas);
  auto momentum = [&](int64_t step) {
    return o.betas[0] * (1 - 0.5 * std::pow(0.96, static_cast<double>(step) * o.momentum_decay));
  };
  double now = momentum(state.step), next = momentum(state.step + 1);
  state.number *= now;
  Tensor scale = sqrt(state.tensors[1] / correction(o.betas[1], state.step)).add_(o.eps);
  parameter.addcdiv_(g, scale, -o.lr * (1 - now) / (1 - state.number));
  parameter.addcdiv_(state.tensors[0], scale, -o.lr * next / (1 - state.number * next));
}

RAdam::RAdam(std::vector<Tensor> parameters, const RAdamOptions& options) : OptimizerOf("RAdam") {
  add_group(std::move(parameters), options);
}

void RAdam::check_options(const RAdamOptions& options) const {
  check_lr(options.lr);
  check_adam("RAdam", options);
}

void RAdam::update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) {
  const RAdamOptions& o = options_[group];
  Tensor g = directed(parameter, gradient, o, o.decoupled_weight_decay);
  begin(state, parameter, 2);
  update_means(state, g, o.betas);
  const double beta = o.betas[1], missing = correction(beta, state.step);
  const double size = o.lr / correction(o.betas[0], state.step);
  // The length of the average that the mean square is; with more than 5 its variance is known.
  const double longest = 2 / (1 - beta) - 1;
  const double length = longest - 2 * static_cast<double>(state.step) * (1 - missing) / missing;
  if (length <= 5) {
    parameter.add_(state.tensors[0], -size);
    return;
  }
  const double rectified = std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
  parameter.addcdiv_(state.tensors[0], sqrt(state.tensors[1]).add_(o.eps), -size * rectified * std::sqrt(missing));
}

Lion::Lion(std::vector<Tensor> parameters, const LionOptions& options) : OptimizerOf("Lion") {
  add_group(std::move(parameters), options);
}

void Lion::check_options(const LionOptions& options) const {
  check_lr(options.lr);
  check_adam("Lion", options);
}

void Lion::update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) {
  const LionOptions& o = options_[group];
  Tensor g = directed(parameter, gradient, o, true);
  begin(state, parameter, 1);
  parameter.add_(sign(lerp(state.tensors[0], g, 1 - o.betas[0])), -o.lr);
  state.tensors[0].lerp_(g, 1 - o.betas[1]);
}

}  // namespace tenon::optim
