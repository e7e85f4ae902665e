// Learning rates that change from step to step. A scheduler belongs to an optimizer; step() follows the optimizer's,
// and sets the rates of all its groups.
//
//   optim::SGD sgd({ones({3}).set_requires_grad()}, {.lr = 0.1});
//   optim::StepLR halves(sgd, 10, 0.5);                // every 10 steps
//   for (int i = 0; i < 20; ++i) {
//     sgd.step();
//     halves.step();
//   }
//   double now = halves.last_lr()[0];                  // 0.025
//   int64_t steps = halves.steps();                    // 20
//   io::NamedTensors state = halves.state_dict();
//   halves.load_state_dict(state);
//   optim::Scheduler& any = halves;
//
// In a compiled function, step() happens at every call.
//
// A rule changes the rate that is there, so that several of them multiply: one for warming up, one for the way down.
#pragma once

#include <tenon/optim/optimizer.h>

#include <memory>

namespace tenon::optim {

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  Scheduler(const Scheduler&) = delete;

  void step();
  int64_t steps() const { return steps_; }
  std::vector<double> last_lr() const;  // of each group

  // Where it is; the rule is not part of it.
  io::NamedTensors state_dict() const;
  void load_state_dict(const io::NamedTensors& state);

 protected:
  explicit Scheduler(Optimizer& optimizer);
  // The rate of a group after steps() steps, from the one before.
  virtual double next(size_t group, double current) const = 0;
  // Sets the rates for the step that steps() says.
  virtual void apply();
  void begin() { apply(); }

  Optimizer& optimizer_;
  std::vector<double> initial_;  // of each group
  int64_t steps_ = 0;
  std::shared_ptr<const char> alive_ = std::make_shared<const char>();

 private:
  friend class SequentialLR;
  friend class ChainedScheduler;
};

//   optim::SGD sgd({ones({3}).set_requires_grad()}, {.lr = 0.1});
//   optim::StepLR a(sgd, 30);                                        // times 0.1 every 30 steps
//   optim::MultiStepLR b(sgd, {30, 80}, 0.1);                        // times 0.1 at 30 and at 80
//   optim::ExponentialLR c(sgd, 0.99);                               // times 0.99 every step
//   optim::CosineAnnealingLR d(sgd, 100, 1e-4);                      // down to 1e-4 in 100 steps
//   optim::CosineAnnealingWarmRestarts e(sgd, 10, 2);                // in 10, then anew in 20, …
//   optim::LinearLR f(sgd, 0.1, 1.0, 5);                             // from a tenth to all of it: warming up
//   optim::ConstantLR g(sgd, 0.5, 5);                                // a half for 5 steps
//   optim::PolynomialLR h(sgd, 50, 2.0);                             // to 0 in 50 steps
//   optim::LambdaLR i(sgd, [](int64_t step) { return 1.0 / static_cast<double>(step + 1); });
//   optim::MultiplicativeLR j(sgd, [](int64_t) { return 0.9; });
//   i.step();
class StepLR : public Scheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);

 private:
  double next(size_t group, double current) const override;

  int64_t step_size_;
  double gamma_;
};

class MultiStepLR : public Scheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1);

 private:
  double next(size_t group, double current) const override;

  std::vector<int64_t> milestones_;
  double gamma_;
};

class ExponentialLR : public Scheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 private:
  double next(size_t group, double current) const override;

  double gamma_;
};

class CosineAnnealingLR : public Scheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min = 0);

 private:
  double next(size_t group, double current) const override;

  int64_t t_max_;
  double eta_min_;
};

class CosineAnnealingWarmRestarts : public Scheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t t_0, int64_t t_mult = 1, double eta_min = 0);

 private:
  double next(size_t group, double current) const override;

  int64_t t_0_, t_mult_;
  double eta_min_;
};

class LinearLR : public Scheduler {
 public:
  LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1, int64_t total_iters = 5);

 private:
  double next(size_t group, double current) const override;

  double start_factor_, end_factor_;
  int64_t total_iters_;
};

class ConstantLR : public Scheduler {
 public:
  ConstantLR(Optimizer& optimizer, double factor = 1.0 / 3, int64_t total_iters = 5);

 private:
  double next(size_t group, double current) const override;

  double factor_;
  int64_t total_iters_;
};

class PolynomialLR : public Scheduler {
 public:
  PolynomialLR(Optimizer& optimizer, int64_t total_iters = 5, double power = 1);

 private:
  double next(size_t group, double current) const override;

  int64_t total_iters_;
  double power_;
};

// The initial rate times what the function gives for the number of steps.
class LambdaLR : public Scheduler {
 public:
  LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> factor);

 private:
  double next(size_t group, double current) const override;

  std::function<double(int64_t)> factor_;
};

// The rate before times what the function gives.
class MultiplicativeLR : public Scheduler {
 public:
  MultiplicativeLR(Optimizer& optimizer, std::function<double(int64_t)> factor);

 private:
  double next(size_t group, double current) const override;

  std::function<double(int64_t)> factor_;
};

// Up to a maximum and down again, the momentum the other way round (Smith and Topin 2018).
//
//   optim::SGD sgd({ones({3}).set_requires_grad()}, {.lr = 0.1, .momentum = 0.9});
//   optim::OneCycleOptions options{.max_lr = 0.5, .total_steps = 100};
//   optim::OneCycleLR cycle(sgd, options);
//   cycle.step();
struct OneCycleOptions {
  double max_lr = 0;
  int64_t total_steps = 0;
  double pct_start = 0.3;       // of the steps go upwards
  bool linear = false;          // else along a cosine
  bool cycle_momentum = true;   // where the optimizer has one
  double base_momentum = 0.85;  // at the maximum
  double max_momentum = 0.95;
  double div_factor = 25;         // the first rate is max_lr / div_factor
  double final_div_factor = 1e4;  // the last one is the first over this
  bool three_phase = false;       // down as fast as up, then further
};

class OneCycleLR : public Scheduler {
 public:
  OneCycleLR(Optimizer& optimizer, const OneCycleOptions& options);

 private:
  double next(size_t group, double current) const override;
  void apply() override;

  double between(double low, double high, double last, bool momentum) const;

  OneCycleOptions options_;
};

// Less when a measure no longer improves.
//
//   optim::SGD sgd({ones({3}).set_requires_grad()}, {.lr = 0.1});
//   optim::PlateauOptions options{.factor = 0.5, .patience = 1};
//   optim::ReduceLROnPlateau plateau(sgd, options);
//   for (double loss : {1.0, 0.9, 0.9, 0.9}) plateau.step(loss);
//   double halved = sgd.lr();                          // 0.05
struct PlateauOptions {
  bool maximize = false;  // larger is better
  double factor = 0.1;
  int64_t patience = 10;  // steps without improvement that are borne
  double threshold = 1e-4;
  bool relative = true;  // the threshold is a share of the best value
  int64_t cooldown = 0;  // steps after a change that do not count
  double min_lr = 0;
  double eps = 1e-8;  // smaller changes are not made
};

class ReduceLROnPlateau {
 public:
  ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options = {});
  ReduceLROnPlateau(const ReduceLROnPlateau&) = delete;
  void step(double measure);

 private:
  bool improves(double measure) const;

  Optimizer& optimizer_;
  PlateauOptions options_;
  double best_;
  int64_t bad_ = 0, resting_ = 0;
  std::shared_ptr<const char> alive_ = std::make_shared<const char>();
};

// One scheduler after the other: the next begins at its milestone. And several at once.
//
//   optim::SGD sgd({ones({3}).set_requires_grad()}, {.lr = 0.1});
//   auto warm = std::make_shared<optim::LinearLR>(sgd, 0.1, 1.0, 5);
//   auto down = std::make_shared<optim::CosineAnnealingLR>(sgd, 95);
//   optim::SequentialLR both(sgd, {warm, down}, {5});
//   both.step();
//   optim::ChainedScheduler at_once({warm, std::make_shared<optim::ExponentialLR>(sgd, 0.9)});
//   at_once.step();
class SequentialLR {
 public:
  SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<Scheduler>> schedulers,
               std::vector<int64_t> milestones);
  SequentialLR(const SequentialLR&) = delete;
  void step();

 private:
  std::vector<std::shared_ptr<Scheduler>> schedulers_;
  std::vector<int64_t> milestones_;
  int64_t steps_ = 0;
  std::shared_ptr<const char> alive_ = std::make_shared<const char>();
};

class ChainedScheduler {
 public:
  explicit ChainedScheduler(std::vector<std::shared_ptr<Scheduler>> schedulers);
  ChainedScheduler(const ChainedScheduler&) = delete;
  void step();

 private:
  std::vector<std::shared_ptr<Scheduler>> schedulers_;
  std::shared_ptr<const char> alive_ = std::make_shared<const char>();
};

}  // namespace tenon::optim
