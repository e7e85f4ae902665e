// Convolution, batch norm, flatten, L1 loss and LSTM layers: values by hand, parameters as PyTorch names them.
#include "unit/autograd/helpers.h"

#include <tenon/capture/compile.h>
#include <tenon/core/random.h>
#include <tenon/nn/modules.h>
#include <tenon/nn/recurrent.h>

#include <cmath>

namespace tenon::testing {
namespace {

std::vector<std::string> names(const nn::NamedTensors& tensors) {
  std::vector<std::string> list;
  for (const auto& [name, tensor] : tensors) list.push_back(name);
  return list;
}

double far(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.description(), b.description());
  return (a - b).abs().amax().item<double>();
}

TEST(Layers, Conv2dSumsWindows) {
  nn::Conv2d layer(1, 1, 2, {.dtype = kFloat64});
  EXPECT_EQ(names(layer.named_parameters()), (std::vector<std::string>{"weight", "bias"}));
  layer.weight = leaf({1, 2, 3, 4}, {1, 1, 2, 2});
  layer.bias = leaf({10});
  Tensor image = leaf({1, 2, 3, 4, 5, 6}, {1, 1, 2, 3});
  Tensor result = layer(image);
  EXPECT_EQ(values(result), (std::vector<double>{10 + 1 + 4 + 12 + 20, 10 + 2 + 6 + 15 + 24}));
  result.sum().backward();
  EXPECT_EQ(values(image.grad()), (std::vector<double>{1, 3, 2, 3, 7, 4}));
  EXPECT_EQ(values(layer.weight.get().grad()), (std::vector<double>{3, 5, 9, 11}));
  EXPECT_EQ(values(layer.bias.get().grad()), (std::vector<double>{2}));
}

TEST(Layers, Conv2dKeepsTheSizeWithSamePadding) {
  for (nn::Pair kernel : {nn::Pair(3), nn::Pair(2, 4)}) {
    nn::Conv2d layer(2, 3, kernel, {.dilation = 2, .bias = false, .same_padding = true});
    EXPECT_EQ(layer(ones({1, 2, 7, 8})).description(), "float32[1, 3, 7, 8]");
    EXPECT_EQ(layer(ones({2, 7, 8})).description(), "float32[3, 7, 8]");
    EXPECT_EQ(layer.parameters().size(), 1u);
  }
  EXPECT_EQ(error_of([] { nn::Conv2d(3, 4, 1, {.groups = 2}); }),
            "[Conv2d] expected channels that 2 groups divide, got 3 in and 4 out");
  EXPECT_EQ(error_of([] { nn::Conv2d(3, 3, 1, {.stride = 2, .same_padding = true}); }),
            "[Conv2d] expected a stride of 1 with same_padding, got 2 by 2");
}

// Of any order: a second derivative of what the rule gives, against differences of the first.
TEST(Layers, Conv2dIsDifferentiableTwice) {
  Tensor weight = randn({4, 2, 3, 2}, kFloat64).set_requires_grad();
  Tensor image = randn({2, 4, 6, 5}, kFloat64).set_requires_grad(), along = randn({2, 4, 6, 5}, kFloat64);
  auto slope = [&](const Tensor& at, bool create_graph) {
    Tensor result = conv2d(at, weight, std::nullopt, {2, 1}, {1, 0}, {1, 2}, 2);
    return autograd::grad({(result * result * result).sum()}, {at}, {}, false, create_graph)[0];
  };
  Tensor twice = autograd::grad({(slope(image, true) * along).sum()}, {image})[0];
  double step = 1e-5;
  Tensor ahead = (image.detach() + along * step).set_requires_grad();
  Tensor behind = (image.detach() - along * step).set_requires_grad();
  EXPECT_LT(far(twice, (slope(ahead, false) - slope(behind, false)) / (2 * step)), 1e-5);
}

TEST(Layers, BatchNormNormalisesAndTracks) {
  nn::BatchNorm2d layer(2, {.eps = 0, .momentum = 0.25, .dtype = kFloat64});
  EXPECT_EQ(names(layer.named_parameters()), (std::vector<std::string>{"weight", "bias"}));
  EXPECT_EQ(names(layer.named_buffers()),
            (std::vector<std::string>{"running_mean", "running_var", "num_batches_tracked"}));
  layer.weight = leaf({1, 3});
  layer.bias = leaf({0, 10});
  // Channel means 2 and 5, deviations 1 and 2.
  Tensor x = leaf({1, 3, 3, 7}, {1, 2, 1, 2});
  EXPECT_EQ(values(layer(x)), (std::vector<double>{-1, 1, 7, 13}));
  EXPECT_EQ(values(layer.running_mean.get()), (std::vector<double>{0.5, 1.25}));
  EXPECT_EQ(values(layer.running_var.get()), (std::vector<double>{0.75 + 0.25 * 2, 0.75 + 0.25 * 8}));
  EXPECT_EQ(layer.num_batches_tracked.get().item<int64_t>(), 1);
  layer.eval();
  std::vector<double> found = values(layer(x));
  EXPECT_NEAR(found[0], (1 - 0.5) / std::sqrt(1.25), 1e-12);
  EXPECT_NEAR(found[3], (7 - 1.25) / std::sqrt(2.75) * 3 + 10, 1e-12);
  EXPECT_EQ(layer.num_batches_tracked.get().item<int64_t>(), 1);
  EXPECT_EQ(error_of([&] { layer.train(), layer(ones({1, 2, 1, 1}, kFloat64)); }),
            "[batch_norm] expected more than 1 value per channel when training, got float64[1, 2, 1, 1]");
}

TEST(Layers, BatchNormGradientsAreThoseOfItsParts) {
  auto by_parts = [](const Tensor& x, const Tensor& weight, const Tensor& bias) {
    Tensor apart = x - mean(x, {0, 2, 3}, true);
    Tensor unit = apart * rsqrt(mean(apart * apart, {0, 2, 3}, true) + 1e-5);
    return unit * weight.view({1, 3, 1, 1}) + bias.view({1, 3, 1, 1});
  };
  Tensor x = randn({2, 3, 4, 2}, kFloat64).set_requires_grad(), along = randn({2, 3, 4, 2}, kFloat64);
  Tensor weight = randn({3}, kFloat64).set_requires_grad(), bias = randn({3}, kFloat64).set_requires_grad();
  auto whole = [&](const Tensor& input) {
    return batch_norm(input, Tensor(), Tensor(), {.weight = weight, .bias = bias, .training = true});
  };
  auto gradients = [&](const Tensor& result) {
    return autograd::grad({(result * result * along).sum()}, {x, weight, bias}, {}, false, true);
  };
  std::vector<Tensor> expected = gradients(by_parts(x, weight, bias)), found = gradients(whole(x));
  for (size_t at = 0; at < 3; ++at) EXPECT_LT(far(found[at].detach(), expected[at].detach()), 1e-9);
  auto second = [&](const Tensor& first) { return autograd::grad({(first * first).sum()}, {x})[0]; };
  EXPECT_LT(far(second(found[0]), second(expected[0])), 1e-8);
  auto compiled = compile([&](Tensor input) { return whole(input); });
  found = {autograd::grad({(compiled(x) * along).sum()}, {x})[0]};
  expected = {autograd::grad({(by_parts(x, weight, bias) * along).sum()}, {x})[0]};
  EXPECT_LT(far(found[0], expected[0]), 1e-9);
}

TEST(Layers, ACompiledBatchNormTracksToo) {
  for (const char* backend : {"eager", "aot_eager", "inductor"}) {
    nn::BatchNorm2d layer(3), twin(3);
    auto f = compile([&](Tensor x) { return layer(x); }, {.backend = backend});
    for (int call = 0; call < 3; ++call) {
      Tensor x = randn({4, 3, 2, 2});
      EXPECT_LT(far(f(x).detach(), twin(x).detach()), 1e-5) << backend;
    }
    for (size_t at = 0; at < 2; ++at)
      EXPECT_LT(far(layer.named_buffers()[at].second, twin.named_buffers()[at].second), 1e-6) << backend;
    EXPECT_EQ(layer.num_batches_tracked.get().item<int64_t>(), 3) << backend;
    EXPECT_EQ(f.compile_count(), 1) << backend;
  }
}

TEST(Layers, FlattenAndL1Loss) {
  EXPECT_EQ(nn::Flatten()(ones({2, 3, 4})).description(), "float32[2, 12]");
  EXPECT_EQ(nn::Flatten(0, 1)(ones({2, 3, 4})).description(), "float32[6, 4]");
  Tensor a = real({1, 2, 6}), b = real({2, 2, 2});
  EXPECT_EQ(values(nn::L1Loss(Reduction::None)(a, b)), (std::vector<double>{1, 0, 4}));
  EXPECT_EQ(values(nn::L1Loss(Reduction::Sum)(a, b))[0], 5);
  EXPECT_NEAR(values(nn::L1Loss()(a, b))[0], 5.0 / 3, 1e-12);
}

TEST(Layers, LSTMGatesByHand) {
  nn::LSTM layer(1, 1, {.dtype = kFloat64});
  EXPECT_EQ(names(layer.named_parameters()),
            (std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"}));
  std::vector<Tensor> parameters = layer.parameters();
  {
    NoGrad off;
    parameters[0].copy_(real({0.1, 0.2, 0.3, 0.4}, {4, 1}));
    parameters[1].copy_(real({0.5, -0.6, 0.7, -0.8}, {4, 1}));
    parameters[2].copy_(real({0.01, 0.02, 0.03, 0.04}));
    parameters[3].copy_(real({0.0, 0.1, -0.1, 0.2}));
  }
  auto sigmoid_of = [](double x) { return 1 / (1 + std::exp(-x)); };
  double h = 0, c = 0;
  std::vector<double> expected;
  for (double x : {1.0, -2.0, 0.5}) {
    double input = sigmoid_of(0.1 * x + 0.5 * h + 0.01), forget = sigmoid_of(0.2 * x - 0.6 * h + 0.12);
    double cell = std::tanh(0.3 * x + 0.7 * h - 0.07), output = sigmoid_of(0.4 * x - 0.8 * h + 0.24);
    c = forget * c + input * cell;
    h = output * std::tanh(c);
    expected.push_back(h);
  }
  auto [sequence, state] = layer(real({1, -2, 0.5}, {3, 1, 1}));
  std::vector<double> found = values(sequence);
  ASSERT_EQ(found.size(), 3u);
  for (size_t at = 0; at < 3; ++at) EXPECT_NEAR(found[at], expected[at], 1e-12);
  EXPECT_NEAR(values(state.h)[0], h, 1e-12);
  EXPECT_NEAR(values(state.c)[0], c, 1e-12);
  // The rest of a sequence goes on from a state.
  auto [first, between] = layer(real({1, -2}, {2, 1}));
  auto [last, end] = layer(real({0.5}, {1, 1}), between);
  EXPECT_EQ(first.description(), "float64[2, 1]");
  EXPECT_NEAR(values(end.c)[0], c, 1e-12);
  EXPECT_NEAR(values(last)[0], h, 1e-12);
}

TEST(Layers, LSTMLayersAndDirections) {
  nn::LSTM layer(3, 4, {.num_layers = 2, .batch_first = true, .bidirectional = true, .dtype = kFloat64});
  std::vector<std::string> all = names(layer.named_parameters());
  ASSERT_EQ(all.size(), 16u);
  EXPECT_EQ(all[4], "weight_ih_l0_reverse");
  EXPECT_EQ(layer.named_parameters()[8].second.description(), "float64[16, 8]") << all[8];
  Tensor x = randn({2, 5, 3}, kFloat64);
  auto [sequence, state] = layer(x);
  EXPECT_EQ(sequence.description(), "float64[2, 5, 8]");
  EXPECT_EQ(state.h.description(), "float64[4, 2, 4]");
  // The forward half of the last step, and the backward half of the first, are the last layer's states.
  EXPECT_EQ(far(sequence.select(1, 4).slice(1, 0, 4), state.h[2]), 0);
  EXPECT_EQ(far(sequence.select(1, 0).slice(1, 4, 8), state.h[3]), 0);
  EXPECT_EQ(error_of([&] { layer(randn({2, 5, 4}, kFloat64)); }),
            "[LSTM] expected a sequence of 3 features and 2 or 3 dimensions, got float64[2, 5, 4]");
}

}  // namespace
}  // namespace tenon::testing
