// What optimizers have in common: groups of parameters with options of their own, a state for each parameter, and both
// as named tensors that can be saved.
//
//   nn::Linear model(3, 1);
//   optim::Adam adam(model.parameters(), {.lr = 0.01});
//   for (int i = 0; i < 3; ++i) {
//     adam.zero_grad();
//     model(x).sum().backward();
//     adam.step();
//   }
//   adam.set_lr(adam.lr() / 2);                      // of all groups; nothing is compiled for it
//   adam.add_group({ones({3}).set_requires_grad()}, {.lr = 0.1});
//   adam.set_lr(1, 0.2);
//   adam.set_momentum(0, adam.momentum(0));
//   size_t groups = adam.groups(), trained = adam.parameters().size();      // 2, 3
//   double eps = adam.options().eps;
//   optim::Optimizer& any = adam;                    // for schedulers and loops that take each of them
//
//   io::NamedTensors state = adam.state_dict();
//   optim::Adam other(model.parameters());
//   other.add_group({ones({3}).set_requires_grad()}, {});
//   other.load_state_dict(state);                    // goes on where `adam` is
//
// Optimizers change the parameters themselves, in place and without history. In a compiled function they break the
// graph: step() and zero_grad() happen at every call, with the rates and states of that call.
#pragma once

#include <tenon/core/tensor.h>
#include <tenon/io/tensors.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tenon::optim {

// What an optimizer remembers of one parameter.
struct State {
  int64_t step = 0;
  double number = 1;            // a product over the steps, for those that need one
  std::vector<Tensor> tensors;  // undefined until the first step; the optimizer names them
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Changes every parameter that has a gradient.
  virtual void step();
  // Drops the gradients, or fills them with zeros.
  void zero_grad(bool set_to_none = true);

  // Of all groups, in order.
  std::vector<Tensor> parameters() const;
  size_t groups() const { return group_sizes_.size(); }
  double lr(size_t group = 0) const;
  void set_lr(double lr);
  void set_lr(size_t group, double lr);
  // The momentum, or the first of two betas; 0 where there is none, and then it cannot be set.
  double momentum(size_t group) const;
  void set_momentum(size_t group, double value);

  // "state.0.exp_avg", "groups.0.lr": for io::save. Loading expects the same groups and sizes.
  io::NamedTensors state_dict() const;
  void load_state_dict(const io::NamedTensors& state);

 protected:
  explicit Optimizer(const char* name) : name_(name) {}
  using Visit = std::function<void(const char* option, double& value)>;

  // Registers the parameters of a new group, whose options the subclass keeps.
  void add_parameters(std::vector<Tensor> parameters);
  void check_lr(double lr) const;
  bool holds_real_tensors() const;
  // All options of a group, by name.
  virtual void visit_options(size_t group, const Visit& visit) = 0;
  // Names of the tensors of a state.
  virtual std::vector<std::string> state_names() const = 0;
  // One parameter; history is off.
  virtual void update(const Tensor& parameter, const Tensor& gradient, State& state, size_t group) = 0;

  const char* name_;
  std::vector<Tensor> parameters_;
  std::vector<State> states_;                                           // of each parameter
  std::vector<size_t> group_sizes_;                                     // parameters of each group
  std::shared_ptr<const char> alive_ = std::make_shared<const char>();  // for compiled functions, which outlive it
};

// With options of one type for each group.
template <typename Options>
class OptimizerOf : public Optimizer {
 public:
  const Options& options(size_t group = 0) const { return options_.at(group); }
  void add_group(std::vector<Tensor> parameters, const Options& options) {
    check_options(options);
    add_parameters(std::move(parameters));
    options_.push_back(options);
  }

 protected:
  using Optimizer::Optimizer;
  virtual void check_options(const Options& options) const = 0;
  void visit_options(size_t group, const Visit& visit) override { options_.at(group).visit(visit); }

  std::vector<Options> options_;
};

namespace detail {
// A bool, as a number for a while.
template <typename Visit>
void visit_flag(const Visit& visit, const char* name, bool& flag) {
  double number = flag ? 1 : 0;
  visit(name, number);
  flag = number != 0;
}
}  // namespace detail

}  // namespace tenon::optim
