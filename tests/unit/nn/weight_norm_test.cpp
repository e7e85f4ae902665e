// Weights that are computed from others, by closed forms; eager and compiled.
#include <tenon/nn/modules.h>
#include <tenon/nn/weight_norm.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error_of.h"

namespace tenon::nn {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using Names = std::vector<std::string>;

Names names_of(const NamedTensors& list) {
  Names names;
  for (const auto& [name, tensor] : list) names.push_back(name);
  return names;
}

TEST(WeightNorm, LengthsAndDirections) {
  for (std::optional<int64_t> dim : {std::optional<int64_t>(0), std::optional<int64_t>(-1), std::optional<int64_t>()}) {
    Linear layer(3, 2);
    Tensor before = layer.weight.get().detach().clone(), x = randn({4, 3}), expected = layer(x);
    Linear same = weight_norm(layer, "weight", dim);
    EXPECT_EQ(names_of(layer.named_parameters()), (Names{"bias", "weight_g", "weight_v"}));
    EXPECT_TRUE(layer(x).allclose(expected, 1e-5, 1e-6));
    // d|w| / dg is the direction, and along it nothing else changes.
    layer(x).sum().backward();
    NamedTensors list = layer.named_parameters();
    Tensor g = list[1].second, v = list[2].second, of_weight = x.sum(0).expand({2, 3});
    Tensor along =
        of_weight * v / (dim ? v.square().sum(Ints{*dim == 0 ? 1 : 0}, true).sqrt() : v.square().sum().sqrt());
    Tensor slope = dim ? along.sum(Ints{*dim == 0 ? 1 : 0}, true) : along.sum();
    EXPECT_TRUE(g.grad().allclose(slope.detach().view_as(g), 1e-4, 1e-5));
    EXPECT_NEAR((v.grad() * v.detach()).sum().item<double>(), 0, 1e-4);
    {
      NoGrad off;
      g.mul_(2);
    }
    EXPECT_TRUE(same.weight.get().allclose(before * 2, 1e-5, 1e-6)) << "the copy is the same module";
    remove_weight_norm(layer);
    EXPECT_EQ(names_of(layer.named_parameters()), (Names{"bias", "weight"}));
    EXPECT_TRUE(layer.weight.get().allclose(before * 2, 1e-5, 1e-6));
    EXPECT_TRUE(layer.weight.get().is_leaf());
  }
}

TEST(WeightNorm, CompiledFollowsTheParameters) {
  Sequential model(weight_norm(Linear(3, 8)), ReLU(), weight_norm(Linear(8, 2), "weight", std::nullopt));
  auto f = compile([&](Tensor x) { return model(x).square().sum(); });
  optim::SGD sgd(model.parameters(), {.lr = 0.01});
  for (int step = 0; step < 3; ++step) {
    Tensor x = randn({4, 3}), expected = model(x).square().sum();
    Tensor loss = f(x);
    EXPECT_TRUE(loss.allclose(expected, 1e-4, 1e-5));
    sgd.zero_grad();
    loss.backward();
    sgd.step();
  }
  EXPECT_EQ(f.compile_count(), 1);
  EXPECT_EQ(names_of(model.named_parameters())[1], "0.weight_g");
}

TEST(WeightNorm, AClonesWeightsAreItsOwn) {
  Linear layer = weight_norm(Linear(3, 2)), copy = clone(layer);
  Tensor before = layer.weight.get().detach().clone();
  {
    NoGrad off;
    for (const Tensor& each : copy.parameters()) each.mul_(2);
  }
  EXPECT_TRUE(layer.weight.get().equal(before));
  EXPECT_TRUE(copy.weight.get().allclose(before * 2, 1e-5, 1e-6));
  EXPECT_TRUE(copy.load_state_dict(layer.state_dict()).missing.empty());
  EXPECT_TRUE(copy.weight.get().equal(before));
}

TEST(SpectralNorm, DividesByTheLargestSingularValue) {
  Linear layer(2, 2, {.bias = false});
  {
    NoGrad off;
    layer.weight.get().copy_(tensor({{3.f, 0.f}, {0.f, 1.f}}));
  }
  spectral_norm(layer);
  EXPECT_EQ(names_of(layer.named_parameters()), Names{"weight_orig"});
  EXPECT_EQ(names_of(layer.named_buffers()), (Names{"weight_u", "weight_v"}));
  Tensor expected = tensor({{1.f, 0.f}, {0.f, 1.f / 3}});
  EXPECT_TRUE(layer.weight.get().allclose(expected, 1e-4, 1e-5));
  // σ = uᵀ W v: its gradient is u vᵀ.
  layer.weight.get().sum().backward();
  Tensor gradient = layer.named_parameters()[0].second.grad();
  EXPECT_TRUE(gradient.allclose(tensor({{1.f / 3 - 4.f / 9, 1.f / 3}, {1.f / 3, 1.f / 3}}), 1e-3, 1e-4));
  remove_spectral_norm(layer);
  EXPECT_TRUE(layer.weight.get().allclose(expected, 1e-4, 1e-5));
}

TEST(SpectralNorm, RestsWhileItEvaluatesAndIteratesWhileItTrains) {
  manual_seed(1);
  Conv2d layer = spectral_norm(Conv2d(3, 4, 3), "weight", {.n_power_iterations = 2});
  Tensor kept = layer.named_buffers()[0].second;
  {
    NoGrad off;
    layer.named_parameters()[1].second.copy_(randn({4, 3, 3, 3}));
  }
  Tensor before = kept.clone(), x = randn({1, 3, 5, 5});
  layer.eval();
  (void)layer(x);
  EXPECT_TRUE(kept.equal(before));
  layer.train();
  Conv2d other = clone(layer);
  auto f = compile([&](Tensor input) { return other(input); });
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(f(x).allclose(layer(x), 1e-4, 1e-5)) << call;
  EXPECT_FALSE(kept.equal(before));
  EXPECT_TRUE(other.named_buffers()[0].second.allclose(kept, 1e-4, 1e-5));
}

TEST(WeightNorm, BadInput) {
  Linear layer(3, 2, {.bias = false});
  EXPECT_THAT(error_of([&] { weight_norm(layer, "scale"); }), HasSubstr("the Linear has no parameter 'scale'"));
  EXPECT_THAT(error_of([&] { weight_norm(layer, "weight", 2); }),
              HasSubstr("expected a dimension from -2 to 1, got 2"));
  EXPECT_THAT(error_of([&] { remove_weight_norm(layer); }), HasSubstr("'weight' of the Linear is not computed"));
  EXPECT_THAT(error_of([&] { spectral_norm(layer, "weight", {.n_power_iterations = 0}); }), HasSubstr("got 0"));
  weight_norm(layer);
  EXPECT_THAT(error_of([&] { weight_norm(layer); }), HasSubstr("has no parameter 'weight'"));
  EXPECT_THAT(error_of([&] { layer.weight.set(ones({2, 3})); }), HasSubstr("'weight' is computed from others"));
}

}  // namespace
}  // namespace tenon::nn
