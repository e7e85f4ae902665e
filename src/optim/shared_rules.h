// Rules of optimizers that ATen's fused operators have in common with ours (fused_operators.cpp).
#pragma once

#include "optim/fused_step.h"

namespace tenon::optim {

// What a running mean that began at 0 lacks.
inline double correction(double beta, int64_t step) { return 1 - std::pow(beta, static_cast<double>(step)); }

// The running means of the gradient and of its square.
struct Means {
  double beta1, beta2;

  template <typename X>
  [[gnu::always_inline]] void operator()(const X& g, X& mean, X& square) const {
    mean = lerp(mean, g, number<X>(1 - beta1));
    square = addcmul(square * number<X>(beta2), g, g, number<X>(1 - beta2));
  }
};

template <bool kLargest>
struct AdamRule {
  static constexpr size_t kRemembers = kLargest ? 3 : 2;
  Direction direction;
  Means means;
  double root_correction, eps, size;

  template <typename X>
  [[gnu::always_inline]] void operator()(X& parameter, const X& gradient, X* state) const {
    X g = direction(parameter, gradient);
    means(g, state[0], state[1]);
    if constexpr (kLargest) state[2] = maximum(state[2], state[1]);
    X scale = sqrt(state[kLargest ? 2 : 1]) / number<X>(root_correction) + number<X>(eps);
    parameter = addcdiv(parameter, state[0], scale, number<X>(-size));
  }
};

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

struct AdagradRule {
  static constexpr size_t kRemembers = 1;
  Direction direction;
  double eps, lr;

  template <typename X>
  [[gnu::always_inline]] void operator()(X& parameter, const X& gradient, X* state) const {
    X g = direction(parameter, gradient);
    state[0] = addcmul(state[0], g, g, number<X>(1));
    parameter = addcdiv(parameter, g, sqrt(state[0]) + number<X>(eps), number<X>(-lr));
  }
};

}  // namespace tenon::optim
