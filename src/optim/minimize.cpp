#include <tenon/optim/minimize.h>

#include <tenon/autograd/grad.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>
#include <tenon/numerics/conjugate_gradients.h>
#include <tenon/optim/lbfgs.h>

#include <algorithm>
#include <cmath>

namespace tenon::optim {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

double product(const Tensor& a, const Tensor& b) { return sum(a * b).item<double>(); }
double largest(const Tensor& tensor) { return amax(abs(tensor)).item<double>(); }

// The function where it is asked: counts, and refuses what is not one number.
class Counted {
 public:
  explicit Counted(const Function& function) : function_(function) {}
  Tensor operator()(const Tensor& x) {
    ++evaluations;
    Tensor value = function_(x);
    TENON_CHECK(value.defined() && value.is_floating_point() && bool(value.numel() == 1),
                "[minimize] expected a function that gives one number, got {}; end it with .sum() or .mean()",
                value.defined() ? value.description() : "an undefined tensor");
    return value;
  }
  int64_t evaluations = 0;

 private:
  const Function& function_;
};

// A way from point to point.
class Way {
 public:
  virtual ~Way() = default;
  struct Point {
    double value;
    Tensor gradient;  // without history
  };
  virtual Point look() = 0;
  // From the point that was looked at; why not, if no lower one is found.
  virtual Decision step() = 0;
  virtual Tensor x() const = 0;

 protected:
  static Decision no_lower_point() {
    return Decision::forbid(
        "no lower point was found along the direction: the numbers may not be exact enough for "
        "this tolerance, or the gradient is not the function's");
  }
};

class ByLBFGS : public Way {
 public:
  ByLBFGS(Counted& function, const Tensor& start, const MinimizeOptions& options)
      : function_(function),
        x_(clone(start.detach()).set_requires_grad()),
        lbfgs_({x_}, {.max_iter = 1,
                      .tolerance_grad = 0,
                      .tolerance_change = 0,
                      .history_size = options.history_size,
                      .line_search = LineSearch::StrongWolfe}) {}

  Point look() override {
    value_ = evaluate();
    return {value_.item<double>(), gradient()};
  }
  Decision step() override {
    bool looked = true;  // what its first question is about
    Tensor before = clone(x_.detach());
    lbfgs_.step([&] { return std::exchange(looked, false) ? value_ : evaluate(); });
    if (before.equal(x_.detach())) return no_lower_point();
    return Decision::allow();
  }
  Tensor x() const override { return x_.detach(); }

 private:
  Tensor evaluate() {
    EnableGrad on;
    lbfgs_.zero_grad();
    Tensor value = function_(x_);
    if (value.requires_grad()) value.backward();
    return value.detach();
  }
  Tensor gradient() const {
    Tensor found = x_.grad();
    return found.defined() ? clone(found.detach()) : zeros_like(x_.detach());
  }

  Counted& function_;
  Tensor x_;
  LBFGS lbfgs_;
  Tensor value_;
};

class ByNewton : public Way {
 public:
  ByNewton(Counted& function, const Tensor& start, const MinimizeOptions& options)
      : function_(function), options_(options), x_(clone(start.detach()).set_requires_grad()) {}

  Point look() override {
    EnableGrad on;
    Tensor value = function_(x_);
    value_ = value.item<double>();
    gradient_ = value.requires_grad()
                    ? autograd::grad_with({value}, {x_}, {.create_graph = true, .materialize_grads = true})[0]
                    : zeros_like(x_.detach());
    return {value_, gradient_.detach()};
  }

  // Along the direction that ends at the bottom of the parabola, as far as that is a valley; half as far while it is
  // too far (Nocedal and Wright, Numerical Optimization, algorithm 7.1).
  Decision step() override {
    NoGrad off;
    const Tensor slope = gradient_.detach(), direction = towards_bottom(slope);
    const double along = product(slope, direction);
    const double exact = 8 * (x_.dtype() == kFloat64 ? 2.2e-16 : 1.2e-7) * std::abs(value_);
    constexpr int kMost = 40;
    double length = 1;
    for (int tries = 0; tries < kMost; ++tries, length /= 2) {
      Tensor there = add(x_.detach(), direction, length);
      if (!(function_(there).item<double>() <= value_ + 1e-4 * length * along + exact)) continue;
      if (there.equal(x_.detach())) break;
      x_ = there.set_requires_grad();
      return Decision::allow();
    }
    return no_lower_point();
  }
  Tensor x() const override { return x_.detach(); }

 private:
  Tensor towards_bottom(const Tensor& slope) const {
    if (!gradient_.requires_grad()) return neg(slope);  // no curvature
    auto curvature = [&](const Tensor& v) {
      return autograd::grad_with({gradient_}, {x_},
                                 {.grad_outputs = {v}, .retain_graph = true, .materialize_grads = true})[0];
    };
    // Exact only as the bottom comes near.
    const double size = std::sqrt(product(slope, slope));
    numerics::CGResult bottom = numerics::cg(
        curvature, neg(slope), {.tolerance = std::min(0.5, std::sqrt(size)), .max_iterations = options_.max_products});
    return bottom.iterations > 0 ? bottom.x : neg(slope);
  }

  Counted& function_;
  const MinimizeOptions& options_;
  Tensor x_, gradient_;
  double value_ = 0;
};

void check(const Tensor& start, const MinimizeOptions& options) {
  TENON_CHECK_TYPE(start.defined() && start.is_floating_point() && bool(start.numel() > 0),
                   "[minimize] expected a start of floating point numbers, got {}",
                   start.defined() ? start.description() : "an undefined tensor");
  TENON_CHECK_VALUE(options.max_iterations > 0 && options.history_size > 0 && options.max_products >= 0,
                    "[minimize] expected max_iterations and history_size above 0, got {} and {}",
                    options.max_iterations, options.history_size);
  TENON_CHECK_VALUE(options.tolerance >= 0, "[minimize] expected a tolerance that is not negative, got {}",
                    options.tolerance);
}

}  // namespace

MinimizeResult minimize(const Function& function, const Tensor& start, const MinimizeOptions& options) {
  TENON_CHECK_VALUE(function != nullptr, "[minimize] expected a function, got none");
  check(start, options);
  Counted counted(function);
  std::unique_ptr<Way> way;
  if (options.method == Method::LBFGS)
    way = std::make_unique<ByLBFGS>(counted, start, options);
  else
    way = std::make_unique<ByNewton>(counted, start, options);
  MinimizeResult result;
  for (;; ++result.iterations) {
    auto [value, gradient] = way->look();
    result.x = way->x();
    result.value = value;
    result.gradient = gradient;
    const double steepest = largest(gradient), slope = std::sqrt(product(gradient, gradient));
    if (options.on_step) options.on_step({result.iterations, value, slope, result.x});
    result.converged = Decision::allow();
    if (!std::isfinite(value) || !std::isfinite(steepest))
      result.converged =
          Decision::forbid("the value is {} and the slope {} after {} steps", value, slope, result.iterations);
    else if (steepest > options.tolerance && result.iterations == options.max_iterations)
      result.converged = Decision::forbid("{} steps were not enough: the largest element of the gradient is {}",
                                          result.iterations, steepest);
    if (!result.converged || steepest <= options.tolerance) break;
    result.converged = way->step();
    if (!result.converged) break;
  }
  if (options.method == Method::LBFGS) result.x = clone(result.x);  // the optimizer's own memory
  result.evaluations = counted.evaluations;
  return result;
}

}  // namespace tenon::optim
