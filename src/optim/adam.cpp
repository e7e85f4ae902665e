#include <tenon/optim/adam.h>

#include "optim/checks.h"
#include "optim/shared_rules.h"

#include <cmath>

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

void begin(State& state, const Tensor& parameter, size_t count) {
  for (size_t which = 0; which < count; ++which)
    if (!state.tensors[which].defined()) state.tensors[which] = zeros_like(parameter);
}

struct AdamaxRule {
  static constexpr size_t kRemembers = 2;
  Direction direction;
  double beta1, beta2, eps, size;

  template <typename X>
  [[gnu::always_inline]] void operator()(X& parameter, const X& gradient, X* state) const {
    X g = direction(parameter, gradient);
    state[0] = lerp(state[0], g, number<X>(1 - beta1));
    state[1] = maximum(state[1] * number<X>(beta2), abs(g) + number<X>(eps));
    parameter = addcdiv(parameter, state[0], state[1], number<X>(-size));
  }
};

struct NAdamRule {
  static constexpr size_t kRemembers = 2;
  Direction direction;
  Means means;
  double correction, eps, size_now, size_next;

  template <typename X>
  [[gnu::always_inline]] void operator()(X& parameter, const X& gradient, X* state) const {
    X g = direction(parameter, gradient);
    means(g, state[0], state[1]);
    X scale = sqrt(state[1] / number<X>(correction)) + number<X>(eps);
    parameter = addcdiv(parameter, g, scale, number<X>(-size_now));
    parameter = addcdiv(parameter, state[0], scale, number<X>(-size_next));
  }
};

// `kRectified`: the mean square can be trusted already.
template <bool kRectified>
struct RAdamRule {
  static constexpr size_t kRemembers = 2;
  Direction direction;
  Means means;
  double eps, size;

  template <typename X>
  [[gnu::always_inline]] void operator()(X& parameter, const X& gradient, X* state) const {
    X g = direction(parameter, gradient);
    means(g, state[0], state[1]);
    if constexpr (kRectified)
      parameter = addcdiv(parameter, state[0], sqrt(state[1]) + number<X>(eps), number<X>(-size));
    else
      parameter = add(parameter, state[0], number<X>(-size));
  }
};

struct LionRule {
  static constexpr size_t kRemembers = 1;
  Direction direction;
  double beta1, beta2, lr;

  template <typename X>
  [[gnu::always_inline]] void operator()(X& parameter, const X& gradient, X* state) const {
    X g = direction(parameter, gradient);
    parameter = add(parameter, sign(lerp(state[0], g, number<X>(1 - beta1))), number<X>(-lr));
    state[0] = lerp(state[0], g, number<X>(1 - beta2));
  }
};

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

void Adam::step() { Optimizer::step(); }

void Adam::update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) {
  const AdamOptions& o = options_[group];
  begin(state, parameter, o.amsgrad ? 3 : 2);
  auto apply_rule = [&]<bool kLargest>(const std::array<Tensor*, kLargest ? 3 : 2>& remembered) {
    apply(AdamRule<kLargest>{Direction::of(o, o.decoupled_weight_decay),
                             {o.betas[0], o.betas[1]},
                             std::sqrt(correction(o.betas[1], state.step)),
                             o.eps,
                             o.lr / correction(o.betas[0], state.step)},
          parameter, gradient, remembered);
  };
  std::vector<Tensor>& t = state.tensors;
  o.amsgrad ? apply_rule.operator()<true>({&t[0], &t[1], &t[2]}) : apply_rule.operator()<false>({&t[0], &t[1]});
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
  begin(state, parameter, 2);
  apply(AdamaxRule{Direction::of(o), o.betas[0], o.betas[1], o.eps, o.lr / correction(o.betas[0], state.step)},
        parameter, gradient, {&state.tensors[0], &state.tensors[1]});
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
  begin(state, parameter, 2);
  auto momentum = [&](int64_t step) {
    return o.betas[0] * (1 - 0.5 * std::pow(0.96, static_cast<double>(step) * o.momentum_decay));
  };
  double now = momentum(state.step), next = momentum(state.step + 1);
  state.number *= now;
  apply(NAdamRule{Direction::of(o, o.decoupled_weight_decay),
                  {o.betas[0], o.betas[1]},
                  correction(o.betas[1], state.step),
                  o.eps,
                  o.lr * (1 - now) / (1 - state.number),
                  o.lr * next / (1 - state.number * next)},
        parameter, gradient, {&state.tensors[0], &state.tensors[1]});
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
  begin(state, parameter, 2);
  const double beta = o.betas[1], missing = correction(beta, state.step);
  const double size = o.lr / correction(o.betas[0], state.step);
  // The length of the average that the mean square is; with more than 5 its variance is known.
  const double longest = 2 / (1 - beta) - 1;
  const double length = longest - 2 * static_cast<double>(state.step) * (1 - missing) / missing;
  const Direction direction = Direction::of(o, o.decoupled_weight_decay);
  const Means means = {o.betas[0], o.betas[1]};
  const std::array<Tensor*, 2> remembered = {&state.tensors[0], &state.tensors[1]};
  if (length <= 5) {
    apply(RAdamRule<false>{direction, means, o.eps, size}, parameter, gradient, remembered);
    return;
  }
  const double rectified = std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
  apply(RAdamRule<true>{direction, means, o.eps, size * rectified * std::sqrt(missing)}, parameter, gradient,
        remembered);
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
  begin(state, parameter, 1);
  apply(LionRule{Direction::of(o, true), o.betas[0], o.betas[1], o.lr}, parameter, gradient, {&state.tensors[0]});
}

}  // namespace tenon::optim
