// The demo's training step: what compiling it costs, and what it gives.
#include <tenon/tenon.h>

#include "../demo/training.h"
#include "bench.h"
#include "workspace.h"

namespace tenon::bench {
namespace {

auto make_step(const nn::Sequential& model) {
  return compile([model](Tensor features, Tensor labels) { return cross_entropy(model(features), labels); });
}

double first_call_and_backward(const nn::Sequential& model, const demo::Batch& batch) {
  auto step = make_step(model);
  double start = now();
  step(batch.features, batch.labels).backward();
  return now() - start;
}

double median_of(std::vector<double> seconds) { return demo::median(std::move(seconds)); }

}  // namespace

BENCH(compile_training_step) {
  Workspace workspace;
  nn::Sequential model = demo::make_model();
  demo::Batch batch = demo::make_batch(demo::kBatch, 0);
  std::vector<double> cold, warm;
  for (int round = 0; round < 5; ++round) {
    workspace.use_fresh_cache();
    cold.push_back(first_call_and_backward(model, batch));
    codegen::forget_loaded_kernels();
    warm.push_back(first_call_and_backward(model, batch));
  }
  report.add({.name = "compile_training_step_cold", .value = median_of(cold) * 1e3, .unit = "ms", .bar = 250});
  report.add({.name = "compile_training_step_warm", .value = median_of(warm) * 1e3, .unit = "ms", .bar = 40});
}

BENCH(training_step) {
  auto run = [](const auto& loss, optim::SGD& sgd, const demo::Batch& batch) {
    sgd.zero_grad();
    loss(batch.features, batch.labels).backward();
    sgd.step();
  };
  nn::Sequential eager_model = demo::make_model(), compiled_model = demo::make_model();
  optim::SGD eager_sgd(eager_model.parameters(), {.lr = 0.1}), compiled_sgd(compiled_model.parameters(), {.lr = 0.1});
  auto step = make_step(compiled_model);
  for (int64_t size : {32, 512}) {
    demo::Batch batch = demo::make_batch(size, 0);
    auto [compiled, eager] = time_against(
        [&] { run(step, compiled_sgd, batch); },
        [&] {
          run([&](const Tensor& x, const Tensor& y) { return cross_entropy(eager_model(x), y); }, eager_sgd, batch);
        });
    report.add({.name = fmt::format("training_step_batch_{}", size),
                .value = compiled.median * 1e6,
                .unit = "us",
                .against = "eager",
                .ratio = compiled.median / eager.median,
                .judged = Judged::Ratio});
  }
}

}  // namespace tenon::bench
