// Functions with options, over operators of the table.
#pragma once

#include <tenon/core/tensor.h>

#include <optional>
#include <vector>

namespace tenon {

// How the losses of the samples become one.
enum class Reduction : uint8_t { None, Mean, Sum };

struct CrossEntropyOptions {
  std::optional<Tensor> weight = {};  // one factor per class
  Reduction reduction = Reduction::Mean;
  int64_t ignore_index = -100;  // targets that do not count
  double label_smoothing = 0;
};

// Of logits [N, C] or [C] against class numbers [N] or [] (int64).
//
//   Tensor classes = zeros({2}, kInt64);
//   Tensor loss = cross_entropy(x, classes);
//   CrossEntropyOptions options{.weight = ones({3}), .reduction = Reduction::Sum, .label_smoothing = 0.1};
//   Tensor smooth = cross_entropy(x, classes, options);
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options = {});

//   Tensor images = randn({4, 3, 2, 2}), mean = zeros({3}), variance = ones({3});
//   BatchNormOptions options{.weight = ones({3}), .training = true};
//   Tensor normal = batch_norm(images, mean, variance, options);
struct BatchNormOptions {
  std::optional<Tensor> weight = {}, bias = {};  // one number per channel
  bool training = false;                         // normalise by the batch, and move the running statistics towards it
  double momentum = 0.1;                         // how far
  double eps = 1e-5;
};

// Of an input [N, C, …], by channel. Without running statistics (undefined tensors) always by the batch.
//
//   Tensor mean = zeros({3}), variance = ones({3});
//   Tensor apart = batch_norm(ones({2, 3}), mean, variance, {.training = true});  // zeros; mean is now 0.1
Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormOptions& options = {});

enum class Interpolation : uint8_t { Nearest, Bilinear };

// Exactly one of `size` and `scale_factor` is given; one number stands for both dimensions.
struct InterpolateOptions {
  std::optional<SymInts> size = {};
  std::optional<std::vector<double>> scale_factor = {};
  Interpolation mode = Interpolation::Nearest;
  bool align_corners = false;  // Bilinear: the corners of both images lie on each other
};

// An image [N, C, H, W] in another size.
//
//   InterpolateOptions options{.size = SymInts{8, 8}, .mode = Interpolation::Bilinear};
//   Tensor large = interpolate(ones({1, 3, 4, 4}), options);
Tensor interpolate(const Tensor& input, const InterpolateOptions& options);

}  // namespace tenon
