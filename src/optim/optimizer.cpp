#include <tenon/optim/optimizer.h>

#include "core/effects.h"
#include "optim/fused_step.h"
#include "support/out_of_memory.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace tenon::optim {

void Optimizer::add_parameters(std::vector<Tensor> parameters) {
  TENON_CHECK_VALUE(!parameters.empty(), "[{}] expected at least one parameter, got an empty list", name_);
  for (const Tensor& parameter : parameters) {
    size_t at = parameters_.size();
    TENON_CHECK_TYPE(parameter.defined(), "[{}] parameter {} is an undefined tensor", name_, at);
    TENON_CHECK_VALUE(parameter.is_leaf(), "[{}] parameter {} is not a leaf: {}", name_, at, parameter.description());
    for (size_t before = 0; before < at; ++before)
      TENON_CHECK_VALUE(!parameter.is(parameters_[before]), "[{}] parameters {} and {} are the same tensor {}", name_,
                        before, at, parameter.description());
    parameters_.push_back(parameter);
    states_.emplace_back();
  }
  group_sizes_.push_back(parameters.size());
}

void Optimizer::check_lr(double lr) const {
  TENON_CHECK_VALUE(lr >= 0, "[{}] expected a learning rate of at least 0, got {}", name_, lr);
}

// One of parameters that a captured function made is itself part of what is captured.
bool Optimizer::holds_real_tensors() const {
  return std::none_of(parameters_.begin(), parameters_.end(), [](const Tensor& each) { return each.is_fake(); });
}

void Optimizer::step() try {
  if (holds_real_tensors() && core::is_taken_as_effect("an optimizer steps", alive_, [this] { step(); })) return;
  NoGrad off;
  FusedStep together;
  size_t at = 0;
  for (size_t group = 0; group < group_sizes_.size(); ++group)
    for (size_t end = at + group_sizes_[group]; at < end; ++at) {
      Tensor gradient = parameters_[at].grad();
      if (!gradient.defined()) continue;
      ++states_[at].step;
      states_[at].tensors.resize(state_names().size());
      update(parameters_[at], gradient, states_[at], group);
    }
  together.launch();
} catch (...) {
  support::rethrow_named("step");
}

void Optimizer::zero_grad(bool set_to_none) {
  if (holds_real_tensors() &&
      core::is_taken_as_effect("an optimizer forgets gradients", alive_, [=, this] { zero_grad(set_to_none); }))
    return;
  NoGrad off;
  for (const Tensor& parameter : parameters_) {
    Tensor gradient = parameter.grad();
    if (!gradient.defined()) continue;
    if (set_to_none) {
      parameter.set_grad(Tensor());
    } else if (gradient.is_leaf()) {
      gradient.zero_();
    } else {
      parameter.set_grad(zeros_like(gradient));
    }
  }
}

std::vector<Tensor> Optimizer::parameters() const { return parameters_; }

namespace {

bool is_momentum(const char* name) { return std::strcmp(name, "momentum") == 0 || std::strcmp(name, "beta1") == 0; }

}  // namespace

double Optimizer::lr(size_t group) const {
  double found = 0;
  const_cast<Optimizer*>(this)->visit_options(group, [&](const char* name, double& value) {
    if (std::strcmp(name, "lr") == 0) found = value;
  });
  return found;
}

void Optimizer::set_lr(size_t group, double lr) {
  check_lr(lr);
  if (holds_real_tensors() &&
      core::is_taken_as_effect("a learning rate is set", alive_, [=, this] { set_lr(group, lr); }))
    return;
  TENON_CHECK_INDEX(group < groups(), "[{}] expected a group below {}, got {}", name_, groups(), group);
  visit_options(group, [&](const char* name, double& value) {
    if (std::strcmp(name, "lr") == 0) value = lr;
  });
}

void Optimizer::set_lr(double lr) {
  for (size_t group = 0; group < groups(); ++group) set_lr(group, lr);
}

double Optimizer::momentum(size_t group) const {
  double found = 0;
  const_cast<Optimizer*>(this)->visit_options(group, [&](const char* name, double& value) {
    if (is_momentum(name)) found = value;
  });
  return found;
}

void Optimizer::set_momentum(size_t group, double momentum) {
  bool found = false;
  visit_options(group, [&](const char* name, double& value) {
    if (!is_momentum(name)) return;
    value = momentum;
    found = true;
  });
  TENON_CHECK_VALUE(found, "[{}] has no momentum", name_);
}

io::NamedTensors Optimizer::state_dict() const {
  io::NamedTensors list;
  std::vector<std::string> names = state_names();
  for (size_t at = 0; at < states_.size(); ++at) {
    const State& state = states_[at];
    if (state.step == 0) continue;
    list.emplace_back(fmt::format("state.{}.step", at), tensor(state.step));
    list.emplace_back(fmt::format("state.{}.number", at), tensor(state.number, kFloat64));
    for (size_t which = 0; which < names.size(); ++which)
      if (state.tensors[which].defined())
        list.emplace_back(fmt::format("state.{}.{}", at, names[which]), state.tensors[which]);
  }
  for (size_t group = 0; group < groups(); ++group)
    const_cast<Optimizer*>(this)->visit_options(group, [&](const char* name, double& value) {
      list.emplace_back(fmt::format("groups.{}.{}", group, name), tensor(value, kFloat64));
    });
  return list;
}

void Optimizer::load_state_dict(const io::NamedTensors& given) {
  NoGrad off;
  std::map<std::string, Tensor> entries(given.begin(), given.end());
  auto take = [&](const std::string& name) {
    auto found = entries.find(name);
    Tensor tensor = found == entries.end() ? Tensor() : found->second;
    if (found != entries.end()) entries.erase(found);
    return tensor;
  };
  std::vector<std::string> names = state_names();
  std::vector<State> states(states_.size());
  for (size_t at = 0; at < states.size(); ++at) {
    State& state = states[at];
    Tensor step = take(fmt::format("state.{}.step", at)), number = take(fmt::format("state.{}.number", at));
    state.tensors.resize(names.size());
    if (step.defined()) state.step = step.item<int64_t>();
    if (number.defined()) state.number = number.item<double>();
    for (size_t which = 0; which < names.size(); ++which) {
      std::string name = fmt::format("state.{}.{}", at, names[which]);
      Tensor value = take(name);
      if (!value.defined()) continue;
      const Tensor& parameter = parameters_[at];
      bool fits = value.dim() == parameter.dim() || value.dim() == 0;
      for (int64_t dim = 0; fits && dim < value.dim(); ++dim) fits = bool(value.size(dim) == parameter.size(dim));
      TENON_CHECK_VALUE(fits, "[{}] expected '{}' of the size of its parameter {}, got {}", name_, name,
                        parameter.description(), value.description());
      state.tensors[which] = clone(value);
    }
  }
  std::vector<std::string> missing;
  for (size_t group = 0; group < groups(); ++group)
    visit_options(group, [&](const char* option, double&) {
      std::string name = fmt::format("groups.{}.{}", group, option);
      if (!entries.contains(name)) missing.push_back(name);
    });
  size_t expected = 0;
  for (size_t group = 0; group < groups(); ++group)
    visit_options(group, [&](const char* option, double&) {
      expected += entries.contains(fmt::format("groups.{}.{}", group, option)) ? 1 : 0;
    });
  TENON_CHECK_VALUE(missing.empty() && expected == entries.size(),
                    "[{}] expected the state of {} groups with {} parameters of the same kind of optimizer{}{}", name_,
                    groups(), parameters_.size(), missing.empty() ? "" : ", missing: " + missing[0],
                    expected == entries.size() ? "" : ", and got more");
  for (size_t group = 0; group < groups(); ++group)
    visit_options(group, [&](const char* option, double& value) {
      value = entries.at(fmt::format("groups.{}.{}", group, option)).item<double>();
    });
  states_ = std::move(states);
}

}  // namespace tenon::optim
