// The time to compile long chains, per operator: it must not grow with the chain. Six kinds of operators, nothing
// cached; the time of the processor, which other programs on the machine disturb less than the clock on the wall.
#include <tenon/tenon.h>

#include <fmt/format.h>

#include <ctime>
#include <functional>

#include "bench.h"
#include "workspace.h"

namespace tenon::bench {
namespace {

struct Kind {
  const char* name;
  int operators;  // of one step
  bool dynamic;
  std::function<Tensor(const Tensor&)> step;
  int64_t rows = 4;  // of the input
};

const Kind kKinds[] = {
    {"cheap", 1, false, [](const Tensor& x) { return x + 0.5; }},
    {"transcendental", 1, false, [](const Tensor& x) { return x.sin(); }},
    {"views", 1, false, [](const Tensor& x) { return x.narrow(0, 1, x.size(0) - 1); }, 100'001},
    {"reductions", 2, false, [](const Tensor& x) { return x - x.sum(1, true); }},
    {"products", 1, false, [](const Tensor& x) { return mm(x, x); }},
    {"symbolic_sizes", 1, true, [](const Tensor& x) { return x + x.size(0); }},
};

struct Measured {
  double processor = 0, wall = 0;  // seconds
};

Measured compile_chain(const Kind& kind, int operators) {
  Workspace workspace;
  workspace.use_fresh_cache();
  CompileOptions options{.fullgraph = true};
  options.dynamic = kind.dynamic ? Dynamic::On : Dynamic::Off;
  auto chain = compile(
      [&kind, steps = operators / kind.operators](Tensor x) {
        for (int at = 0; at < steps; ++at) x = kind.step(x);
        return x;
      },
      options);
  Tensor x = full({kind.rows, 4}, 0.01);
  const double start = now();
  const std::clock_t processor = std::clock();
  keep(chain(x));
  return {static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC, now() - start};
}

}  // namespace

BENCH(long_programs) {
  for (const Kind& kind : kKinds) {
    compile_chain(kind, 100);  // what is made once for the process
    double at_thousand = 0;
    for (int operators : {1'000, 100, 10'000, 100'000}) {
      const Measured took = compile_chain(kind, operators);
      const double each = took.processor / operators;
      if (operators == 1'000) at_thousand = each;
      Row row{.name = fmt::format("long_programs_{}_{}", kind.name, operators), .value = each * 1e6, .unit = "µs/op"};
      if (operators != 1'000) {
        row.against = "the same of 1,000";
        row.ratio = each / at_thousand;
      }
      if (operators > 1'000) {
        row.judged = Judged::Ratio;
        row.bar = 2;
      }
      report.add(std::move(row));
      if (operators == 10'000 && kind.name == std::string_view("cheap"))
        report.add({.name = "long_programs_cheap_10000_seconds", .value = took.wall, .unit = "s", .bar = 2});
    }
  }
}

}  // namespace tenon::bench
