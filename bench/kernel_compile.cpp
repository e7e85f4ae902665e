// The time from one kernel to its entry point, nothing cached: over the kernels of the demo's training step and of a
// few other functions.
#include <tenon/tenon.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "../demo/training.h"
#include "bench.h"
#include "workspace.h"

namespace tenon::bench {
namespace {

struct Inputs {
  nn::Sequential model = demo::make_model();
  demo::Batch batch = demo::make_batch(demo::kBatch, 0);
  Tensor x = randn({64, 96}), y = randn({64, 96}), row = randn({96});
};

void run_functions(const Inputs& inputs) {
  const auto& [model, batch, x, y, row] = inputs;
  compile([model = model](Tensor features, Tensor labels) { return cross_entropy(model(features), labels); })(
      batch.features, batch.labels)
      .backward();
  compile([](Tensor a, Tensor b) { return (a.sin() + b).relu(); })(x, y);
  compile([](Tensor a, Tensor w, Tensor b, Tensor r) { return tanh(a * w + b) + r; })(x, row, row, y);
  compile([](Tensor a) { return softmax(a, 1); })(x);
  compile([](Tensor a) { return a.sum(0); })(x);
  compile([](Tensor a) { return a.transpose(0, 1).exp().contiguous(); })(x);
}

std::vector<loop::Kernel> kernels_of(const std::filesystem::path& folder, const Inputs& inputs) {
  setenv("TENON_DEBUG_DIR", folder.c_str(), 1);
  run_functions(inputs);
  unsetenv("TENON_DEBUG_DIR");
  std::vector<loop::Kernel> kernels;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".kernel") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    kernels.push_back(loop::parse(text.str()));
  }
  return kernels;
}

}  // namespace

BENCH(kernel_compile) {
  Workspace workspace;
  Inputs inputs;  // made before: their kernels are not among those measured
  workspace.use_fresh_cache();
  std::vector<loop::Kernel> kernels = kernels_of(workspace.folder() / "kernels", inputs);
  codegen::set_cache_folder("");
  std::vector<double> seconds;
  for (const loop::Kernel& kernel : kernels) {
    std::string text = loop::to_string(kernel);
    // The best of several: the work is the same each time, and a disturbance only adds.
    double best = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 15; ++round) {
      codegen::forget_loaded_kernels();
      loop::Kernel again = loop::parse(text);
      double start = now();
      codegen::compile(std::move(again));
      best = std::min(best, now() - start);
    }
    seconds.push_back(best);
  }
  TENON_CHECK(!seconds.empty(), "[bench] no kernel was generated");
  report.add({.name = "kernel_compile_median", .value = demo::median(seconds) * 1e3, .unit = "ms", .bar = 8});
  report.add({.name = "kernel_compile_slowest",
              .value = *std::max_element(seconds.begin(), seconds.end()) * 1e3,
              .unit = "ms"});
}

}  // namespace tenon::bench
