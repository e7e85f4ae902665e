// Trains a small classifier twice, eager and compiled, from the same weights on the same data, and prints what
// compiling gave and what it cost.
#include <fmt/format.h>
#include <tenon/codegen/compile.h>
#include <tenon/codegen/object_cache.h>

#include <cmath>
#include <cstdio>
#include <string_view>

#include "artefacts.h"
#include "training.h"

namespace {

using namespace tenon;
using namespace demo;

constexpr const char* kHelp = R"(usage: demo [--output FOLDER]

Trains a classifier (64 features, 128 hidden units, 10 classes) on data that it generates, once eagerly and once
through tenon::compile(), and prints a table: losses, kernels launched, time per step, compile times, recompiles, the
cost of a guarded call. Leaves the graphs, the guards and every kernel as text in FOLDER (default: demo_files beside
the program). The last line is for programs: "demo: name=value …".
)";

struct CompileTimes {
  double cold_ms, warm_ms;
};

// First call and first backward: with nothing compiled before, and with all kernels in the object cache on disk.
CompileTimes measure_compiling(const nn::Sequential& model, const Batch& batch) {
  auto once = [&] {
    codegen::forget_loaded_kernels();
    auto step = compile([&](Tensor features, Tensor labels) { return cross_entropy(model(features), labels); });
    double start = milliseconds_now();
    step(batch.features, batch.labels).backward();
    return milliseconds_now() - start;
  };
  double cold = once();
  return {cold, median({once(), once(), once()})};
}

struct GuardedCall {
  double compiled_us, eager_us;
};

GuardedCall measure_guarded_call() {
  auto body = [](Tensor x, Tensor y) { return (x.sin() + y).relu(); };
  auto compiled = compile(body);
  Tensor x = tensor({1.0f, -2.0f, 3.0f, -4.0f}), y = tensor({0.5f, 0.5f, 0.5f, 0.5f});
  auto microseconds = [&](const auto& function) {
    constexpr int kCalls = 2000;
    std::vector<double> rounds;
    for (int round = 0; round < 7; ++round) {
      double start = milliseconds_now();
      for (int i = 0; i < kCalls; ++i) function(x, y);
      rounds.push_back((milliseconds_now() - start) * 1e3 / kCalls);
    }
    return median(rounds);
  };
  return {microseconds(compiled), microseconds(body)};
}

// The batch sizes of the issue that this shows: the second is new, the third and fourth fit what it made.
Explanation vary_batch(const nn::Sequential& model, int64_t* compiles) {
  auto step = compile([&](Tensor features, Tensor labels) { return cross_entropy(model(features), labels); });
  for (int64_t size : {32, 48, 80, 32}) {
    Batch batch = make_batch(size, static_cast<uint32_t>(size));
    step(batch.features, batch.labels).backward();
  }
  *compiles = step.compile_count();
  return step.explain();
}

double relative_difference(double a, double b) { return std::fabs(a - b) / std::max(std::fabs(a), 1e-30); }

template <typename Eager, typename Compiled>
void row(std::string_view what, const Eager& eager, const Compiled& compiled) {
  fmt::print("  {:<44} {:>12} {:>12}\n", what, eager, compiled);
}

std::string digits(double value) { return fmt::format("{:.6f}", value); }
std::string milliseconds(double value) { return fmt::format("{:.3f}", value); }

int run(const std::filesystem::path& folder) {
  Artefacts artefacts(folder);
  codegen::set_cache_folder(artefacts.object_cache().string());
  std::vector<Batch> batches;
  for (int step = 0; step < kSteps; ++step) batches.push_back(make_batch(kBatch, static_cast<uint32_t>(step)));

  CompileTimes compiling = measure_compiling(make_model(), batches[0]);

  auto eager_model = make_model(), compiled_model = make_model();
  Training eager = train(
      "eager", eager_model, [&](const Tensor& x, const Tensor& y) { return cross_entropy(eager_model(x), y); },
      batches);
  auto step = compile([&](Tensor x, Tensor y) { return cross_entropy(compiled_model(x), y); });
  Training compiled = train("compiled", compiled_model, step, batches);

  double worst = 0;
  for (size_t at = 0; at < batches.size(); ++at)
    worst = std::max(worst, relative_difference(eager.losses[at], compiled.losses[at]));
  GuardedCall call = measure_guarded_call();
  int64_t compiles = 0;
  Explanation explanation;
  artefacts.write_kernels([&] { explanation = vary_batch(make_model(), &compiles); });
  artefacts.write_graphs(explanation);

  fmt::print(
      "Training a classifier: {} features, {} hidden units, {} classes, batches of {}, {} threads, {}-bit vectors\n\n",
      kFeatures, kHidden, kClasses, kBatch, num_threads(), codegen::isa_bits());
  row("", "eager", "compiled");
  for (size_t at : {size_t{0}, size_t{50}, size_t{100}})
    row(fmt::format("loss at step {}", at), digits(eager.losses[at]), digits(compiled.losses[at]));
  row("kernels launched per step (no optimizer)", eager.kernels_launched, compiled.kernels_launched);
  row("library calls per step (matrix products)", eager.library_calls, compiled.library_calls);
  row("milliseconds per step", milliseconds(eager.milliseconds), milliseconds(compiled.milliseconds));
  row("µs per call of relu(sin(x) + y), four floats", milliseconds(call.eager_us), milliseconds(call.compiled_us));
  fmt::print("\n");
  fmt::print("  {:<44} {:>12.2g}\n", "largest relative difference of the losses", worst);
  fmt::print("  {:<44} {:>9.1f} ms\n", "compile time, cold", compiling.cold_ms);
  fmt::print("  {:<44} {:>9.1f} ms\n", "compile time, kernels in the object cache", compiling.warm_ms);
  fmt::print("  {:<44} {:>12}\n", "compiles for batches of 32, 48, 80, 32", compiles);
  for (const std::string& reason : explanation.recompiles) fmt::print("    compiled again: {}\n", reason);
  std::string place = artefacts.folder().string();
  fmt::print(
      "\nWhat the compiler made: {0}\n"
      "  cat {0}/graph_0/captured.txt      the function as recorded; joint, forward, backward and guards beside it\n"
      "  cat {0}/kernels/*.kernel          every generated kernel; *.ll is its LLVM IR, *.s its assembly\n"
      "  TENON_LOGS=graph,guards,kernels   in the environment shows the same of any program, as it happens\n\n",
      place);
  fmt::print(
      "demo: max_rel_diff={:.3g} compiles={} launches_eager={} launches_compiled={} cold_ms={:.1f} warm_ms={:.1f}\n",
      worst, compiles, eager.kernels_launched, compiled.kernels_launched, compiling.cold_ms, compiling.warm_ms);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::filesystem::path folder = default_folder();
    for (int i = 1; i < argc; ++i) {
      std::string_view argument = argv[i];
      if (argument == "--help" || argument == "-h") {
        fmt::print("{}", kHelp);
        return 0;
      }
      if (argument != "--output" || i + 1 >= argc) {
        fmt::print(stderr, "[demo] {}\n",
                   argument == "--output" ? "expected a folder after --output"
                                          : fmt::format("unknown argument '{}': see --help", argument));
        return 2;
      }
      folder = argv[++i];
    }
    return run(folder);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
