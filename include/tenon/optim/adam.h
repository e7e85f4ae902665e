// Adam and its kin: steps by running means of the gradient and of its square (or size).
//
//   Tensor w = ones({3}).set_requires_grad();
//   w.set_grad(ones({3}));
//   optim::Adam({w}, optim::AdamOptions{.lr = 0.01, .amsgrad = true}).step();
//   optim::AdamW({w}, optim::AdamWOptions{.lr = 0.01, .weight_decay = 0.1}).step();
//   optim::Adamax({w}, optim::AdamaxOptions{.lr = 0.01}).step();
//   optim::NAdam({w}, optim::NAdamOptions{.lr = 0.01}).step();
//   optim::RAdam({w}, optim::RAdamOptions{.lr = 0.01}).step();
//   optim::Lion({w}, optim::LionOptions{.lr = 0.001}).step();
//
// Defaults are PyTorch's. A weight decay is added to the gradient, unless it is decoupled: then the parameter itself
// shrinks by lr · weight_decay of its size.
#pragma once

#include <tenon/optim/optimizer.h>

namespace tenon::optim {

using Betas = std::array<double, 2>;  // how much of the running means is kept

struct AdamOptions {
  double lr = 1e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = false;
  bool amsgrad = false;  // by the largest mean square so far
  bool maximize = false;

  template <typename Visit>
  void visit(const Visit& each) {
    each("lr", lr);
    each("beta1", betas[0]);
    each("beta2", betas[1]);
    each("eps", eps);
    each("weight_decay", weight_decay);
    detail::visit_flag(each, "decoupled_weight_decay", decoupled_weight_decay);
    detail::visit_flag(each, "amsgrad", amsgrad);
    detail::visit_flag(each, "maximize", maximize);
  }
};

class Adam : public OptimizerOf<AdamOptions> {
 public:
  Adam(std::vector<Tensor> parameters, const AdamOptions& options = {});
  // One launch over all parameters that are plain numbers of 4 or 8 bytes; the others one by one.
  void step() override;

 protected:
  Adam(const char* name, std::vector<Tensor> parameters, const AdamOptions& options);

 private:
  void check_options(const AdamOptions& options) const override;
  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}; }
  void update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) override;
};

struct AdamWOptions {
  double lr = 1e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
};

// Adam with a decoupled weight decay.
class AdamW : public Adam {
 public:
  AdamW(std::vector<Tensor> parameters, const AdamWOptions& options = {});
};

struct AdamaxOptions {
  double lr = 2e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool maximize = false;

  template <typename Visit>
  void visit(const Visit& each) {
    each("lr", lr);
    each("beta1", betas[0]);
    each("beta2", betas[1]);
    each("eps", eps);
    each("weight_decay", weight_decay);
    detail::visit_flag(each, "maximize", maximize);
  }
};

// By the largest gradient, which fades, in place of the mean square.
class Adamax : public OptimizerOf<AdamaxOptions> {
 public:
  Adamax(std::vector<Tensor> parameters, const AdamaxOptions& options = {});

 private:
  void check_options(const AdamaxOptions& options) const override;
  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_inf"}; }
  void update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) override;
};

struct NAdamOptions {
  double lr = 2e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;
  bool maximize = false;

  template <typename Visit>
  void visit(const Visit& each) {
    each("lr", lr);
    each("beta1", betas[0]);
    each("beta2", betas[1]);
    each("eps", eps);
    each("weight_decay", weight_decay);
    each("momentum_decay", momentum_decay);
    detail::visit_flag(each, "decoupled_weight_decay", decoupled_weight_decay);
    detail::visit_flag(each, "maximize", maximize);
  }
};

// Adam that looks a step ahead.
class NAdam : public OptimizerOf<NAdamOptions> {
 public:
  NAdam(std::vector<Tensor> parameters, const NAdamOptions& options = {});

 private:
  void check_options(const NAdamOptions& options) const override;
  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_avg_sq"}; }
  void update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) override;
};

struct RAdamOptions {
  double lr = 1e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = false;
  bool maximize = false;

  template <typename Visit>
  void visit(const Visit& each) {
    each("lr", lr);
    each("beta1", betas[0]);
    each("beta2", betas[1]);
    each("eps", eps);
    each("weight_decay", weight_decay);
    detail::visit_flag(each, "decoupled_weight_decay", decoupled_weight_decay);
    detail::visit_flag(each, "maximize", maximize);
  }
};

// Adam whose first steps are plain ones, until the mean square can be trusted.
class RAdam : public OptimizerOf<RAdamOptions> {
 public:
  RAdam(std::vector<Tensor> parameters, const RAdamOptions& options = {});

 private:
  void check_options(const RAdamOptions& options) const override;
  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_avg_sq"}; }
  void update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) override;
};

struct LionOptions {
  double lr = 1e-4;
  Betas betas = {0.9, 0.99};
  double weight_decay = 0;
  bool maximize = false;

  template <typename Visit>
  void visit(const Visit& each) {
    each("lr", lr);
    each("beta1", betas[0]);
    each("beta2", betas[1]);
    each("weight_decay", weight_decay);
    detail::visit_flag(each, "maximize", maximize);
  }
};

// Steps of one size in every direction: the sign of a running mean (Chen et al. 2023). The weight decay is decoupled.
class Lion : public OptimizerOf<LionOptions> {
 public:
  Lion(std::vector<Tensor> parameters, const LionOptions& options = {});

 private:
  void check_options(const LionOptions& options) const override;
  std::vector<std::string> state_names() const override { return {"exp_avg"}; }
  void update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) override;
};

}  // namespace tenon::optim
