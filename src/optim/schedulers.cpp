#include <tenon/optim/schedulers.h>

#include "core/effects.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace tenon::optim {
namespace {

constexpr const char* kSteps = "a scheduler steps";

double real(int64_t number) { return static_cast<double>(number); }
// From 1 at 0 to 0 at 1, along half a cosine.
double falling(double share) { return (1 + std::cos(std::numbers::pi * share)) / 2; }

}  // namespace

Scheduler::Scheduler(Optimizer& optimizer) : optimizer_(optimizer) {
  for (size_t group = 0; group < optimizer.groups(); ++group) initial_.push_back(optimizer.lr(group));
}

void Scheduler::apply() {
  for (size_t group = 0; group < initial_.size(); ++group) optimizer_.set_lr(group, next(group, optimizer_.lr(group)));
}

void Scheduler::step() {
  if (core::is_taken_as_effect(kSteps, alive_, [this] { step(); })) return;
  ++steps_;
  apply();
}

std::vector<double> Scheduler::last_lr() const {
  std::vector<double> rates;
  for (size_t group = 0; group < initial_.size(); ++group) rates.push_back(optimizer_.lr(group));
  return rates;
}

io::NamedTensors Scheduler::state_dict() const {
  return {{"steps", tensor(steps_)}, {"initial_lr", tensor(initial_, kFloat64)}};
}

void Scheduler::load_state_dict(const io::NamedTensors& state) {
  Tensor steps, initial;
  for (const auto& [name, value] : state) {
    if (name == "steps") steps = value;
    if (name == "initial_lr") initial = value;
  }
  TENON_CHECK_VALUE(steps.defined() && initial.defined() && initial.dim() == 1 &&
                        int64_t(initial.size(0)) == static_cast<int64_t>(initial_.size()),
                    "[Scheduler] expected the steps and the initial rates of {} groups", initial_.size());
  steps_ = steps.item<int64_t>();
  initial_ = initial.tolist<double>();
}

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : Scheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  TENON_CHECK_VALUE(step_size > 0, "[StepLR] expected a step_size above 0, got {}", step_size);
}
double StepLR::next(size_t, double current) const {
  return steps_ > 0 && steps_ % step_size_ == 0 ? current * gamma_ : current;
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma)
    : Scheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {}
double MultiStepLR::next(size_t, double current) const {
  auto times = std::count(milestones_.begin(), milestones_.end(), steps_);
  return times > 0 ? current * std::pow(gamma_, times) : current;
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma) : Scheduler(optimizer), gamma_(gamma) {}
double ExponentialLR::next(size_t, double current) const { return steps_ > 0 ? current * gamma_ : current; }

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min)
    : Scheduler(optimizer), t_max_(t_max), eta_min_(eta_min) {
  TENON_CHECK_VALUE(t_max > 0, "[CosineAnnealingLR] expected t_max above 0, got {}", t_max);
}
double CosineAnnealingLR::next(size_t group, double current) const {
  if (steps_ == 0) return current;
  // From a maximum or a minimum on there is no ratio to the rate before.
  double before = falling(real(steps_ - 1) / real(t_max_)), now = falling(real(steps_) / real(t_max_));
  if ((steps_ - 1 - t_max_) % (2 * t_max_) == 0) return current + (initial_[group] - eta_min_) * now;
  return now / before * (current - eta_min_) + eta_min_;
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t t_0, int64_t t_mult,
                                                         double eta_min)
    : Scheduler(optimizer), t_0_(t_0), t_mult_(t_mult), eta_min_(eta_min) {
  TENON_CHECK_VALUE(t_0 > 0 && t_mult > 0,
                    "[CosineAnnealingWarmRestarts] expected t_0 and t_mult above 0, got {} and {}", t_0, t_mult);
}
double CosineAnnealingWarmRestarts::next(size_t group, double) const {
  int64_t at = steps_, length = t_0_;
  for (; at >= length; length *= t_mult_) at -= length;
  return eta_min_ + (initial_[group] - eta_min_) * falling(real(at) / real(length));
}

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor, int64_t total_iters)
    : Scheduler(optimizer), start_factor_(start_factor), end_factor_(end_factor), total_iters_(total_iters) {
  TENON_CHECK_VALUE(start_factor > 0 && start_factor <= 1 && end_factor >= 0 && end_factor <= 1 && total_iters > 0,
                    "[LinearLR] expected factors from 0 to 1 and total_iters above 0, got {}, {} and {}", start_factor,
                    end_factor, total_iters);
  begin();
}
double LinearLR::next(size_t, double current) const {
  if (steps_ == 0) return current * start_factor_;
  if (steps_ > total_iters_) return current;
  double step = end_factor_ - start_factor_;
  return current * (1 + step / (real(total_iters_) * start_factor_ + real(steps_ - 1) * step));
}

ConstantLR::ConstantLR(Optimizer& optimizer, double factor, int64_t total_iters)
    : Scheduler(optimizer), factor_(factor), total_iters_(total_iters) {
  TENON_CHECK_VALUE(factor > 0 && factor <= 1, "[ConstantLR] expected a factor above 0 and up to 1, got {}", factor);
  begin();
}
double ConstantLR::next(size_t, double current) const {
  if (steps_ == 0) return current * factor_;
  return steps_ == total_iters_ ? current / factor_ : current;
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, int64_t total_iters, double power)
    : Scheduler(optimizer), total_iters_(total_iters), power_(power) {}
double PolynomialLR::next(size_t, double current) const {
  if (steps_ == 0 || steps_ > total_iters_) return current;
  double left = 1 - real(steps_) / real(total_iters_), before = 1 - real(steps_ - 1) / real(total_iters_);
  return current * std::pow(left / before, power_);
}

LambdaLR::LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> factor)
    : Scheduler(optimizer), factor_(std::move(factor)) {
  begin();
}
double LambdaLR::next(size_t group, double) const { return initial_[group] * factor_(steps_); }

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, std::function<double(int64_t)> factor)
    : Scheduler(optimizer), factor_(std::move(factor)) {}
double MultiplicativeLR::next(size_t, double current) const { return steps_ > 0 ? current * factor_(steps_) : current; }

OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleOptions& options) : Scheduler(optimizer), options_(options) {
  TENON_CHECK_VALUE(options.max_lr > 0 && options.total_steps > 1 && options.pct_start >= 0 && options.pct_start <= 1,
                    "[OneCycleLR] expected max_lr above 0, total_steps above 1 and pct_start from 0 to 1, got {}, {} "
                    "and {}",
                    options.max_lr, options.total_steps, options.pct_start);
  begin();
}

// A value on its way from `low` to `high` and back (in three phases), then to `last`. The momentum goes from high to
// low and back, and stays.
double OneCycleLR::between(double low, double high, double last, bool momentum) const {
  struct Phase {
    double end, from, to;
  };
  double start = momentum ? high : low, top = momentum ? low : high;
  double up = options_.pct_start * real(options_.total_steps) - 1, end = real(options_.total_steps) - 1;
  std::vector<Phase> phases = {{up, start, top}};
  if (options_.three_phase) phases.push_back({2 * up, top, start});
  phases.push_back({end, options_.three_phase ? start : top, last});
  double begins = 0, at = real(steps_);
  for (const Phase& phase : phases) {
    if (at <= phase.end || &phase == &phases.back()) {
      double share = phase.end == begins ? 1 : (at - begins) / (phase.end - begins);
      return options_.linear ? phase.from + (phase.to - phase.from) * share
                             : phase.to + (phase.from - phase.to) * falling(share);
    }
    begins = phase.end;
  }
  return last;
}

double OneCycleLR::next(size_t, double) const {
  TENON_CHECK_VALUE(steps_ < options_.total_steps, "[OneCycleLR] expected at most {} steps, got more",
                    options_.total_steps - 1);
  double first = options_.max_lr / options_.div_factor;
  return between(first, options_.max_lr, first / options_.final_div_factor, false);
}

void OneCycleLR::apply() {
  Scheduler::apply();
  if (!options_.cycle_momentum) return;
  for (size_t group = 0; group < initial_.size(); ++group)
    if (optimizer_.momentum(group) > 0)
      optimizer_.set_momentum(group,
                              between(options_.base_momentum, options_.max_momentum, options_.max_momentum, true));
}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options)
    : optimizer_(optimizer),
      options_(options),
      best_(options.maximize ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity()) {
  TENON_CHECK_VALUE(options.factor < 1, "[ReduceLROnPlateau] expected a factor below 1, got {}", options.factor);
}

bool ReduceLROnPlateau::improves(double measure) const {
  double sign = options_.maximize ? 1 : -1;
  double bound = options_.relative ? best_ * (1 + sign * options_.threshold) : best_ + sign * options_.threshold;
  return options_.maximize ? measure > bound : measure < bound;
}

void ReduceLROnPlateau::step(double measure) {
  if (core::is_taken_as_effect(kSteps, alive_, [=, this] { step(measure); })) return;
  if (improves(measure)) {
    best_ = measure;
    bad_ = 0;
  } else {
    ++bad_;
  }
  if (resting_ > 0) {
    --resting_;
    bad_ = 0;
  }
  if (bad_ <= options_.patience) return;
  for (size_t group = 0; group < optimizer_.groups(); ++group) {
    double before = optimizer_.lr(group), now = std::max(before * options_.factor, options_.min_lr);
    if (before - now > options_.eps) optimizer_.set_lr(group, now);
  }
  resting_ = options_.cooldown;
  bad_ = 0;
}

SequentialLR::SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<Scheduler>> schedulers,
                           std::vector<int64_t> milestones)
    : schedulers_(std::move(schedulers)), milestones_(std::move(milestones)) {
  TENON_CHECK_VALUE(!schedulers_.empty() && milestones_.size() + 1 == schedulers_.size() &&
                        std::is_sorted(milestones_.begin(), milestones_.end()),
                    "[SequentialLR] expected a rising milestone between each two schedulers, got {} for {}",
                    milestones_.size(), schedulers_.size());
  // Each has set a rate of its own when it was made; all begin from what the first one began with.
  for (size_t group = 0; group < optimizer.groups(); ++group) optimizer.set_lr(group, schedulers_[0]->initial_[group]);
  for (const auto& scheduler : schedulers_) scheduler->initial_ = schedulers_[0]->initial_;
  schedulers_[0]->apply();
}

void SequentialLR::step() {
  if (core::is_taken_as_effect(kSteps, alive_, [this] { step(); })) return;
  ++steps_;
  auto at = static_cast<size_t>(std::upper_bound(milestones_.begin(), milestones_.end(), steps_) - milestones_.begin());
  Scheduler& active = *schedulers_[at];
  if (at > 0 && milestones_[at - 1] == steps_) {
    for (size_t group = 0; group < active.initial_.size(); ++group)
      active.optimizer_.set_lr(group, active.initial_[group]);
    active.steps_ = 0;
    active.apply();
  } else {
    active.step();
  }
}

ChainedScheduler::ChainedScheduler(std::vector<std::shared_ptr<Scheduler>> schedulers)
    : schedulers_(std::move(schedulers)) {
  TENON_CHECK_VALUE(!schedulers_.empty(), "[ChainedScheduler] expected at least one scheduler");
}
void ChainedScheduler::step() {
  if (core::is_taken_as_effect(kSteps, alive_, [this] { step(); })) return;
  for (const auto& scheduler : schedulers_) scheduler->step();
}

}  // namespace tenon::optim
