// Functions with options, over operators of the table.
#pragma once

#include <tenon/core/tensor.h>

#include <optional>
#include <string_view>
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

// Linear, Bilinear and Trilinear are of inputs [N, C, W], [N, C, H, W] and [N, C, D, H, W], Bicubic of [N, C, H, W],
// the others of any of them. Nearest takes the place rounded down, NearestExact the one whose centre is nearest.
//
//   std::string_view text = name(Interpolation::NearestExact);  // "nearest-exact"
enum class Interpolation : uint8_t { Nearest, Bilinear, Bicubic, Linear, Trilinear, Area, NearestExact };
std::string_view name(Interpolation mode);

// Exactly one of `size` and `scale_factor` is given; one number stands for all dimensions behind the channels.
struct InterpolateOptions {
  std::optional<SymInts> size = {};
  std::optional<std::vector<double>> scale_factor = {};
  Interpolation mode = Interpolation::Nearest;
  bool align_corners = false;  // of the (bi-, tri-) linear and cubic modes: the corners of both lie on each other
  bool antialias = false;      // Bilinear and Bicubic: what becomes smaller is smoothed first
};

// An input [N, C, …] in another size.
//
//   InterpolateOptions options{.size = SymInts{8, 8}, .mode = Interpolation::Bilinear};
//   Tensor large = interpolate(ones({1, 3, 4, 4}), options);
//   InterpolateOptions by_factor{.scale_factor = std::vector<double>{2}, .mode = Interpolation::Linear};
//   Tensor twice = interpolate(ones({1, 3, 4}), by_factor);
Tensor interpolate(const Tensor& input, const InterpolateOptions& options);

// What lies outside of the input: zeros, the nearest element of it, or the input in a mirror.
enum class GridPadding : uint8_t { Zeros, Border, Reflection };

//   GridSampleOptions options{.mode = Interpolation::Nearest, .padding = GridPadding::Border};
//   Tensor turned = grid_sample(ones({1, 3, 4, 4}), affine_grid(ones({1, 2, 3}), {1, 3, 4, 4}), options);
struct GridSampleOptions {
  Interpolation mode = Interpolation::Bilinear;  // also of [N, C, D, H, W]; or Nearest; or, of [N, C, H, W], Bicubic
  GridPadding padding = GridPadding::Zeros;
  bool align_corners = false;  // -1 and 1 are the centres of the outermost elements instead of their borders
};

// An input [N, C, H, W] or [N, C, D, H, W] read at places: the grid [N, H', W', 2] has x and y, [N, D', H', W', 3] x, y
// and z, from -1 to 1.
//
//   Tensor images = ones({1, 3, 4, 4}), grid = zeros({1, 2, 2, 2});
//   Tensor centre = grid_sample(images, grid);  // [1, 3, 2, 2]
Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleOptions& options = {});

// The grid that reads an input of `size` ([N, C, H, W] or [N, C, D, H, W]) through the affine maps `theta`, [N, 2, 3]
// or [N, 3, 4].
//
//   Tensor same = affine_grid(eye(2, 3).unsqueeze(0), {1, 3, 4, 4});  // [1, 4, 4, 2]
Tensor affine_grid(const Tensor& theta, const SymInts& size, bool align_corners = false);

}  // namespace tenon
