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
  manual_seed(1);
  Mlp model;
  Tensor input = randn({64, 256});
  auto step = [&] {
    model.zero_grad();
    model(input).backward();
  };
  auto captured = [&] {
    compiled_autograd::Enable on;
    step();
  };
  auto [ours, eager] = time_against(captured, step);
  report.add({.name = "eager MLP, backward captured",
              .value = ours.median * 1e6,
              .unit = "us",
              .against = "eager backward",
              .ratio = paired_ratio(eager, ours),
              .judged = Judged::Ratio,
              .better = Better::Higher,
              .bar = 1.0});
}

}  // namespace tenon::bench
