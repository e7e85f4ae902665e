// Steps that are shorter where gradients have been large.
//
//   Tensor w = ones({3}).set_requires_grad();
//   w.set_grad(ones({3}));
//   optim::RMSprop({w}, optim::RMSpropOptions{.lr = 0.01, .momentum = 0.9, .centered = true}).step();
//   optim::Adagrad({w}, optim::AdagradOptions{.lr = 0.01}).step();
//   optim::Adadelta({w}, optim::AdadeltaOptions{.rho = 0.95}).step();
#pragma once

#include <tenon/optim/optimizer.h>

namespace tenon::optim {

struct RMSpropOptions {
  double lr = 1e-2;
  double alpha = 0.99;  // how much of the running mean is kept
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;  // by the variance instead of the mean square
  bool maximize = false;

  template <typename Visit>
  void visit(const Visit& each) {
    each("lr", lr);
    each("alpha", alpha);
    each("eps", eps);
    each("weight_decay", weight_decay);
    each("momentum", momentum);
    detail::visit_flag(each, "centered", centered);
    detail::visit_flag(each, "maximize", maximize);
  }
};

class RMSprop : public OptimizerOf<RMSpropOptions> {
 public:
  RMSprop(std::vector<Tensor> parameters, const RMSpropOptions& options = {});

 private:
  void check_options(const RMSpropOptions& options) const override;
  std::vector<std::string> state_names() const override { return {"square_avg", "momentum_buffer", "grad_avg"}; }
  void update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) override;
};

struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  bool maximize = false;

  template <typename Visit>
  void visit(const Visit& each) {
    each("lr", lr);
    each("lr_decay", lr_decay);
    each("weight_decay", weight_decay);
    each("initial_accumulator_value", initial_accumulator_value);
    each("eps", eps);
    detail::visit_flag(each, "maximize", maximize);
  }
};

// By the sum of all squares so far.
class Adagrad : public OptimizerOf<AdagradOptions> {
 public:
  Adagrad(std::vector<Tensor> parameters, const AdagradOptions& options = {});

 private:
  void check_options(const AdagradOptions& options) const override;
  std::vector<std::string> state_names() const override { return {"sum"}; }
  void update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) override;
};

struct AdadeltaOptions {
  double lr = 1;
  double rho = 0.9;  // how much of the running means is kept
  double eps = 1e-6;
  double weight_decay = 0;
  bool maximize = false;

  template <typename Visit>
  void visit(const Visit& each) {
    each("lr", lr);
    each("rho", rho);
    each("eps", eps);
    each("weight_decay", weight_decay);
    detail::visit_flag(each, "maximize", maximize);
  }
};

// Steps in the unit of the parameter: by the ratio of past steps and past gradients.
class Adadelta : public OptimizerOf<AdadeltaOptions> {
 public:
  Adadelta(std::vector<Tensor> parameters, const AdadeltaOptions& options = {});

 private:
  void check_options(const AdadeltaOptions& options) const override;
  std::vector<std::string> state_names() const override { return {"square_avg", "acc_delta"}; }
  void update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) override;
};

}  // namespace tenon::optim
