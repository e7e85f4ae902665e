// Optimizers and schedulers in compiled functions: what they count, keep and change happens at every call.
#include "../aot/both_ways.h"

namespace tenon {
namespace {

using testing::error_of;
using testing::on_all_backends;

// Losses and parameters of a few steps of training; `compiled` compiles the step, or gives it back.
std::vector<Tensor> trained(auto&& compiled, auto make_optimizer) {
  manual_seed(5);
  nn::Sequential net(nn::Linear(4, 8), nn::Tanh(), nn::Linear(8, 1));
  auto optimizer = make_optimizer(net.parameters());
  optim::StepLR rate(*optimizer, 2, 0.5);
  auto step = compiled([&](Tensor x, Tensor y) {
    optimizer->zero_grad();
    Tensor loss = (net(x) - y).square().mean();
    loss.backward();
    nn::clip_grad_norm_(net.parameters(), 0.5);
    optimizer->step();
    rate.step();
    return loss;
  });
  std::vector<Tensor> seen;
  for (int64_t call = 0; call < 6; ++call) {
    Tensor x = randn({6 + call % 2, 4});
    seen.push_back(step(x, x.sum(1, true)).detach());
  }
  for (const Tensor& parameter : net.parameters()) seen.push_back(parameter.detach());
  seen.push_back(tensor(optimizer->lr()));
  return seen;
}

void learns_as_eager(auto make_optimizer) {
  std::vector<Tensor> expected = trained([](auto step) { return step; }, make_optimizer);
  EXPECT_LT(expected[5].item<double>(), expected[0].item<double>());
  on_all_backends([&](auto&& compiled) {
    std::vector<Tensor> got = trained(compiled, make_optimizer);
    for (size_t at = 0; at < got.size(); ++at) EXPECT_LT(testing::difference(got[at], expected[at]), 1e-5) << at;
  });
}

using Parameters = std::vector<Tensor>;

TEST(CompiledOptimizers, adamw) {
  learns_as_eager(
      [](Parameters list) { return std::make_unique<optim::AdamW>(list, optim::AdamWOptions{.lr = 0.05}); });
}
TEST(CompiledOptimizers, radam) {
  learns_as_eager(
      [](Parameters list) { return std::make_unique<optim::RAdam>(list, optim::RAdamOptions{.lr = 0.05}); });
}
TEST(CompiledOptimizers, sgd_with_momentum) {
  learns_as_eager([](Parameters list) {
    return std::make_unique<optim::SGD>(list, optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
  });
}

// It calls a function that sees the arguments of the compiled one.
TEST(CompiledOptimizers, lbfgs_takes_compiled_losses) {
  Tensor w = tensor({3.0, -2.0}, kFloat64).set_requires_grad();
  optim::LBFGS lbfgs({w}, {.lr = 0.5});
  auto step = [&](auto&& loss_of) {
    return lbfgs.step([&] {
      lbfgs.zero_grad();
      Tensor loss = loss_of(w);
      loss.backward();
      return loss;
    });
  };
  auto loss_of = [](Tensor at) { return (at - 1).square().sum(); };
  EXPECT_NE(error_of([&] {
              compile([&](Tensor x) { return step(loss_of) * x; })(ones({}));
            }).find("compile what computes the loss instead"),
            std::string::npos);
  auto compiled = compile(loss_of);
  double first = step(compiled).item<double>();
  EXPECT_LT(step(compiled).item<double>(), first);
}

TEST(CompiledOptimizers, a_few_graphs_for_many_parameters) {
  Parameters list;
  for (int at = 0; at < 100; ++at) list.push_back(full({3}, 0.1 * at).set_requires_grad());
  optim::Adam adam(list);
  auto step = compile([&](Tensor x) {
    adam.zero_grad();
    Tensor loss = zeros({});
    for (const Tensor& each : list) loss = loss + (each * x).sum();
    loss.backward();
    adam.step();
    return loss;
  });
  step(ones({3}));
  EXPECT_LE(step.explain().breaks.size(), 3u);
  int64_t compiles = step.compile_count();
  for (int call = 0; call < 3; ++call) step(ones({3}));
  EXPECT_EQ(step.compile_count(), compiles);
}

// A network and its optimizer that the function makes itself are part of what is captured.
TEST(CompiledOptimizers, a_network_and_its_optimizer_made_inside) {
  auto function = [](Tensor x) {
    manual_seed(7);
    nn::Linear net(3, 2);
    optim::SGD sgd(net.parameters(), {.lr = 0.5});
    for (int round = 0; round < 2; ++round) {
      sgd.zero_grad();
      net(x).square().sum().backward();
      sgd.step();
    }
    net.zero_grad();
    return net(x);
  };
  on_all_backends([&](auto&& compiled) {
    auto f = compiled(function);
    for (int64_t n : {4, 4, 5}) {
      Tensor x = randn({n, 3});
      Tensor expected = function(x).detach();
      EXPECT_LT(testing::difference(f(x).detach(), expected), 1e-4);
    }
  });
}

TEST(CompiledOptimizers, one_that_is_made_inside_is_gone_at_the_next_call) {
  Tensor w = ones({2}).set_requires_grad();
  auto step = compile([&](Tensor x) {
    optim::SGD sgd({w}, {.lr = 0.1});
    (w * x).sum().backward();
    sgd.step();
    return w * 2;
  });
  step(ones({2}));
  EXPECT_NE(error_of([&] { step(ones({2})); }).find("the object that did so when the function was captured is gone"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon
