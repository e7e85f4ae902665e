// Compiled once, run with any size: against torch.compile(dynamic=True) where PyTorch is installed, in a process of its
// own.
#include <tenon/tenon.h>

#include <algorithm>

#include "bench.h"
#include "peer.h"

namespace tenon::bench {
namespace {

constexpr int kSizes = 40;

Tensor softmax_sum(const Tensor& x) { return softmax(x * 2, 1).sum(1); }

// A backend that gives the inputs back: what is measured is the capture.
Backend nothing_for_all() {
  return [](const graph::Graph&) -> GraphFunction {
    return [](std::span<const Tensor> given, std::span<const int64_t>) {
      std::vector<dispatch::Value> results;
      for (const Tensor& tensor : given) results.push_back(dispatch::Value(Tensor(tensor)));
      return results;
    };
  };
}

std::vector<Tensor> inputs() {
  std::vector<Tensor> list;
  for (int at = 0; at < kSizes; ++at) list.push_back(randn({64 + 8 * at, 128 + 16 * at}));
  return list;
}

}  // namespace

// First calls of all: compiling is part of it.
BENCH(forty_sizes) {
  std::vector<Tensor> list = inputs();
  auto f = compile(softmax_sum, {.dynamic = Dynamic::On});
  double start = now();
  for (const Tensor& x : list) keep(f(x));
  double total = now() - start;
  std::optional<double> torch = peer_figure("forty_sizes");
  report.add({.name = "forty_sizes_total",
              .value = total * 1e3,
              .unit = "ms",
              .against = torch ? "torch.compile" : "",
              .ratio = torch ? std::optional(total / *torch) : std::nullopt,
              .judged = torch ? Judged::Ratio : Judged::Value,
              .bar = torch ? std::optional(1.0) : std::nullopt});
  report.add(
      {.name = "forty_sizes_compiles", .value = static_cast<double>(f.compile_count()), .unit = "compiles", .bar = 1});
  // And once more, compiled: the kernels themselves.
  auto [compiled, eager] = time_against(
      [&] {
        for (const Tensor& x : list) keep(f(x));
      },
      [&] {
        for (const Tensor& x : list) keep(softmax_sum(x));
      },
      {.count = 7, .calls = 1});
  std::optional<double> warm = peer_figure("forty_sizes_warm");
  report.add({.name = "forty_sizes_warm",
              .value = compiled.median * 1e3,
              .unit = "ms",
              .against = warm ? "torch.compile" : "eager",
              .ratio = compiled.median / warm.value_or(eager.median),
              .judged = Judged::Ratio});
}

// The guards of a function that does nothing: all that is left of a call.
BENCH(guards) {
  auto pair = compile([](Tensor x, Tensor) { return x; });
  Tensor x = randn({4, 4}), y = randn({4, 4});
  auto plain = [](Tensor a, Tensor) { return a; };
  auto [guarded, bare] =
      time_against([&] { keep(pair(x, y)); }, [&] { keep(plain(x, y)); }, {.warm_up = 100, .count = 301});
  report.add({.name = "guards_two_tensors", .value = (guarded.median - bare.median) * 1e9, .unit = "ns", .bar = 150});

  // 200 cells, read alone, with one input written, and all of them written: from the call to the moment when the graph
  // would begin to run; it throws there, so that guards meet the caches as guards left them. Who shares memory with
  // whom is guarded only where something is written.
  struct Wide : nn::Module {
    std::vector<Cell<Tensor>> weights;
    Wide() {
      for (int at = 0; at < 200; ++at) weights.push_back(buffer(fmt::format("w{}", at), randn({4})));
    }
  } wide;
  struct Reached {
    double at;
  };
  Backend stamping = [](const graph::Graph&) -> GraphFunction {
    return
        [](std::span<const Tensor>, std::span<const int64_t>) -> std::vector<dispatch::Value> { throw Reached{now()}; };
  };
  auto cells = [&](const char* name, auto body, double bar) {
    auto module = compile(body, {.backend = stamping});
    std::vector<double> times;
    for (int round = 0; round < 401; ++round) {
      double start = now();
      try {
        keep(module(x));
      } catch (const Reached& reached) {
        if (round >= 100) times.push_back(reached.at - start);
      }
    }
    std::nth_element(times.begin(), times.begin() + 150, times.end());
    report.add({.name = name, .value = times[150] * 1e6, .unit = "us", .bar = bar});
  };
  auto read = [&](Tensor input) {
    for (const Cell<Tensor>& weight : wide.weights) (void)weight.get();
    return input + 1;
  };
  auto write_one = [&](Tensor input) {
    for (const Cell<Tensor>& weight : wide.weights) (void)weight.get();
    return input.add_(1);
  };
  auto write_all = [&](Tensor input) {
    for (const Cell<Tensor>& weight : wide.weights) weight.get().add_(1);
    return input;
  };
  cells("guards_200_cells", read, 3);
  cells("guards_200_cells_one_written", write_one, 4);
  cells("guards_200_cells_all_written", write_all, 6);
}

// Capture alone: the backend returns its first input.
BENCH(capture) {
  std::vector<nn::Linear> layers;
  for (int at = 0; at < 20; ++at) layers.emplace_back(16, 16);
  auto body = [&](Tensor x) {
    for (const nn::Linear& layer : layers) x = relu(layer(x));
    return x;
  };
  Tensor x = randn({8, 16});
  Timing timing = time_rounds([&] { compile(body, {.backend = nothing_for_all()})(x); }, {.count = 9, .calls = 1});
  report.add({.name = "capture_20_layer_mlp", .value = timing.median * 1e3, .unit = "ms", .bar = 10});

  // 200 sizes, 10,000 operators, and a decision about two sizes every ten of them.
  std::vector<Tensor> tensors;
  for (int64_t at = 0; at < 200; ++at) tensors.push_back(randn({at + 2}));
  auto many = [](std::vector<Tensor> list) {
    for (size_t at = 0; at < 10000; ++at) {
      Tensor& each = list[at % list.size()];
      each = at % 3 == 0 ? each.slice(0, 0, each.size(0)) : at % 3 == 1 ? each + 1 : each * each;
      if (at % 10 == 0 && bool(each.size(0) * 2 < list[(at + 7) % list.size()].size(0) + 3)) each = -each;
    }
    return list;
  };
  Timing large = time_rounds([&] { compile(many, {.dynamic = Dynamic::On, .backend = nothing_for_all()})(tensors); },
                             {.warm_up = 1, .count = 3, .calls = 1});
  report.add({.name = "capture_10000_operators_200_sizes", .value = large.median, .unit = "s", .bar = 2});
}

}  // namespace tenon::bench
