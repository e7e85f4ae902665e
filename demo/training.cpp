#include "training.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>

namespace demo {

using namespace tenon;

Batch make_batch(int64_t size, uint32_t seed) {
  static const std::vector<float> centres = [] {
    std::mt19937 generator(1);
    std::normal_distribution<float> normal;
    std::vector<float> values(kClasses * kFeatures);
    for (float& value : values) value = normal(generator);
    return values;
  }();
  Batch batch{empty({size, kFeatures}), empty({size}, kInt64)};
  auto* features = batch.features.data<float>();
  auto* labels = batch.labels.data<int64_t>();
  std::mt19937 generator(1000 + seed);
  std::normal_distribution<float> noise(0.0f, 2.0f);
  std::uniform_int_distribution<int64_t> any_class(0, kClasses - 1);
  for (int64_t row = 0; row < size; ++row) {
    labels[row] = any_class(generator);
    for (int64_t at = 0; at < kFeatures; ++at)
      features[row * kFeatures + at] = centres[static_cast<size_t>(labels[row] * kFeatures + at)] + noise(generator);
  }
  return batch;
}

nn::Sequential make_model() {
  manual_seed(7);
  return nn::Sequential(nn::Linear(kFeatures, kHidden), nn::ReLU(), nn::Linear(kHidden, kClasses));
}

Training train(const char* name, const nn::Sequential& model, const LossFunction& loss,
               const std::vector<Batch>& batches) {
  const bool terminal = isatty(fileno(stdout));
  Counter& kernels = counter("kernels_launched");
  Counter& calls = counter("library_calls");
  optim::SGD sgd(model.parameters(), {.lr = 0.1});
  Training training;
  std::vector<double> times;
  for (size_t step = 0; step < batches.size(); ++step) {
    const auto& [features, labels] = batches[step];
    double start = milliseconds_now();
    sgd.zero_grad();
    int64_t kernels_before = kernels.value(), calls_before = calls.value();
    Tensor value = loss(features, labels);
    value.backward();
    training.kernels_launched = kernels.value() - kernels_before;
    training.library_calls = calls.value() - calls_before;
    sgd.step();
    times.push_back(milliseconds_now() - start);
    training.losses.push_back(value.item<double>());
    if (terminal && step % 5 == 0) {
      fmt::print("\r  {:<8}  step {:>3} of {}  loss {:.4f}", name, step, batches.size() - 1, training.losses.back());
      std::fflush(stdout);
    }
  }
  if (terminal) fmt::print("\r\033[K");
  training.milliseconds = median(times);
  return training;
}

double milliseconds_now() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace demo
