// What rules of optimizers are written with (fused_step.h): functions of numbers, rounded as the operators of the same
// names are, beside those of tensors. A rule is a template over X, which is float or double for one element and Tensor
// for whole tensors.
#pragma once

#include <tenon/generated/ops.h>

#include <cmath>
#include <concepts>

namespace tenon::optim {

// An option's number, as an operation on X takes it.
template <typename X>
using Number = std::conditional_t<std::same_as<X, Tensor>, double, X>;
template <typename X>
[[gnu::always_inline]] inline Number<X> number(double value) {
  return static_cast<Number<X>>(value);
}

using tenon::abs, tenon::add, tenon::addcdiv, tenon::addcmul, tenon::lerp, tenon::maximum, tenon::sign, tenon::sqrt;

template <std::floating_point T>
[[gnu::always_inline]] inline T abs(T x) {
  return std::abs(x);
}
template <std::floating_point T>
[[gnu::always_inline]] inline T sqrt(T x) {
  return std::sqrt(x);
}
template <std::floating_point T>
[[gnu::always_inline]] inline T add(T x, T y, T alpha) {
  return x + alpha * y;
}
template <std::floating_point T>
[[gnu::always_inline]] inline T addcmul(T x, T a, T b, T value) {
  return x + value * a * b;
}
template <std::floating_point T>
[[gnu::always_inline]] inline T addcdiv(T x, T a, T b, T value) {
  return x + value * a / b;
}
template <std::floating_point T>
[[gnu::always_inline]] inline T lerp(T start, T end, T weight) {
  const T distance = end - start;
  return std::abs(weight) < T(0.5) ? start + weight * distance : end - distance * (T(1) - weight);
}
// A NaN on either side stays.
template <std::floating_point T>
[[gnu::always_inline]] inline T maximum(T x, T y) {
  return x != x || x > y ? x : y;
}
template <std::floating_point T>
[[gnu::always_inline]] inline T sign(T x) {
  return static_cast<T>(x > 0) - static_cast<T>(x < 0);
}

// Where a step goes: up or down, and what the decay of weights adds to that, or takes from the parameter itself.
struct Direction {
  bool maximize;
  double weight_decay;
  double keep;  // of the parameter, where the decay is decoupled

  template <typename Options>
  static Direction of(const Options& o, bool decoupled = false) {
    return {o.maximize, decoupled ? 0 : o.weight_decay, decoupled ? 1 - o.lr * o.weight_decay : 1};
  }

  template <typename X>
  [[gnu::always_inline]] X operator()(X& parameter, const X& gradient) const {
    X g = maximize ? -gradient : gradient;
    if (keep != 1) parameter = parameter * number<X>(keep);
    return weight_decay != 0 ? add(g, parameter, number<X>(weight_decay)) : g;
  }
};

}  // namespace tenon::optim
