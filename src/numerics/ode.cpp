#include <tenon/numerics/ode.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>

#include <algorithm>
#include <cmath>

namespace tenon::numerics::detail {
namespace {

// A method, as Butcher wrote them: stage i is f at t + nodes[i]·h, y + h · Σ weights[i][j] · stage j.
struct Tableau {
  std::vector<double> nodes;
  std::vector<std::vector<double>> weights;
  std::vector<double> result;  // of the stages, for the step
  std::vector<double> error;   // of the stages, for what the step errs; empty: not known
};

const Tableau& tableau(OdeMethod method) {
  static const Tableau kTableaus[] = {
      {{0}, {{}}, {1}, {}},
      {{0, 1.0 / 2}, {{}, {1.0 / 2}}, {0, 1}, {}},
      {{0, 1.0 / 2, 1.0 / 2, 1}, {{}, {1.0 / 2}, {0, 1.0 / 2}, {0, 0, 1}}, {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6}, {}},
      {{0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1, 1},
       {{},
        {1.0 / 5},
        {3.0 / 40, 9.0 / 40},
        {44.0 / 45, -56.0 / 15, 32.0 / 9},
        {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
        {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
        {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84}},
       {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84, 0},
       {71.0 / 57600, 0, -71.0 / 16695, 71.0 / 1920, -17253.0 / 339200, 22.0 / 525, -1.0 / 40}},
  };
  return kTableaus[static_cast<size_t>(method)];
}

Tensor rate_at(const OdeRate& rate, double t, const Tensor& y) {
  Tensor slope = rate(t, y);
  TENON_CHECK(slope.defined() && slope.dim() == y.dim() && slope.dtype() == y.dtype(),
              "[odeint] expected a rate like y, {}, got {}", y.description(),
              slope.defined() ? slope.description() : "an undefined tensor");
  return slope;
}

// Σ shares · stages; undefined if all shares are 0.
Tensor combined(const std::vector<Tensor>& stages, const std::vector<double>& shares) {
  Tensor total;
  for (size_t at = 0; at < shares.size(); ++at) {
    if (shares[at] == 0) continue;
    total = total.defined() ? add(total, stages[at], shares[at]) : stages[at] * shares[at];
  }
  return total;
}

std::vector<Tensor> stages_of(const Tableau& method, const OdeRate& rate, double t, const Tensor& y, double step) {
  std::vector<Tensor> stages;
  for (size_t at = 0; at < method.nodes.size(); ++at) {
    Tensor before = combined(stages, method.weights[at]);
    stages.push_back(rate_at(rate, t + method.nodes[at] * step, before.defined() ? add(y, before, step) : y));
  }
  return stages;
}

double mean_size(const Tensor& of, const Tensor& scale) { return std::sqrt(mean(square(of / scale)).item<double>()); }

// What a step errs, as a share of what it may: below 1 it is taken.
double error_of(const Tableau& method, const std::vector<Tensor>& stages, const Tensor& y, const Tensor& next,
                double step, const OdeOptions& options) {
  NoGrad off;
  return mean_size(combined(stages, method.error) * step, maximum(abs(y), abs(next)) * options.rtol + options.atol);
}

// A step in which y changes by a hundredth of its size.
double first_step(const OdeRate& rate, double t, const Tensor& y, const OdeOptions& options) {
  NoGrad off;
  Tensor scale = abs(y) * options.rtol + options.atol;
  double size = mean_size(y, scale), speed = mean_size(rate_at(rate, t, y), scale);
  return size < 1e-5 || !(speed > 1e-5) ? 1e-6 : 0.01 * size / speed;
}

class Adaptive {
 public:
  Adaptive(const OdeRate& rate, const OdeOptions& options)
      : rate_(rate), options_(options), method_(tableau(options.method)) {}

  Tensor advance(Tensor y, double from, double to) {
    const double sign = to > from ? 1 : -1;
    if (length_ == 0) length_ = first_step(rate_, from, y, options_);
    double t = from;
    while (sign * (to - t) > 0) {
      const bool last = length_ >= sign * (to - t);
      const double step = last ? to - t : sign * length_;
      TENON_CHECK(t + step != t,
                  "[odeint] steps became too short at t = {}: the solution has a pole there, or changes on very "
                  "different scales (stiff); try larger tolerances or a method with fixed steps",
                  t);
      TENON_CHECK(++steps_ <= options_.max_steps,
                  "[odeint] {} steps lead to t = {} only; allow more (max_steps), or larger tolerances",
                  options_.max_steps, t);
      std::vector<Tensor> stages = stages_of(method_, rate_, t, y, step);
      Tensor next = add(y, combined(stages, method_.result), step);
      const double error = error_of(method_, stages, y, next, step, options_);
      const double factor = error > 0 ? std::clamp(0.9 * std::pow(error, -0.2), 0.2, 5.0) : 5.0;
      if (error <= 1) {
        y = next;
        t = last ? to : t + step;
        // A step that was cut short says little about longer ones.
        length_ = last ? std::max(length_, std::abs(step) * factor) : length_ * factor;
      } else {
        length_ = std::abs(step) * (std::isfinite(error) ? std::min(factor, 0.9) : 0.2);
      }
    }
    return y;
  }

 private:
  const OdeRate& rate_;
  const OdeOptions& options_;
  const Tableau& method_;
  double length_ = 0;  // of the next step; 0: none was made
  int64_t steps_ = 0;
};

Tensor advance_in_fixed_steps(const OdeRate& rate, Tensor y, double from, double to, const OdeOptions& options) {
  const Tableau& method = tableau(options.method);
  const double step = (to - from) / static_cast<double>(options.substeps);
  for (int64_t at = 0; at < options.substeps; ++at)
    y = add(y, combined(stages_of(method, rate, from + static_cast<double>(at) * step, y, step), method.result), step);
  return y;
}

void check(const Tensor& start, const std::vector<double>& times, const OdeOptions& options) {
  TENON_CHECK_TYPE(start.defined() && start.is_floating_point(),
                   "[odeint] expected a start of floating point numbers, got {}",
                   start.defined() ? start.description() : "an undefined tensor");
  TENON_CHECK_VALUE(times.size() >= 2, "[odeint] expected at least two times, the first that of the start, got {}",
                    times.size());
  for (size_t at = 1; at < times.size(); ++at)
    TENON_CHECK_VALUE(times[1] > times[0] ? times[at] > times[at - 1] : times[at] < times[at - 1],
                      "[odeint] expected times that go up, or down, got {} behind {}", times[at], times[at - 1]);
  TENON_CHECK_VALUE(options.substeps > 0 && options.max_steps > 0,
                    "[odeint] expected substeps and max_steps above 0, got {} and {}", options.substeps,
                    options.max_steps);
  TENON_CHECK_VALUE(options.rtol >= 0 && options.atol > 0, "[odeint] expected rtol ≥ 0 and atol > 0, got {} and {}",
                    options.rtol, options.atol);
}

}  // namespace

Tensor odeint(const OdeRate& rate, const Tensor& start, const std::vector<double>& times, const OdeOptions& options) {
  check(start, times, options);
  Adaptive adaptive(rate, options);
  std::vector<Tensor> path = {start};
  for (size_t at = 1; at < times.size(); ++at)
    path.push_back(options.method == OdeMethod::Dopri5
                       ? adaptive.advance(path.back(), times[at - 1], times[at])
                       : advance_in_fixed_steps(rate, path.back(), times[at - 1], times[at], options));
  return stack(path);
}

}  // namespace tenon::numerics::detail
