// A step of Adam over the parameters of a GPT of 12 layers, against PyTorch's fused Adam.
#include "bench.h"
#include "peer.h"

#include <tenon/tenon.h>

namespace tenon::bench {
namespace {

// As bench/peer.py has them.
std::vector<Tensor> gpt_parameters() {
  constexpr int64_t kWidth = 384, kLetters = 5000, kPlaces = 256, kLayers = 12;
  std::vector<Ints> sizes = {{kLetters, kWidth}, {kPlaces, kWidth}, {kWidth}, {kWidth}};
  for (int64_t layer = 0; layer < kLayers; ++layer)
    for (const Ints& each : std::initializer_list<Ints>{{kWidth},
                                                        {kWidth},
                                                        {3 * kWidth, kWidth},
                                                        {3 * kWidth},
                                                        {kWidth, kWidth},
                                                        {kWidth},
                                                        {kWidth},
                                                        {kWidth},
                                                        {4 * kWidth, kWidth},
                                                        {4 * kWidth},
                                                        {kWidth, 4 * kWidth},
                                                        {kWidth}})
      sizes.push_back(each);
  std::vector<Tensor> parameters;
  for (const Ints& each : sizes) {
    parameters.push_back(randn(SymInts(each.span())).set_requires_grad());
    parameters.back().set_grad(randn(SymInts(each.span())));
  }
  return parameters;
}

BENCH(adam_step) {
  optim::Adam adam(gpt_parameters(), {.lr = 1e-4});
  adam.step();
  static Counter& launches = counter("kernels_launched");
  const int64_t before = launches.value();
  adam.step();
  const int64_t launched = launches.value() - before;
  Timing ours = time_rounds([&] { adam.step(); });
  Row row{.name = fmt::format("Adam step, GPT of 12 layers, {} launch(es)", launched),
          .value = ours.median * 1e3,
          .unit = "ms"};
  if (std::optional<double> peer = peer_figure("adam_step")) {
    row.against = "PyTorch, fused";
    row.ratio = *peer / ours.median;
    row.judged = Judged::Ratio;
    row.better = Better::Higher;
    row.bar = 1.0;
  }
  report.add(row);
}

}  // namespace
}  // namespace tenon::bench
