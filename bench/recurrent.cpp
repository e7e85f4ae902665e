// Recurrent layers as loops of one operator (`scan`), against eager's loop. The length changes from call to call: one
// compile for all.
#include "bench.h"

#include <tenon/tenon.h>

namespace tenon::bench {
namespace {

struct Layer {
  int64_t size, batch, steps;
};

BENCH(recurrent) {
  for (const auto& [size, batch, steps] : {Layer{64, 8, 50}, Layer{256, 32, 64}, Layer{512, 1, 100}}) {
    manual_seed(1);
    nn::LSTM layer(size, size);
    auto run = [&](const Tensor& x) { return std::get<0>(layer(x)); };
    auto compiled = compile(run);
    auto train = [&](auto& function, const Tensor& x) {
      function(x).square().mean().backward();
      for (const Tensor& parameter : layer.parameters()) parameter.set_grad(Tensor());
    };
    Tensor x = randn({steps, batch, size});
    for (int64_t length : {steps / 2, steps}) train(compiled, randn({length, batch, size}));
    auto add = [&](const char* what, const Timing& ours, const Timing& eager) {
      report.add({.name = fmt::format("LSTM {}x{}, {} steps, {}", batch, size, steps, what),
                  .value = ours.median * 1e3,
                  .unit = "ms",
                  .against = "eager",
                  .ratio = paired_ratio(eager, ours),
                  .judged = Judged::Ratio,
                  .better = Better::Higher,
                  .bar = 1.0});
    };
    {
      NoGrad off;
      (void)compiled(x);
      auto [ours, eager] = time_against([&] { keep(compiled(x)); }, [&] { keep(run(x)); });
      add("inference", ours, eager);
    }
    auto [ours, eager] = time_against([&] { train(compiled, x); }, [&] { train(run, x); });
    add("training step", ours, eager);
  }
}

}  // namespace
}  // namespace tenon::bench
