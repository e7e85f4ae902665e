// What a call costs beyond its kernel: through the dispatcher's tables, and through `custom_op` with all its checks.
#include <tenon/dispatch/library.h>
#include <tenon/library/custom_op.h>
#include <tenon/tenon.h>

#include "bench.h"

namespace tenon::bench {
namespace {

// A kernel that does next to nothing.
int64_t rank_of(const Tensor& x) { return x.dim(); }

// What a call costs beyond the same thing done bare.
void add_overhead(Report& report, const char* name, const Timing& called, const Timing& bare, const char* against,
                  double bar) {
  report.add({.name = name,
              .value = (called.median - bare.median) * 1e9,
              .unit = "ns",
              .against = against,
              .ratio = called.median / bare.median,
              .judged = Judged::Value,
              .better = Better::Lower,
              .bar = bar});
}

BENCH(dispatch_boxed_call) {
  dispatch::Library lib("bench_calls");
  dispatch::Operator& op = lib.def("rank(Tensor x) -> int");
  dispatch::KernelFunction kernel = [](dispatch::Call& call) {
    call.results.push_back(dispatch::Value(rank_of(call.args[0].tensor())));
  };
  lib.impl("rank", kernel, "CPU");
  lib.impl(
      "rank", [](dispatch::Call& call) { call.results.push_back(dispatch::Value(rank_of(call.args[0].tensor()))); },
      "Autograd");
  Tensor x = ones({2});
  auto [called, bare] = time_against(
      [&] {
        const dispatch::Value args[] = {dispatch::Value(x)};
        keep(dispatch::call_boxed(op, args));
      },
      [&] {
        const dispatch::Value args[] = {dispatch::Value(x)};
        dispatch::Call call{op, {}, args, {}};
        kernel(call);
        keep(call.results);
      });
  add_overhead(report, "boxed call over its kernel", called, bare, "the kernel alone", 60);
}

BENCH(custom_op_call) {
  auto copy = [](const Tensor& x, double) { return core::allocate(x.sizes(), x.strides(), x.dtype(), x.device()); };
  auto op = library::custom_op("bench_calls::copy", copy, {.names = "x, y"});
  Tensor x = ones({2});
  auto [called, bare] = time_against([&] { keep(op(x, 1.0)); }, [&] { keep(copy(x, 1.0)); });
  add_overhead(report, "custom_op call over its function", called, bare, "the function alone", 250);
}

BENCH(registration) {
  Timing timing = time_rounds([&] {
    dispatch::Library lib("bench_calls");
    lib.def("again(Tensor x) -> int");
    lib.impl("again", [](const Tensor& x) { return x.dim(); }, "CPU");
  });
  report.add({.name = "define, implement, remove", .value = timing.median * 1e6, .unit = "us"});
}

}  // namespace
}  // namespace tenon::bench
