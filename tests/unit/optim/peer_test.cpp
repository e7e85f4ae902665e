// Ten steps of every optimizer, and the rates of every scheduler, against PyTorch's
// (tools/reference/peer_optimizers.py).
#include <tenon/io/numpy.h>
#include <tenon/optim/adam.h>
#include <tenon/optim/adaptive.h>
#include <tenon/optim/lbfgs.h>
#include <tenon/optim/schedulers.h>
#include <tenon/optim/sgd.h>
#include <tenon/support/counters.h>

#include <gmock/gmock.h>

#include <map>

#include "making.h"
#include "unit/autograd/helpers.h"

namespace tenon::testing {
namespace {

using namespace optim;
using ::testing::HasSubstr;

const std::map<std::string, Tensor>& table() {
  static const auto* loaded = [] {
    io::NamedTensors tensors = io::load_npz(std::string(TENON_SOURCE_DIR) + "/tests/data/optimizers.npz");
    return new std::map<std::string, Tensor>(tensors.begin(), tensors.end());
  }();
  return *loaded;
}

struct Problem {
  Tensor w = leaf({-0.6, -0.35, -0.1, 0.15, 0.4, 0.65}, {2, 3}), b = leaf({0.3, -0.2, 0.1});
  std::vector<Tensor> parameters() const { return {w, b}; }
  Tensor loss() const { return (w * w * (sin(w) + 2)).sum() + square(w[0] + b).sum() + cos(w[1] * b).sum(); }
  void backward() const {
    w.set_grad(Tensor());
    b.set_grad(Tensor());
    loss().backward();
  }
};

std::map<std::string, Make> optimizers() {
  using Adam_ = AdamOptions;
  return {
      {"SGD", making<SGD>(SGDOptions{.lr = 0.05})},
      {"SGD momentum", making<SGD>(SGDOptions{.lr = 0.05, .momentum = 0.9, .weight_decay = 0.1, .dampening = 0.3})},
      {"SGD nesterov", making<SGD>(SGDOptions{.lr = 0.05, .momentum = 0.9, .nesterov = true, .maximize = true})},
      {"Adam", making<Adam>(Adam_{.lr = 0.05})},
      {"Adam decay", making<Adam>(Adam_{.lr = 0.05, .betas = {0.8, 0.95}, .eps = 1e-3, .weight_decay = 0.1})},
      {"Adam amsgrad", making<Adam>(Adam_{.lr = 0.05, .amsgrad = true, .maximize = true})},
      {"AdamW", making<AdamW>(AdamWOptions{.lr = 0.05})},
      {"AdamW amsgrad", making<AdamW>(AdamWOptions{.lr = 0.05, .weight_decay = 0.3, .amsgrad = true})},
      {"RMSprop", making<RMSprop>(RMSpropOptions{.lr = 0.05})},
      {"RMSprop centered", making<RMSprop>(RMSpropOptions{
                               .lr = 0.05, .alpha = 0.9, .weight_decay = 0.1, .momentum = 0.8, .centered = true})},
      {"Adagrad", making<Adagrad>(AdagradOptions{.lr = 0.05})},
      {"Adagrad decay", making<Adagrad>(AdagradOptions{
                            .lr = 0.05, .lr_decay = 0.1, .weight_decay = 0.1, .initial_accumulator_value = 0.5})},
      {"Adadelta", making<Adadelta>(AdadeltaOptions{})},
      {"Adadelta rho", making<Adadelta>(AdadeltaOptions{.lr = 0.5, .rho = 0.7, .eps = 1e-3, .weight_decay = 0.1})},
      {"Adamax", making<Adamax>(AdamaxOptions{.lr = 0.05})},
      {"Adamax decay", making<Adamax>(AdamaxOptions{.lr = 0.05, .betas = {0.8, 0.95}, .weight_decay = 0.1})},
      {"NAdam", making<NAdam>(NAdamOptions{.lr = 0.05})},
      {"NAdam decay", making<NAdam>(NAdamOptions{
                          .lr = 0.05, .weight_decay = 0.1, .momentum_decay = 0.1, .decoupled_weight_decay = true})},
      {"RAdam", making<RAdam>(RAdamOptions{.lr = 0.05})},
      {"RAdam decay", making<RAdam>(RAdamOptions{
                          .lr = 0.05, .betas = {0.8, 0.7}, .weight_decay = 0.1, .decoupled_weight_decay = true})},
  };
}

void expect_peer(const Problem& problem, const std::string& name, int step) {
  // PyTorch keeps the product of NAdam's momenta in float32.
  double tolerance = name.starts_with("NAdam") ? 1e-7 : 1e-10;
  expect_near(problem.w, values(table().at(fmt::format("{}/{}/w", name, step))), tolerance);
  expect_near(problem.b, values(table().at(fmt::format("{}/{}/b", name, step))), tolerance);
}

TEST(Optimizers, TenStepsArePyTorchs) {
  for (const auto& [name, make] : optimizers()) {
    SCOPED_TRACE(name);
    Problem problem;
    auto optimizer = make(problem.parameters());
    for (int step = 0; step < 10; ++step) {
      problem.backward();
      optimizer->step();
      expect_peer(problem, name, step);
    }
  }
}

TEST(Optimizers, AStateThatIsSavedGoesOn) {
  for (const auto& [name, make] : optimizers()) {
    SCOPED_TRACE(name);
    Problem problem;
    auto first = make(problem.parameters());
    for (int step = 0; step < 4; ++step) {
      problem.backward();
      first->step();
    }
    io::NamedTensors state = first->state_dict();
    first.reset();
    auto second = make(problem.parameters());
    second->set_lr(7);
    second->load_state_dict(state);
    for (int step = 4; step < 10; ++step) {
      problem.backward();
      second->step();
      expect_peer(problem, name, step);
    }
  }
}

TEST(Optimizers, LBFGSIsPyTorchs) {
  Problem problem;
  LBFGS lbfgs(problem.parameters(), {.lr = 0.5, .max_iter = 4, .history_size = 3});
  for (int step = 0; step < 10; ++step) {
    lbfgs.step([&] {
      problem.backward();
      return problem.loss();
    });
    expect_near(problem.w, values(table().at(fmt::format("LBFGS/{}/w", step))), 1e-9);
    expect_near(problem.b, values(table().at(fmt::format("LBFGS/{}/b", step))), 1e-9);
  }
}

TEST(Optimizers, LBFGSWithLineSearchSolvesRosenbrock) {
  Tensor x = leaf({-1.5, 2.0});
  LBFGS lbfgs({x}, {.max_iter = 100, .tolerance_change = 1e-15, .line_search = LineSearch::StrongWolfe});
  auto loss = [&] { return square(1 - x[0]) + 100 * square(x[1] - square(x[0])); };
  lbfgs.step([&] {
    lbfgs.zero_grad();
    Tensor value = loss();
    value.backward();
    return value;
  });
  expect_near(x, {1, 1}, 1e-6);
  EXPECT_EQ(error_of<TypeError>([&] { static_cast<Optimizer&>(lbfgs).step(); }),
            "[LBFGS] expected a function that computes the loss: step(evaluate)");
}

TEST(Optimizers, LionByHand) {
  Tensor p = leaf({1.0, -2.0});
  Lion lion({p}, {.lr = 0.1, .weight_decay = 0.5});
  double at[] = {1, -2}, mean[] = {0, 0};
  for (int step = 0; step < 5; ++step) {
    lion.zero_grad();
    (p * p * p).sum().backward();
    lion.step();
    for (int i = 0; i < 2; ++i) {
      double g = 3 * at[i] * at[i], direction = 0.9 * mean[i] + 0.1 * g;
      at[i] = at[i] * (1 - 0.1 * 0.5) - 0.1 * (direction > 0 ? 1 : -1);
      mean[i] = 0.99 * mean[i] + 0.01 * g;
    }
    expect_near(p, {at[0], at[1]});
  }
}

TEST(Optimizers, GroupsHaveOptionsOfTheirOwn) {
  Problem problem;
  SGD sgd({problem.w}, {.lr = 0.5});
  sgd.add_group({problem.b}, {.lr = 0.25});
  problem.backward();
  std::vector<double> w = values(problem.w - problem.w.grad() * 0.5), b = values(problem.b - problem.b.grad() * 0.25);
  sgd.step();
  expect_near(problem.w, w);
  expect_near(problem.b, b);
  EXPECT_EQ(sgd.groups(), 2u);
  EXPECT_EQ(sgd.parameters().size(), 2u);
  sgd.set_lr(1, 0.125);
  EXPECT_EQ(sgd.lr(0), 0.5);
  EXPECT_EQ(sgd.lr(1), 0.125);
  EXPECT_THAT(error_of([&] { sgd.add_group({problem.w}, {}); }), HasSubstr("parameters 0 and 2 are the same tensor"));
}

TEST(Optimizers, AChangedLearningRateCompilesNothing) {
  for (const auto& [name, make] : optimizers()) {
    SCOPED_TRACE(name);
    Problem problem;
    auto optimizer = make(problem.parameters());
    auto step = [&](double lr) {
      optimizer->set_lr(lr);
      problem.backward();
      optimizer->step();
    };
    // Ten steps: some begin to use what they gathered only later.
    for (int at = 0; at < 10; ++at) step(0.01);
    auto kernels = [] { return counter("kernels_generated").value() + counter("kernels_from_cache").value(); };
    int64_t before = kernels();
    for (double lr : {0.02, 0.5, 1e-5}) step(lr);
    EXPECT_EQ(kernels(), before);
  }
}

TEST(Optimizers, StatesOfOthersAreRefused) {
  Problem problem;
  Adam adam(problem.parameters());
  problem.backward();
  adam.step();
  SGD sgd(problem.parameters());
  EXPECT_THAT(
      error_of<ValueError>([&] { sgd.load_state_dict(adam.state_dict()); }),
      HasSubstr("[SGD] expected the state of 1 groups with 2 parameters of the same kind of optimizer, missing: "
                "groups.0.momentum"));
  Adam smaller({problem.b});
  EXPECT_THAT(error_of<ValueError>([&] { smaller.load_state_dict(adam.state_dict()); }),
              HasSubstr("expected 'state.0.exp_avg' of the size of its parameter float64[3], got float64[2, 3]"));
  EXPECT_EQ(error_of<ValueError>([&] { Adam bad({problem.b}, {.betas = {1.0, 0.9}}); }),
            "[Adam] expected betas from 0 to below 1, got 1 and 0.9");
  EXPECT_EQ(error_of<ValueError>([&] { RMSprop bad({problem.b}, {.eps = -1}); }),
            "[RMSprop] expected eps to be at least 0, got -1");
}

using MakeScheduler = std::function<std::function<void(double)>(Optimizer&)>;

template <typename S, typename... Args>
MakeScheduler scheduling(Args... args) {
  return [=](Optimizer& optimizer) {
    auto scheduler = std::make_shared<S>(optimizer, args...);
    return [scheduler](double) { scheduler->step(); };
  };
}

std::map<std::string, MakeScheduler> schedulers() {
  return {
      {"StepLR", scheduling<StepLR>(3, 0.5)},
      {"MultiStepLR", scheduling<MultiStepLR>(std::vector<int64_t>{2, 5, 5}, 0.5)},
      {"ExponentialLR", scheduling<ExponentialLR>(0.9)},
      {"CosineAnnealingLR", scheduling<CosineAnnealingLR>(6, 0.01)},
      {"CosineAnnealingWarmRestarts", scheduling<CosineAnnealingWarmRestarts>(3, 2, 0.01)},
      {"LinearLR", scheduling<LinearLR>(0.2, 0.9, 6)},
      {"ConstantLR", scheduling<ConstantLR>(0.5, 4)},
      {"PolynomialLR", scheduling<PolynomialLR>(8, 2.0)},
      {"LambdaLR", scheduling<LambdaLR>([](int64_t step) { return 1 / static_cast<double>(step + 1); })},
      {"MultiplicativeLR", scheduling<MultiplicativeLR>([](int64_t) { return 0.8; })},
      {"OneCycleLR", scheduling<OneCycleLR>(OneCycleOptions{.max_lr = 0.5, .total_steps = 20})},
      {"OneCycleLR linear",
       scheduling<OneCycleLR>(
           OneCycleOptions{.max_lr = 0.5, .total_steps = 20, .pct_start = 0.4, .linear = true, .three_phase = true})},
      {"SequentialLR",
       [](Optimizer& o) {
         std::vector<std::shared_ptr<Scheduler>> both = {std::make_shared<LinearLR>(o, 0.2, 1.0, 4),
                                                         std::make_shared<CosineAnnealingLR>(o, 10)};
         auto all = std::make_shared<SequentialLR>(o, both, std::vector<int64_t>{4});
         return [all](double) { all->step(); };
       }},
      {"ChainedScheduler",
       [](Optimizer& o) {
         std::vector<std::shared_ptr<Scheduler>> both = {std::make_shared<LinearLR>(o, 0.2, 1.0, 4),
                                                         std::make_shared<ExponentialLR>(o, 0.9)};
         auto all = std::make_shared<ChainedScheduler>(both);
         return [all](double) { all->step(); };
       }},
      {"ReduceLROnPlateau",
       [](Optimizer& o) {
         auto plateau =
             std::make_shared<ReduceLROnPlateau>(o, PlateauOptions{.factor = 0.5, .patience = 1, .cooldown = 1});
         return [plateau](double measure) { plateau->step(measure); };
       }},
  };
}

TEST(Schedulers, RatesArePyTorchs) {
  const double measures[] = {1.0, 0.9, 0.9, 0.91, 0.92, 0.95, 0.95, 0.5, 0.5, 0.5,
                             0.5, 0.5, 0.5, 0.4,  0.5,  0.5,  0.5,  0.5, 0.5};
  for (const auto& [name, make] : schedulers()) {
    SCOPED_TRACE(name);
    SGD sgd({leaf({0})}, {.lr = 0.1, .momentum = 0.9});
    auto step = make(sgd);
    std::vector<double> rates = values(table().at(name + "/lr")), momenta = values(table().at(name + "/momentum"));
    ASSERT_EQ(rates.size(), std::size(measures));
    for (size_t at = 0; at < rates.size(); ++at) {
      EXPECT_NEAR(sgd.lr(), rates[at], 1e-14) << "step " << at;
      EXPECT_NEAR(sgd.momentum(0), momenta[at], 1e-14) << "step " << at;
      step(measures[at]);
    }
  }
}

TEST(Schedulers, GoOnFromWhereTheyWere) {
  SGD sgd({leaf({0})}, {.lr = 0.1});
  CosineAnnealingLR cosine(sgd, 10);
  for (int step = 0; step < 4; ++step) cosine.step();
  io::NamedTensors state = cosine.state_dict();
  SGD other({leaf({0})}, {.lr = sgd.lr()});
  CosineAnnealingLR resumed(other, 10);
  resumed.load_state_dict(state);
  for (int step = 0; step < 4; ++step) {
    cosine.step();
    resumed.step();
    EXPECT_DOUBLE_EQ(other.lr(), sgd.lr());
  }
  EXPECT_EQ(resumed.steps(), 8);
}

}  // namespace
}  // namespace tenon::testing
