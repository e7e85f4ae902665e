// Ordinary differential equations: dy/dt = f(t, y), from a start to the times that are asked for.
//
//   auto decay = [](double, const Tensor& y) { return -y; };
//   Tensor path = numerics::odeint(decay, ones({2}, kFloat64), {0, 1, 2});    // [3, 2]: 1, e⁻¹, e⁻²
//   auto swing = [](const Tensor& y) { return stack({y[1], -y[0]}); };        // one that does not ask for the time
//   numerics::OdeOptions fixed{.method = numerics::OdeMethod::RK4, .substeps = 100};
//   Tensor there = numerics::odeint(swing, tensor({1.0, 0.0}, kFloat64), {0, 3.14159265}, fixed)[-1];  // {-1, 0}
//
// It is made of operators, so that gradients flow through it, to the start and to what f reads. The methods with fixed
// steps are one graph in a compiled function; the adaptive one looks at errors, and a graph ends at each look: compile
// f instead.
#pragma once

#include <tenon/core/tensor.h>

#include <functional>
#include <vector>

namespace tenon::numerics {

enum class OdeMethod : uint8_t {
  Euler,
  Midpoint,
  RK4,     // Runge and Kutta's, of order 4
  Dopri5,  // Dormand and Prince's, of order 5: steps as long as the tolerances allow
};

struct OdeOptions {
  OdeMethod method = OdeMethod::Dopri5;
  int64_t substeps = 1;  // of fixed length, between two times; not of Dopri5
  double rtol = 1e-5;    // what a step of Dopri5 may err: this share of y …
  double atol = 1e-7;    // … and this, the mean over all elements
  int64_t max_steps = 100000;
};

using OdeRate = std::function<Tensor(double t, const Tensor& y)>;

namespace detail {
Tensor odeint(const OdeRate& rate, const Tensor& start, const std::vector<double>& times, const OdeOptions& options);
}

// y at each of the times, [times, …]; the first is the start. Times go up, or down.
template <typename F>
Tensor odeint(F rate, const Tensor& start, const std::vector<double>& times, const OdeOptions& options = {}) {
  if constexpr (std::is_invocable_v<F&, double, const Tensor&>)
    return detail::odeint(std::move(rate), start, times, options);
  else
    return detail::odeint([rate](double, const Tensor& y) { return rate(y); }, start, times, options);
}

}  // namespace tenon::numerics
