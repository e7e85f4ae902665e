// `fit`: the loop that trains. Loss, gradients, clipping, the optimizer's step, schedulers, a log, and what it was
// like.
//
//   nn::Sequential model(nn::Linear(3, 8), nn::Tanh(), nn::Linear(8, 1));
//   auto points = std::make_shared<data::TensorDataset>(rand({64, 3}), rand({64, 1}));
//   data::DataLoader batches(points, {.batch_size = 16, .shuffle = true});
//   auto loss = [&](Tensor input, Tensor target) { return mse_loss(model(input), target); };
//   optim::Adam adam(model.parameters(), {.lr = 1e-2});
//   trainer::History history = trainer::fit(loss, adam, batches, {.epochs = 3});
//   double last = history.losses.back(), mean = history.epoch_losses[2];      // of 12 steps, of 3 epochs
//
//   optim::CosineAnnealingLR cosine(adam, 40);
//   trainer::FitOptions options{.epochs = 10, .max_steps = 40, .schedulers = {cosine}, .log_every = 10};
//   options.clip_norm = 1;
//   options.on_step = [](const trainer::Step& step) { double rate = step.lr; };
//   options.on_epoch = [](const trainer::Epoch& epoch) { return epoch.loss < 1e-3; };  // enough
//   trainer::fit(loss, adam, batches, options);
//
// Batches are a DataLoader, or any range of things with `data` and `target`, walked through once for every epoch. A
// loss that takes one tensor is given the data alone. The loss is compiled, unless it is already or `compile` is off.
// The model's mode is left as it is: networks begin in training mode.
//
// (Not `train::`: that is what programs call a function of their own.)
#pragma once

#include <tenon/capture/compile.h>
#include <tenon/data/dataset.h>
#include <tenon/data/progress.h>
#include <tenon/optim/optimizer.h>
#include <tenon/optim/schedulers.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon::trainer {

// A step that was made. Counted from 0.
struct Step {
  int64_t epoch, step;
  double loss;       // before it
  double lr;         // that it was made with
  double grad_norm;  // before clipping; 0 where nothing is clipped
};

// An epoch that ended, with the mean loss of its steps.
struct Epoch {
  int64_t epoch, steps;
  double loss;
};

// Any scheduler of optim/schedulers.h, by reference: one that asks for a measure is given the loss.
//
//   optim::SGD sgd({ones({3}).set_requires_grad()}, {.lr = 0.1});
//   optim::ReduceLROnPlateau plateau(sgd);
//   trainer::SchedulerRef any = plateau;
//   any.step(/*loss=*/0.5);
//   trainer::FitOptions options{.epochs = 10, .epoch_schedulers = {plateau}};
class SchedulerRef {
 public:
  template <typename S>
    requires(!std::same_as<std::remove_const_t<S>, SchedulerRef>)
  SchedulerRef(S& scheduler)
      : step_([&scheduler](double loss) {
          if constexpr (requires { scheduler.step(); })
            scheduler.step();
          else
            scheduler.step(loss);
        }) {}
  void step(double loss) const { step_(loss); }

 private:
  std::function<void(double loss)> step_;
};

struct FitOptions {
  int64_t epochs = 1;
  int64_t max_steps = 0;                            // of all epochs together; 0: as many as there are
  double clip_norm = 0;                             // of all gradients together; 0: they are not clipped
  std::vector<SchedulerRef> schedulers = {};        // step after every step
  std::vector<SchedulerRef> epoch_schedulers = {};  // step after every epoch, a plateau by the mean loss
  int64_t log_every = 0;      // steps between two lines "step 10 loss 0.1234", from the first; 0: none
  std::string progress = "";  // the label of a progress bar; "": none
  std::function<void(const Step&)> on_step = {};
  std::function<bool(const Epoch&)> on_epoch = {};  // true: enough
  bool compile = true;
  bool expect_finite = true;  // a loss that is infinite or not a number is an Error, before it spoils the weights
};

struct History {
  std::vector<double> losses;        // of each step
  std::vector<double> epoch_losses;  // the mean of each epoch
};

namespace detail {

// All of the loop but the loss.
class Loop {
 public:
  Loop(optim::Optimizer& optimizer, const FitOptions& options, int64_t batches);
  bool is_over() const { return over_; }
  // A loss that was computed: false if it was the last one.
  bool step(const Tensor& loss);
  void end_epoch();
  History take_history() { return std::move(history_); }

 private:
  optim::Optimizer& optimizer_;
  const FitOptions& options_;
  std::optional<ProgressBar> bar_;
  History history_;
  int64_t epoch_ = 0, in_epoch_ = 0;
  double sum_ = 0;  // of the losses of this epoch
  bool over_ = false;
};

template <typename T>
struct is_compiled : std::false_type {};
template <typename F>
struct is_compiled<Compiled<F>> : std::true_type {};

// The loss as it is called, with one signature for both ways.
template <typename Signature, typename F>
std::function<Signature> callable(const F& loss, bool compiled) {
  if constexpr (!is_compiled<F>::value)
    if (compiled) return compile(loss);
  return loss;
}

template <typename Batches>
int64_t count_of(const Batches& batches) {
  if constexpr (requires { batches.size(); })
    return static_cast<int64_t>(batches.size());
  else
    return 0;
}

template <typename Batches, typename LossOf>
void walk(Loop& loop, Batches& batches, const LossOf& loss_of) {
  for (const auto& batch : batches)
    if (!loop.step(loss_of(batch))) break;
  loop.end_epoch();
}

inline Tensor detached(const Tensor& state) { return state.detach(); }
inline std::vector<Tensor> detached(std::vector<Tensor> state) {
  for (Tensor& each : state) each = each.detach();
  return state;
}

}  // namespace detail

template <typename F, typename Batches>
History fit(const F& loss, optim::Optimizer& optimizer, Batches&& batches, const FitOptions& options = {}) {
  detail::Loop loop(optimizer, options, detail::count_of(batches));
  if constexpr (std::is_invocable_v<const F&, const Tensor&, const Tensor&>) {
    auto run = detail::callable<Tensor(const Tensor&, const Tensor&)>(loss, options.compile);
    while (!loop.is_over()) detail::walk(loop, batches, [&](const auto& each) { return run(each.data, each.target); });
  } else {
    auto run = detail::callable<Tensor(const Tensor&)>(loss, options.compile);
    while (!loop.is_over()) detail::walk(loop, batches, [&](const auto& each) { return run(each.data); });
  }
  return loop.take_history();
}

// `fit` for models that remember: the loss takes a state and gives a tuple of itself and the next state, which goes on
// into the next batch, without history. Each epoch begins with the state that is given: a tensor, or a list of them.
//
//   nn::RecurrentSequential model(nn::Embedding(128, 8), nn::GRU(8, 8, {.batch_first = true}), nn::Linear(8, 128));
//   Tensor text = data::Alphabet::ascii().encode("to be or not to be");
//   auto loss = [&](Tensor input, Tensor target, std::vector<Tensor> state) {
//     auto [scores, next] = model(input, state);
//     return std::tuple(cross_entropy(scores.flatten(0, 1), target.flatten()), next);
//   };
//   optim::Adam adam(model.parameters());
//   trainer::fit_with_state(loss, model.zero_state(2), adam, data::streams(text, 2, 4), {.epochs = 2});
template <typename F, typename State, typename Batches>
History fit_with_state(const F& loss, const State& initial, optim::Optimizer& optimizer, Batches&& batches,
                       const FitOptions& options = {}) {
  using Signature = std::tuple<Tensor, State>(const Tensor&, const Tensor&, const State&);
  detail::Loop loop(optimizer, options, detail::count_of(batches));
  auto run = detail::callable<Signature>(loss, options.compile);
  while (!loop.is_over()) {
    State state = initial;
    detail::walk(loop, batches, [&](const auto& each) {
      auto [value, next] = run(each.data, each.target, state);
      state = detail::detached(next);
      return value;
    });
  }
  return loop.take_history();
}

}  // namespace tenon::trainer
