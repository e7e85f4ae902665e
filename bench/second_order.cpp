// Second derivatives: a Hessian-vector product through a compiled function, against eager's.
#include "bench.h"

#include <tenon/tenon.h>

namespace tenon::bench {
namespace {

// The product of the Hessian of the mean energy with `direction`: the gradient of (gradient · direction).
template <typename F>
Tensor hessian_vector(F& energy, const Tensor& x, const Tensor& weight, const Tensor& direction) {
  Tensor slope = autograd::grad({energy(x, weight)}, {x}, {}, true, true)[0];
  return autograd::grad({(slope * direction).sum()}, {x})[0];
}

BENCH(second_order) {
  auto energy = [](Tensor x, Tensor weight) {
    Tensor hidden = tanh(mm(x, weight));
    return (softmax(hidden * x, -1) * sin(x) + hidden.square()).mean();
  };
  auto compiled = compile(energy);
  manual_seed(1);
  Tensor x = randn({256, 256}).set_requires_grad(), weight = randn({256, 256}) * 0.1, direction = randn({256, 256});
  auto [ours, eager] = time_against([&] { keep(hessian_vector(compiled, x, weight, direction)); },
                                    [&] { keep(hessian_vector(energy, x, weight, direction)); });
  report.add({.name = "hessian-vector product, 256x256",
              .value = ours.median * 1e3,
              .unit = "ms",
              .against = "eager",
              .ratio = paired_ratio(eager, ours),
              .judged = Judged::Ratio,
              .better = Better::Higher,
              .bar = 1.0});
}

}  // namespace
}  // namespace tenon::bench
