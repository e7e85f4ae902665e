// The demo's network, its data and its training loop.
#pragma once

#include <tenon/tenon.h>

#include <functional>
#include <vector>

namespace demo {

constexpr int64_t kFeatures = 64, kHidden = 128, kClasses = 10, kBatch = 32;
constexpr int kSteps = 101;  // the last one is step 100

struct Batch {
  tenon::Tensor features;  // float32 [size, kFeatures]
  tenon::Tensor labels;    // int64 [size]
};

// Points around one centre per class; the same seed gives the same batch.
Batch make_batch(int64_t size, uint32_t seed);

// Always with the same initial weights.
tenon::nn::Sequential make_model();

struct Training {
  std::vector<double> losses;    // by step
  double milliseconds = 0;       // of one step, median
  int64_t kernels_launched = 0;  // in forward and backward of one step
  int64_t library_calls = 0;     // likewise
};

using LossFunction = std::function<tenon::Tensor(const tenon::Tensor& features, const tenon::Tensor& labels)>;

// Trains `model` by `loss`, which must use it. `name` is for the line that shows progress on a terminal.
Training train(const char* name, const tenon::nn::Sequential& model, const LossFunction& loss,
               const std::vector<Batch>& batches);

double milliseconds_now();
double median(std::vector<double> values);

}  // namespace demo
