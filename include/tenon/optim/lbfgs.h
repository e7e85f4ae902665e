// L-BFGS: steps by an estimate of the curvature from the last gradients. It computes the loss several times in a step,
// so that it takes a function.
//
//   Tensor w = zeros({3}).set_requires_grad();
//   optim::LBFGSOptions options{.line_search = optim::LineSearch::StrongWolfe};
//   optim::LBFGS lbfgs({w}, options);
//   Tensor loss = lbfgs.step([&] {
//     lbfgs.zero_grad();
//     Tensor value = ((w - 2) * (w - 2)).sum();
//     value.backward();
//     return value;
//   });                                          // before the step
//   bool found = w.allclose(2 * ones({3}));
#pragma once

#include <tenon/optim/optimizer.h>

namespace tenon::optim {

enum class LineSearch : uint8_t {
  None,         // steps of lr; the first of at most lr / |gradient|₁
  StrongWolfe,  // a step that lowers the loss enough and flattens its slope enough
};

struct LBFGSOptions {
  double lr = 1;
  int64_t max_iter = 20;
  int64_t max_eval = 0;            // of the function; 0: max_iter · 5 / 4
  double tolerance_grad = 1e-7;    // ends when no part of the gradient is larger
  double tolerance_change = 1e-9;  // ends when the loss or the parameters change less
  int64_t history_size = 100;
  LineSearch line_search = LineSearch::None;

  template <typename Visit>
  void visit(const Visit& each) {
    each("lr", lr);
  }
};

// All parameters are one vector, in one group. It cannot be saved.
class LBFGS : public OptimizerOf<LBFGSOptions> {
 public:
  LBFGS(std::vector<Tensor> parameters, const LBFGSOptions& options = {});
  // `evaluate` clears the gradients, computes the loss, calls backward() and returns the loss.
  Tensor step(const std::function<Tensor()>& evaluate);

 private:
  void step() override;
  void check_options(const LBFGSOptions& options) const override;
  std::vector<std::string> state_names() const override { return {}; }
  void update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) override;

  struct Point {
    double loss;
    Tensor gradient;
    double slope;  // along the direction
  };
  Tensor gradient() const;
  void move(double step, const Tensor& direction) const;
  void remember(const Tensor& change, const Tensor& bend);
  Tensor direction_from(const Tensor& gradient) const;
  Point evaluate_at(const std::function<Tensor()>& evaluate, double step, const Tensor& direction);
  std::pair<double, Point> search(const std::function<Tensor()>& evaluate, double step, const Tensor& direction,
                                  const Point& start);

  std::vector<Tensor> changes_, bends_;  // of parameters and gradients, the oldest first
  std::vector<double> weights_;          // 1 / (change · bend)
  double scale_ = 1;                     // of the first guess of the inverse curvature
  Tensor direction_, last_gradient_;
  double last_step_ = 0;
  int64_t evaluations_ = 0;
};

}  // namespace tenon::optim
