// What a call of a compiled function costs beside its kernel: guards, memory for the result, the plan.
#include <tenon/codegen/compile.h>
#include <tenon/schedule/schedule.h>
#include <tenon/tenon.h>

#include "bench.h"

namespace tenon::bench {

BENCH(guarded_call) {
  auto body = [](Tensor x, Tensor y) { return (x.sin() + y).relu(); };
  Tensor x = tensor({1.0f, -2.0f, 3.0f, -4.0f}), y = tensor({0.5f, 0.5f, 0.5f, 0.5f});
  auto compiled = compile(body);
  // The same graph once more, for the pointer to its kernel.
  std::shared_ptr<const runtime::Plan> plan;
  compile(body, {.backend = [&](const graph::Graph& graph) -> GraphFunction {
            plan = schedule::compile_graph(graph);
            return [plan](std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
              return runtime::run(*plan, inputs, symbols);
            };
          }})(x, y);
  TENON_CHECK(plan->kernels.size() == 1, "[bench] expected one fused kernel, got {}", plan->kernels.size());
  Tensor out = empty_like(x), expected = compiled(x, y);
  // Buffers in the order in which the plan's launch passes them.
  const runtime::LaunchStep* launch = nullptr;
  for (const runtime::Step& step : plan->steps)
    if (const auto* found = std::get_if<runtime::LaunchStep>(&step)) launch = found;
  std::vector<void*> buffers;
  for (runtime::Slot slot : launch->buffers)
    buffers.push_back(slot == 0 ? x.raw_data() : slot == 1 ? y.raw_data() : out.raw_data());
  TENON_CHECK(launch->integers.empty() && launch->scalars.empty(), "[bench] expected a kernel without parameters");
  load::EntryPoint entry = plan->kernels[0]->entry;
  int64_t extent = loop::parallel_extent(codegen::compiled_from(*plan->kernels[0])->kernel, {});
  auto through_pointer = [&] {
    int64_t failed = -1;
    entry(buffers.data(), nullptr, nullptr, 0, extent, &failed);
    keep(failed);
  };
  through_pointer();
  for (int i = 0; i < 4; ++i)
    TENON_CHECK(out.data<float>()[i] == expected.data<float>()[i], "[bench] the kernel and the call differ");
  std::vector<Timing> timings = time_alternating(
      {[&] { keep(compiled(x, y)); }, through_pointer, [&] { keep(body(x, y)); }}, {.warm_up = 100, .count = 31});
  report.add({.name = "guarded_call_beyond_kernel",
              .value = (timings[0].median - timings[1].median) * 1e6,
              .unit = "us",
              .against = "three eager calls",
              .ratio = timings[0].median / timings[2].median,
              .bar = 2});
}

}  // namespace tenon::bench
