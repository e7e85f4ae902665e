#include <tenon/optim/lbfgs.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>

#include "core/effects.h"
#include "optim/checks.h"

#include <cmath>

namespace tenon::optim {
namespace {

double number(const Tensor& tensor) { return tensor.item<double>(); }
double product(const Tensor& a, const Tensor& b) { return number(sum(a * b)); }
double largest(const Tensor& tensor) { return number(amax(abs(tensor))); }

// Where the cubic through two points with these slopes is lowest, within the bounds; their middle if it has no lowest.
double lowest_of_cubic(double x1, double f1, double g1, double x2, double f2, double g2, double low, double high) {
  if (x1 > x2) {
    std::swap(x1, x2);
    std::swap(f1, f2);
    std::swap(g1, g2);
  }
  double d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2), square = d1 * d1 - g1 * g2;
  if (!(square >= 0)) return (low + high) / 2;
  double d2 = std::sqrt(square), at = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2));
  return std::isfinite(at) ? std::min(std::max(at, low), high) : (low + high) / 2;
}

}  // namespace

LBFGS::LBFGS(std::vector<Tensor> parameters, const LBFGSOptions& options) : OptimizerOf("LBFGS") {
  add_group(std::move(parameters), options);
}

void LBFGS::check_options(const LBFGSOptions& options) const {
  TENON_CHECK_VALUE(groups() == 0, "[LBFGS] has one group of parameters");
  check_lr(options.lr);
  TENON_CHECK_VALUE(options.max_iter > 0 && options.history_size > 0 && options.max_eval >= 0,
                    "[LBFGS] expected max_iter and history_size above 0, got {} and {}", options.max_iter,
                    options.history_size);
  check_not_negative("LBFGS", "tolerance_grad", options.tolerance_grad);
  check_not_negative("LBFGS", "tolerance_change", options.tolerance_change);
}

void LBFGS::step() { fail<TypeError>("[LBFGS] expected a function that computes the loss: step(evaluate)"); }
void LBFGS::update(const Tensor&, const Tensor&, State&, size_t) { step(); }

Tensor LBFGS::gradient() const {
  std::vector<Tensor> parts;
  for (const Tensor& parameter : parameters_) {
    Tensor each = parameter.grad();
    parts.push_back(reshape(each.defined() ? each : zeros_like(parameter), {-1}));
  }
  return parts.size() == 1 ? clone(parts[0]) : cat(parts);
}

void LBFGS::move(double step, const Tensor& direction) const {
  int64_t at = 0;
  for (const Tensor& parameter : parameters_) {
    auto count = int64_t(parameter.numel());
    parameter.add_(view(narrow(direction, 0, at, count), parameter.sym_sizes()), step);
    at += count;
  }
}

void LBFGS::remember(const Tensor& change, const Tensor& bend) {
  double curved = product(bend, change);
  if (curved <= 1e-10) return;  // not downwards: the estimate would be no valley
  if (static_cast<int64_t>(changes_.size()) == options_[0].history_size) {
    changes_.erase(changes_.begin());
    bends_.erase(bends_.begin());
    weights_.erase(weights_.begin());
  }
  changes_.push_back(change);
  bends_.push_back(bend);
  weights_.push_back(1 / curved);
  scale_ = curved / product(bend, bend);
}

// Minus the inverse curvature times the gradient, by two walks through the history.
Tensor LBFGS::direction_from(const Tensor& slope) const {
  std::vector<double> shares(changes_.size());
  Tensor q = neg(slope);
  for (size_t at = changes_.size(); at-- > 0;) {
    shares[at] = product(changes_[at], q) * weights_[at];
    q = add(q, bends_[at], -shares[at]);
  }
  q = q * scale_;
  for (size_t at = 0; at < changes_.size(); ++at)
    q = add(q, changes_[at], shares[at] - product(bends_[at], q) * weights_[at]);
  return q;
}

LBFGS::Point LBFGS::evaluate_at(const std::function<Tensor()>& evaluate, double step, const Tensor& direction) {
  move(step, direction);
  double loss = 0;
  {
    EnableGrad on;
    loss = number(evaluate());
  }
  ++evaluations_;
  Point point{loss, gradient(), 0};
  point.slope = product(point.gradient, direction);
  move(-step, direction);
  return point;
}

// Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6: first a bracket, then smaller ones within it.
std::pair<double, LBFGS::Point> LBFGS::search(const std::function<Tensor()>& evaluate, double step,
                                              const Tensor& direction, const Point& start) {
  constexpr double kDecrease = 1e-4, kFlatter = 0.9;
  constexpr int kMost = 25;
  const double width = largest(direction);
  auto low_enough = [&](double at, double loss) { return loss <= start.loss + kDecrease * at * start.slope; };
  auto flat_enough = [&](const Point& point) { return std::abs(point.slope) <= -kFlatter * start.slope; };
  double low_at = 0, high_at = 0;
  Point low = start, high = start;
  bool bracketed = false;
  int tries = 0;
  for (double at = step; !bracketed && tries < kMost; ++tries) {
    Point here = evaluate_at(evaluate, at, direction);
    if (!low_enough(at, here.loss) || (tries > 0 && here.loss >= low.loss)) {
      high_at = at;
      high = here;
      bracketed = true;
    } else if (flat_enough(here)) {
      return {at, here};
    } else if (here.slope >= 0) {
      high_at = low_at;
      high = low;
      low_at = at;
      low = here;
      bracketed = true;
    } else {
      double next =
          lowest_of_cubic(low_at, low.loss, low.slope, at, here.loss, here.slope, at + 0.01 * (at - low_at), at * 10);
      low_at = at;
      low = here;
      at = next;
    }
  }
  for (; bracketed && tries < kMost && std::abs(high_at - low_at) * width >= options_[0].tolerance_change; ++tries) {
    double from = std::min(low_at, high_at), to = std::max(low_at, high_at), margin = 0.1 * (to - from);
    double at =
        lowest_of_cubic(low_at, low.loss, low.slope, high_at, high.loss, high.slope, from + margin, to - margin);
    Point here = evaluate_at(evaluate, at, direction);
    if (!low_enough(at, here.loss) || here.loss >= low.loss) {
      high_at = at;
      high = here;
    } else {
      if (flat_enough(here)) return {at, here};
      if (here.slope * (high_at - low_at) >= 0) {
        high_at = low_at;
        high = low;
      }
      low_at = at;
      low = here;
    }
  }
  return {low_at, low};
}

Tensor LBFGS::step(const std::function<Tensor()>& evaluate) {
  // The function may read the arguments of the compiled function, which are not there when the graph has ended.
  TENON_CHECK(!core::effect_interceptor(),
              "[LBFGS] step() cannot be part of a compiled function: compile what computes the loss instead, and call "
              "it in the function that step() is given");
  NoGrad off;
  const LBFGSOptions& o = options_[0];
  const int64_t most = o.max_eval > 0 ? o.max_eval : o.max_iter * 5 / 4;
  Tensor first;
  {
    EnableGrad on;
    first = evaluate();
  }
  evaluations_ = 1;
  double loss = number(first);
  Tensor slope = gradient();
  if (largest(slope) <= o.tolerance_grad) return first;
  for (int64_t iteration = 1; iteration <= o.max_iter; ++iteration) {
    bool fresh = !direction_.defined();
    if (!fresh) remember(direction_ * last_step_, slope - last_gradient_);
    direction_ = fresh ? neg(slope) : direction_from(slope);
    last_gradient_ = slope;
    double step = fresh ? std::min(1.0, 1 / number(sum(abs(slope)))) * o.lr : o.lr;
    double before = loss, along = product(slope, direction_);
    if (along > -o.tolerance_change) break;
    if (o.line_search == LineSearch::StrongWolfe) {
      auto [found, point] = search(evaluate, step, direction_, {loss, slope, along});
      step = found;
      loss = point.loss;
      slope = point.gradient;
      move(step, direction_);
    } else {
      move(step, direction_);
      if (iteration < o.max_iter) {  // else nobody looks
        EnableGrad on;
        loss = number(evaluate());
        ++evaluations_;
        slope = gradient();
      }
    }
    last_step_ = step;
    if (iteration == o.max_iter || evaluations_ >= most || largest(slope) <= o.tolerance_grad ||
        largest(direction_) * step <= o.tolerance_change || std::abs(loss - before) < o.tolerance_change)
      break;
  }
  return first;
}

}  // namespace tenon::optim
