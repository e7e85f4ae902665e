// Fused kernels on arrays beyond the caches of one core, against the machine's bandwidth and against eager.
#include <tenon/tenon.h>

#include <algorithm>

#include "bench.h"
#include "triad.h"

namespace tenon::bench {

BENCH(fused_chain) {
  constexpr int64_t kSide = 4096;
  Tensor x = randn({kSide, kSide}), r = randn({kSide, kSide}), w = randn({kSide}), b = randn({kSide});
  auto chain =
      compile([](Tensor a, Tensor scale, Tensor shift, Tensor rest) { return tanh(a * scale + shift) + rest; });
  // Each has arrays of its own: a last-level cache that holds one set would serve whoever comes second.
  Triad triad(kSide * kSide), streaming_triad(kSide * kSide);
  std::vector<Timing> timings = time_alternating(
      {[&] { keep(chain(x, w, b, r)); }, [&] { triad.run_plain(); }, [&] { streaming_triad.run_streaming(); }},
      {.count = 121});
  const Timing& triad_timing = timings[1].median < timings[2].median ? timings[1] : timings[2];
  // Both move the same bytes: two arrays in, one out.
  report.add({.name = "fused_chain_bandwidth",
              .value = triad.bytes() / timings[0].median / 1e9,
              .unit = "GB/s",
              .against = "triad, better stores",
              .ratio = paired_ratio(triad_timing, timings[0]),
              .judged = Judged::Ratio,
              .better = Better::Higher,
              .bar = 0.9});
}

namespace {

template <typename Body>
void against_eager(Report& report, const char* name, const Tensor& x, const Body& body) {
  auto compiled = compile(body);
  auto [fused, eager] = time_against([&] { keep(compiled(x)); }, [&] { keep(body(x)); });
  report.add({.name = name,
              .value = fused.median * 1e6,
              .unit = "us",
              .against = "eager",
              .ratio = fused.median / eager.median,
              .judged = Judged::Ratio});
}

}  // namespace

BENCH(fused_rows) {
  Tensor x = randn({2048, 1024});
  against_eager(report, "fused_softmax_2048x1024", x, [](Tensor a) { return softmax(a, 1); });
  against_eager(report, "fused_layer_norm_2048x1024", x, [](Tensor a) {
    Tensor centred = a - a.mean(Ints{1}, true);
    return centred / sqrt((centred * centred).mean(Ints{1}, true) + 1e-5);
  });
}

}  // namespace tenon::bench
