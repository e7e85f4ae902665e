#include <tenon/data/text.h>
#include <tenon/nn/generate.h>
#include <tenon/nn/recurrent_sequential.h>
#include <tenon/trainer/fit.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>

#include "error_of.h"
#include "values_of.h"

#include <tenon/tenon.h>

namespace tenon::testing {
namespace {

using data::Example;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using trainer::Epoch;
using trainer::fit;
using trainer::fit_with_state;
using trainer::FitOptions;
using trainer::History;
using trainer::Step;

// One weight w, the loss (w·x - y)².
struct Line {
  Tensor weight = tensor({1.0}, kFloat64).set_requires_grad();
  std::vector<Example> batches = {{tensor({1.0}, kFloat64), tensor({3.0}, kFloat64)},
                                  {tensor({2.0}, kFloat64), tensor({6.0}, kFloat64)}};
  auto loss() const {
    return [w = weight](Tensor x, Tensor y) { return square(w * x - y).sum(); };
  }
};

// What the loop must do, written out.
std::vector<double> by_hand(const Line& line, double lr, int64_t epochs, double clip_norm = 0) {
  optim::SGD sgd({line.weight}, {.lr = lr});
  std::vector<double> losses;
  for (int64_t epoch = 0; epoch < epochs; ++epoch)
    for (const Example& batch : line.batches) {
      Tensor value = line.loss()(batch.data, batch.target);
      sgd.zero_grad();
      value.backward();
      if (clip_norm > 0) nn::clip_grad_norm_({line.weight}, clip_norm);
      sgd.step();
      losses.push_back(value.item<double>());
    }
  return losses;
}

TEST(Fit, IsTheLoopWrittenOut) {
  for (bool compiled : {true, false})
    for (double clip_norm : {0.0, 1.5}) {
      Line hand, line;
      std::vector<double> expected = by_hand(hand, 0.05, 3, clip_norm);
      optim::SGD sgd({line.weight}, {.lr = 0.05});
      History history = fit(line.loss(), sgd, line.batches, {.epochs = 3, .clip_norm = clip_norm, .compile = compiled});
      EXPECT_THAT(history.losses, Pointwise(DoubleNear(1e-12), expected));
      EXPECT_NEAR(line.weight.item<double>(), hand.weight.item<double>(), 1e-12);
      ASSERT_EQ(history.epoch_losses.size(), 3u);
      EXPECT_NEAR(history.epoch_losses[1], (expected[2] + expected[3]) / 2, 1e-12);
    }
}

TEST(Fit, StepsAndEpochsAreShown) {
  Line line;
  optim::SGD sgd({line.weight}, {.lr = 0.05});
  std::vector<std::vector<double>> steps, epochs;
  FitOptions options{.epochs = 2, .clip_norm = 100};
  options.on_step = [&](const Step& step) {
    steps.push_back({double(step.epoch), double(step.step), step.loss, step.lr, step.grad_norm});
  };
  options.on_epoch = [&](const Epoch& epoch) {
    epochs.push_back({double(epoch.epoch), double(epoch.steps), epoch.loss});
    return false;
  };
  History history = fit(line.loss(), sgd, line.batches, options);
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_THAT(steps[0], ElementsAre(0, 0, 4, 0.05, DoubleNear(4, 1e-6)));  // 2·(1 - 3)
  EXPECT_THAT(steps[3], ElementsAre(1, 3, history.losses[3], 0.05, ::testing::_));
  EXPECT_THAT(epochs[1], ElementsAre(1, 2, history.epoch_losses[1]));
}

TEST(Fit, EndsWhereItIsToldTo) {
  Line line;
  optim::SGD sgd({line.weight}, {.lr = 0.01});
  EXPECT_EQ(fit(line.loss(), sgd, line.batches, {.epochs = 10, .max_steps = 5}).losses.size(), 5u);
  EXPECT_EQ(fit(line.loss(), sgd, line.batches, {.max_steps = 5}).losses.size(), 2u);
  EXPECT_EQ(fit(line.loss(), sgd, line.batches, {.epochs = 0}).losses.size(), 0u);
  FitOptions options{.epochs = 10, .on_epoch = [](const Epoch& epoch) { return epoch.epoch == 2; }};
  EXPECT_EQ(fit(line.loss(), sgd, line.batches, options).losses.size(), 6u);
}

TEST(Fit, SchedulersFollowStepsOrEpochs) {
  Line line;
  optim::SGD sgd({line.weight}, {.lr = 0.08});
  optim::ExponentialLR every_step(sgd, 0.5);
  std::vector<double> rates;
  FitOptions options{.schedulers = {every_step}, .on_step = [&](const Step& step) { rates.push_back(step.lr); }};
  fit(line.loss(), sgd, line.batches, options);
  EXPECT_THAT(rates, Pointwise(DoubleNear(1e-12), {0.08, 0.04}));
  rates.clear();
  optim::ExponentialLR every_epoch(sgd, 0.5);
  options.epochs = 2;
  options.schedulers.clear();
  options.epoch_schedulers = {every_epoch};
  fit(line.loss(), sgd, line.batches, options);
  EXPECT_THAT(rates, Pointwise(DoubleNear(1e-12), {0.02, 0.02, 0.01, 0.01}));
}

TEST(Fit, SchedulersOfEveryKind) {
  Line line;
  optim::SGD sgd({line.weight}, {.lr = 0.08});
  auto halves = std::make_shared<optim::ExponentialLR>(sgd, 0.5);
  optim::ChainedScheduler chained({halves});
  fit(line.loss(), sgd, line.batches, {.schedulers = {chained}});
  EXPECT_NEAR(sgd.lr(), 0.02, 1e-12);
  // One that asks for a measure is given the loss, of the step or the mean of the epoch.
  optim::ReduceLROnPlateau plateau(sgd, {.factor = 0.5, .patience = 0});
  std::vector<double> seen;
  struct Recorder {
    std::vector<double>& seen;
    void step(double loss) { seen.push_back(loss); }
  } recorder{seen};
  History history = fit(line.loss(), sgd, line.batches,
                        {.epochs = 2, .schedulers = {recorder}, .epoch_schedulers = {plateau, recorder}});
  const std::vector<double>& each = history.losses;
  EXPECT_EQ(seen, (std::vector<double>{each[0], each[1], history.epoch_losses[0], each[2], each[3],
                                       history.epoch_losses[1]}));
}

TEST(Fit, AnyRangeAndALossOfTheDataAlone) {
  Line line;
  optim::SGD sgd({line.weight}, {.lr = 0.05});
  std::list<Example> list(line.batches.begin(), line.batches.end());
  auto loss = [w = line.weight](Tensor x) { return square(w * x).sum(); };
  History history = fit(loss, sgd, list);
  EXPECT_EQ(history.losses[0], 1);
  EXPECT_EQ(history.losses.size(), 2u);
  data::DataLoader loader(std::make_shared<data::TensorDataset>(ones({6, 1}, kFloat64), ones({6, 1}, kFloat64)),
                          {.batch_size = 2});
  EXPECT_EQ(fit(line.loss(), sgd, loader, {.epochs = 2}).losses.size(), 6u);
}

TEST(Fit, ALossIsCompiledOnceAndNotTwice) {
  Line line;
  optim::SGD sgd({line.weight}, {.lr = 0.05});
  auto compiled = compile(line.loss());
  fit(compiled, sgd, line.batches, {.epochs = 5});
  EXPECT_EQ(compiled.compile_count(), 1);
  int64_t calls = 0;
  auto counted = [&](Tensor x, Tensor y) {
    ++calls;
    return line.loss()(x, y);
  };
  fit(counted, sgd, line.batches, {.epochs = 5});
  EXPECT_LT(calls, 10);  // captured, not called
  calls = 0;
  fit(counted, sgd, line.batches, {.epochs = 5, .compile = false});
  EXPECT_EQ(calls, 10);
}

TEST(Fit, TheLog) {
  Line line;
  optim::SGD sgd({line.weight}, {.lr = 0});
  ::testing::internal::CaptureStdout();
  fit(line.loss(), sgd, line.batches, {.epochs = 3, .log_every = 3});
  std::string log = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(log, "step 0 loss 4.0000\nstep 3 loss 16.0000\n");
}

// A running sum of what came before, as a state.
TEST(FitWithState, TheStateGoesOnAndBeginsAnewWithAnEpoch) {
  Tensor weight = tensor({1.0}, kFloat64).set_requires_grad();
  auto loss = [&](Tensor x, Tensor y, Tensor state) {
    Tensor next = weight * x + state;
    return std::tuple(square(next - y).sum(), next);
  };
  std::vector<Example> batches(3, {tensor({1.0}, kFloat64), tensor({0.0}, kFloat64)});
  for (bool compiled : {true, false}) {
    optim::SGD still({weight}, {.lr = 0});
    History history = fit_with_state(loss, zeros({1}, kFloat64), still, batches, {.epochs = 2, .compile = compiled});
    EXPECT_THAT(history.losses, ElementsAre(1, 4, 9, 1, 4, 9));
    // Without history: the gradient is that of the last batch, 2·3·1.
    EXPECT_THAT(values(weight.grad()), ElementsAre(6));
  }
}

TEST(FitWithState, ARecurrentModelLearnsAText) {
  std::string text;
  for (int copy = 0; copy < 20; ++copy) text += "abcd";
  data::Alphabet letters = data::Alphabet::of(text);
  manual_seed(0);
  nn::RecurrentSequential model(nn::Embedding(4, 6), nn::GRU(6, 8, {.batch_first = true}), nn::Linear(8, 4));
  auto loss = [&](Tensor input, Tensor target, std::vector<Tensor> state) {
    auto [scores, next] = model(input, state);
    return std::tuple(cross_entropy(scores.flatten(0, 1), target.flatten()), next);
  };
  optim::Adam adam(model.parameters(), {.lr = 0.05});
  History history = fit_with_state(loss, model.zero_state(2), adam, data::streams(letters.encode(text), 2, 5),
                                   {.epochs = 12, .clip_norm = 1});
  EXPECT_LT(history.epoch_losses.back(), 0.2);
  EXPECT_EQ(letters.decode(nn::generate(model, letters.encode("cd"), 8)), "cdabcdabcd");
}

TEST(Fit, Refusals) {
  Line line;
  optim::SGD sgd({line.weight}, {.lr = 0.05});
  EXPECT_EQ(error_of([&] { fit([&](Tensor x, Tensor) { return line.weight * x.expand({2}); }, sgd, line.batches); }),
            "[fit] expected a loss of one number that depends on parameters, got float64[2]; end it with .mean(), and "
            "give the optimizer parameters of the model that it calls");
  EXPECT_THAT(error_of([&] { fit([](Tensor x, Tensor y) { return (x - y).sum(); }, sgd, line.batches); }),
              HasSubstr("got float64[], which requires no grad"));
  double before = line.weight.item<double>();
  EXPECT_THAT(error_of([&] { fit([&](Tensor x, Tensor) { return log(-line.weight * x).sum(); }, sgd, line.batches); }),
              HasSubstr("[fit] the loss is nan at step 0 (epoch 0), before the parameters were changed by it"));
  EXPECT_EQ(line.weight.item<double>(), before);
  EXPECT_THAT(error_of([&] { fit(line.loss(), sgd, std::vector<Example>()); }),
              HasSubstr("[fit] expected at least one batch in epoch 0, got none"));
  EXPECT_EQ(error_of([&] { fit(line.loss(), sgd, line.batches, {.clip_norm = -1}); }),
            "[fit] expected a clip_norm that is not negative, got -1");
  EXPECT_EQ(error_of([&] { fit(line.loss(), sgd, line.batches, {.epochs = -1}); }),
            "[fit] expected epochs, max_steps and log_every that are not negative, got -1, 0 and 0");
}

TEST(Fit, LossesThatAreNotFiniteMayGoOn) {
  Line line;
  optim::SGD sgd({line.weight}, {.lr = 0.05});
  History history =
      fit([&](Tensor x, Tensor) { return log(-line.weight * x).sum(); }, sgd, line.batches, {.expect_finite = false});
  EXPECT_TRUE(std::isnan(history.losses[1]));
}

}  // namespace
}  // namespace tenon::testing
