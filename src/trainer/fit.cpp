#include <tenon/trainer/fit.h>

#include <tenon/autograd/engine.h>
#include <tenon/generated/ops.h>
#include <tenon/nn/utils.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tenon::trainer::detail {
namespace {

int64_t steps_of(const FitOptions& options, int64_t batches) {
  const int64_t all = options.epochs * batches;
  return options.max_steps > 0 && (batches == 0 || options.max_steps < all) ? options.max_steps : all;
}

}  // namespace

Loop::Loop(optim::Optimizer& optimizer, const FitOptions& options, int64_t batches)
    : optimizer_(optimizer), options_(options), over_(options.epochs == 0) {
  TENON_CHECK_VALUE(options.epochs >= 0 && options.max_steps >= 0 && options.log_every >= 0,
                    "[fit] expected epochs, max_steps and log_every that are not negative, got {}, {} and {}",
                    options.epochs, options.max_steps, options.log_every);
  TENON_CHECK_VALUE(options.clip_norm >= 0, "[fit] expected a clip_norm that is not negative, got {}",
                    options.clip_norm);
  if (!options.progress.empty()) bar_.emplace(options.progress, steps_of(options, batches));
}

bool Loop::step(const Tensor& loss) {
  TENON_CHECK(loss.defined() && bool(loss.numel() == 1) && loss.requires_grad(),
              "[fit] expected a loss of one number that depends on parameters, got {}{}; end it with .mean(), and give "
              "the optimizer parameters of the model that it calls",
              loss.defined() ? loss.description() : "an undefined tensor",
              loss.defined() && !loss.requires_grad() ? ", which requires no grad" : "");
  const auto number = static_cast<int64_t>(history_.losses.size());
  Step made{epoch_, number, loss.item<double>(), optimizer_.lr(), 0};
  TENON_CHECK(!options_.expect_finite || std::isfinite(made.loss),
              "[fit] the loss is {} at step {} (epoch {}), before the parameters were changed by it: a smaller lr, a "
              "warm-up or a clip_norm may help; `expect_finite` lets it go on",
              made.loss, number, epoch_);
  optimizer_.zero_grad();
  loss.backward();
  if (options_.clip_norm > 0)
    made.grad_norm = nn::clip_grad_norm_(optimizer_.parameters(), options_.clip_norm).item<double>();
  optimizer_.step();
  for (const SchedulerRef& scheduler : options_.schedulers) scheduler.step(made.loss);

  history_.losses.push_back(made.loss);
  sum_ += made.loss;
  ++in_epoch_;
  if (options_.log_every > 0 && number % options_.log_every == 0) {
    fmt::print("step {} loss {:.4f}\n", number, made.loss);
    std::fflush(stdout);
  }
  if (bar_) bar_->advance();
  if (options_.on_step) options_.on_step(made);
  over_ = options_.max_steps > 0 && number + 1 == options_.max_steps;
  return !over_;
}

void Loop::end_epoch() {
  TENON_CHECK_VALUE(in_epoch_ > 0,
                    "[fit] expected at least one batch in epoch {}, got none: a range that can be walked through once "
                    "only has no second epoch",
                    epoch_);
  Epoch ended{epoch_, in_epoch_, sum_ / static_cast<double>(in_epoch_)};
  history_.epoch_losses.push_back(ended.loss);
  for (const SchedulerRef& scheduler : options_.epoch_schedulers) scheduler.step(ended.loss);
  if (options_.on_epoch && options_.on_epoch(ended)) over_ = true;
  if (++epoch_ == options_.epochs) over_ = true;
  in_epoch_ = 0;
  sum_ = 0;
}

}  // namespace tenon::trainer::detail
