// Backward walks: what the engine costs a node, what looking a captured walk up costs, and what capturing gives.
#include "bench.h"

#include <tenon/tenon.h>

namespace tenon::bench {
namespace {

constexpr int kNodes = 1000;

// A chain of nodes that pass their gradient on as it is: what is left is the engine. (A view's gradient is a view,
// which is a call of an operator.)
Tensor sums(const Tensor& leaf) {
  Tensor y = leaf;
  for (int at = 0; at < kNodes; ++at) y = y + 1;
  return y;
}

struct Mlp {
  nn::Linear first{256, 256}, second{256, 256}, third{256, 10};
  Tensor operator()(const Tensor& x) const { return third(second(first(x).relu()).relu()).square().mean(); }
  void zero_grad() const {
    for (const nn::Module& layer : {static_cast<const nn::Module&>(first), static_cast<const nn::Module&>(second),
                                    static_cast<const nn::Module&>(third)})
      layer.zero_grad();
  }
};

// Two convolutions beside a shortcut, which changes the size where they do.
nn::Sequential block(int64_t from, int64_t to, int64_t stride) {
  auto convolution = [](int64_t in, int64_t out, int64_t size, int64_t step) {
    return nn::Conv2d(in, out, size, {.stride = step, .padding = size / 2, .bias = false});
  };
  nn::Sequential body(convolution(from, to, 3, stride), nn::BatchNorm2d(to), nn::ReLU(), convolution(to, to, 3, 1),
                      nn::BatchNorm2d(to));
  if (from == to && stride == 1) return nn::Sequential(nn::Residual(body), nn::ReLU());
  return nn::Sequential(nn::Residual(body, nn::Sequential(convolution(from, to, 1, stride), nn::BatchNorm2d(to))),
                        nn::ReLU());
}

// For pictures of 32 by 32.
nn::Sequential resnet18(int64_t classes) {
  nn::Sequential layers(nn::Conv2d(3, 64, 3, {.padding = 1, .bias = false}), nn::BatchNorm2d(64), nn::ReLU());
  for (auto [from, to, stride] : {std::tuple{64, 64, 1},
                                  {64, 64, 1},
                                  {64, 128, 2},
                                  {128, 128, 1},
                                  {128, 256, 2},
                                  {256, 256, 1},
                                  {256, 512, 2},
                                  {512, 512, 1}})
    layers.push_back(block(from, to, stride));
  layers.push_back(nn::AdaptiveAvgPool2d(1));
  layers.push_back(nn::Flatten());
  layers.push_back(nn::Linear(512, classes));
  return layers;
}

// A step of a model that is not compiled: its backward captured, against node by node.
template <typename Model, typename Loss>
void add_step(Report& report, const char* name, const Model& model, const Loss& loss) {
  auto step = [&] {
    model.zero_grad();
    loss().backward();
  };
  auto captured = [&] {
    compiled_autograd::Enable on;
    step();
  };
  auto [ours, eager] = time_against(captured, step);
  report.add({.name = name,
              .value = ours.median * 1e6,
              .unit = "us",
              .against = "eager backward",
              .ratio = paired_ratio(eager, ours),
              .judged = Judged::Ratio,
              .better = Better::Higher,
              .bar = 1.0});
}

}  // namespace

BENCH(backward_walk) {
  Tensor leaf = ones({1}).set_requires_grad(), gradient = ones({1}), end = sums(leaf);
  Timing walk = time_rounds([&] { end.backward(gradient, true); });
  report.add({.name = "backward_walk_per_node", .value = walk.median * 1e9 / kNodes, .unit = "ns", .bar = 250});
  Tensor x = ones({1}), plain = ones({1});
  x.set_requires_grad();
  auto [recorded, unrecorded] = time_against([&] { keep(x.view({1})); }, [&] { keep(plain.view({1})); });
  report.add(
      {.name = "recording_a_call", .value = (recorded.median - unrecorded.median) * 1e9, .unit = "ns", .bar = 150});
}

BENCH(captured_walk) {
  Tensor leaf = ones({1}).set_requires_grad(), gradient = ones({1}), end = sums(leaf);
  {
    compiled_autograd::Enable on;
    Timing hit = time_rounds([&] { end.backward(gradient, true); });
    report.add({.name = "captured_walk_of_1000_nodes", .value = hit.median * 1e3, .unit = "ms", .bar = 0.1});
  }
}

BENCH(captured_backward) {
  manual_seed(1);
  Mlp mlp;
  Tensor input = randn({64, 256});
  add_step(report, "eager MLP, backward captured", mlp, [&] { return mlp(input); });
  constexpr int64_t kVocabulary = 256, kLength = 64;
  nn::GPT gpt(kVocabulary, 128, {.layers = 4, .heads = 4, .context = kLength, .dropout = 0});
  Tensor tokens = randint(kVocabulary, {4, kLength}), next = randint(kVocabulary, {4 * kLength});
  add_step(report, "eager GPT of 4 layers, backward captured", gpt,
           [&] { return cross_entropy_loss(gpt(tokens).view({-1, kVocabulary}), next); });
  nn::Sequential resnet = resnet18(10);
  Tensor pictures = randn({4, 3, 32, 32}), classes = randint(10, {4});
  add_step(report, "eager ResNet-18, backward captured", resnet,
           [&] { return cross_entropy_loss(resnet(pictures), classes); });
}

}  // namespace tenon::bench
