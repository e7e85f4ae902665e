// Sums along any axis and transposes, compiled: against a copy of the same array, by bytes, and against eager.
#include <tenon/tenon.h>

#include "bench.h"

namespace tenon::bench {
namespace {

struct Loops {
  const char* name;
  std::function<Tensor(Tensor)> body;
  double moved;  // arrays that are read or written; a copy moves two
  double bar;    // of a copy's bandwidth
};

}  // namespace

BENCH(loops) {
  constexpr int64_t kSide = 4096;
  Tensor x = randn({kSide, kSide}), y = randn({kSide, kSide});
  const Loops all[] = {
      {"row_sum_4096", [](Tensor a) { return a.sum(-1); }, 1, 0.8},
      {"column_sum_4096", [](Tensor a) { return a.sum(0); }, 1, 0.8},
      {"full_sum_4096", [](Tensor a) { return a.sum(); }, 1, 0.8},
      {"row_max_4096", [](Tensor a) { return a.amax(-1); }, 1, 0.8},
      {"transpose_copy_4096", [](Tensor a) { return a.t().contiguous(); }, 2, 0.6},
  };
  for (const Loops& each : all) {
    auto compiled = compile([&](Tensor a) { return each.body(a); });
    // Arrays of their own: a last-level cache that holds one would serve whoever comes second.
    std::vector<Timing> timings =
        time_alternating({[&] { keep(compiled(x)); }, [&] { keep(y.clone()); }, [&] { keep(each.body(x)); }});
    const double bytes = each.moved * kSide * kSide * 4;
    report.add({.name = fmt::format("loops_{}", each.name),
                .value = bytes / timings[0].median / 1e9,
                .unit = "GB/s",
                .against = "copy, bytes a second",
                .ratio = paired_ratio(timings[1], timings[0]) * each.moved / 2,
                .judged = Judged::Ratio,
                .better = Better::Higher,
                .bar = each.bar});
    report.add({.name = fmt::format("loops_{}_time", each.name),
                .value = timings[0].median * 1e6,
                .unit = "us",
                .against = "eager",
                .ratio = paired_ratio(timings[0], timings[2]),
                .judged = Judged::Ratio,
                .bar = 1.1});
  }
}

}  // namespace tenon::bench
