#include "uniform.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>
#include <tenon/nn/modules.h>

#include <cmath>

namespace tenon::nn {

Tensor uniform(const SymInts& sizes, double bound, Dtype dtype) {
  NoGrad off;
  return rand(sizes, TensorOptions(dtype)) * (2 * bound) - bound;
}

Linear::Linear(int64_t in_features, int64_t out_features, const LinearOptions& options) {
  TENON_CHECK_VALUE(in_features > 0 && out_features > 0,
                    "[Linear] expected at least one feature in and out, got {} and {}", in_features, out_features);
  TENON_CHECK(is_floating(options.dtype), "[Linear] expected a floating point dtype, got {}", name(options.dtype));
  double bound = 1 / std::sqrt(static_cast<double>(in_features));
  weight = parameter("weight", uniform({out_features, in_features}, bound, options.dtype));
  bias = parameter("bias", options.bias ? uniform({out_features}, bound, options.dtype) : Tensor());
}

Tensor Linear::operator()(const Tensor& input) const {
  ModuleScope inside = enter();
  Tensor offset = bias.get();
  return linear(input, weight.get(), offset.defined() ? std::optional<Tensor>(offset) : std::nullopt);
}

Tensor ReLU::operator()(const Tensor& input) const {
  ModuleScope inside = enter();
  return relu(input);
}

Conv2d::Conv2d(int64_t in_channels, int64_t out_channels, Pair kernel_size, const Conv2dOptions& options)
    : options_(options), kernel_size_(kernel_size) {
  int64_t groups = options.groups;
  TENON_CHECK(
      in_channels > 0 && out_channels > 0 && groups > 0 && in_channels % groups == 0 && out_channels % groups == 0,
      "[Conv2d] expected channels that {} groups divide, got {} in and {} out", groups, in_channels, out_channels);
  TENON_CHECK(kernel_size.rows > 0 && kernel_size.columns > 0, "[Conv2d] expected a kernel_size above 0, got {} by {}",
              kernel_size.rows, kernel_size.columns);
  TENON_CHECK(!options.same_padding || (options.stride.rows == 1 && options.stride.columns == 1),
              "[Conv2d] expected a stride of 1 with same_padding, got {} by {}", options.stride.rows,
              options.stride.columns);
  TENON_CHECK(is_floating(options.dtype), "[Conv2d] expected a floating point dtype, got {}", name(options.dtype));
  int64_t inner = in_channels / groups;
  double bound = 1 / std::sqrt(static_cast<double>(inner * kernel_size.rows * kernel_size.columns));
  weight =
      parameter("weight", uniform({out_channels, inner, kernel_size.rows, kernel_size.columns}, bound, options.dtype));
  bias = parameter("bias", options.bias ? uniform({out_channels}, bound, options.dtype) : Tensor());
}

Tensor Conv2d::operator()(const Tensor& input) const {
  ModuleScope inside = enter();
  auto list = [](Pair pair) { return SymInts{pair.rows, pair.columns}; };
  Tensor image = input, offset = bias.get();
  Pair padding = options_.padding;
  if (options_.same_padding) {
    int64_t rows = options_.dilation.rows * (kernel_size_.rows - 1);
    int64_t columns = options_.dilation.columns * (kernel_size_.columns - 1);
    padding = {rows / 2, columns / 2};
    // Of an odd number the larger half comes last.
    if (rows % 2 != 0 || columns % 2 != 0) image = constant_pad_nd(image, SymInts{0, columns % 2, 0, rows % 2});
  }
  return conv2d(image, weight.get(), offset.defined() ? std::optional<Tensor>(offset) : std::nullopt,
                list(options_.stride), list(padding), list(options_.dilation), options_.groups);
}

BatchNorm2d::BatchNorm2d(int64_t num_features, const BatchNormLayerOptions& options) : options_(options) {
  TENON_CHECK(num_features > 0, "[BatchNorm2d] expected at least one feature, got {}", num_features);
  TENON_CHECK(is_floating(options.dtype), "[BatchNorm2d] expected a floating point dtype, got {}", name(options.dtype));
  TensorOptions like(options.dtype);
  weight = parameter("weight", options.affine ? ones({num_features}, like) : Tensor());
  bias = parameter("bias", options.affine ? zeros({num_features}, like) : Tensor());
  bool tracked = options.track_running_stats;
  running_mean = buffer("running_mean", tracked ? zeros({num_features}, like) : Tensor());
  running_var = buffer("running_var", tracked ? ones({num_features}, like) : Tensor());
  num_batches_tracked = buffer("num_batches_tracked", tracked ? zeros({}, TensorOptions(kInt64)) : Tensor());
}

Tensor BatchNorm2d::operator()(const Tensor& input) const {
  ModuleScope inside = enter();
  TENON_CHECK(input.defined() && input.dim() == 4, "[BatchNorm2d] expected a tensor of 4 dimensions, got {}",
              input.defined() ? input.description() : "an undefined one");
  BatchNormOptions options{.training = is_training(), .momentum = options_.momentum, .eps = options_.eps};
  if (Tensor factor = weight.get(); factor.defined()) {
    options.weight = factor;
    options.bias = bias.get();
  }
  if (Tensor count = num_batches_tracked.get(); options.training && count.defined()) count.add_(1);
  return batch_norm(input, running_mean.get(), running_var.get(), options);
}

Tensor Flatten::operator()(const Tensor& input) const {
  ModuleScope inside = enter();
  return flatten(input, start_dim_, end_dim_);
}

Tensor L1Loss::operator()(const Tensor& input, const Tensor& target) const {
  ModuleScope inside = enter();
  return l1_loss(input, target, static_cast<int64_t>(reduction_));
}

Tensor Sequential::operator()(const Tensor& input) const {
  ModuleScope inside = enter();
  Tensor value = input;
  for (const auto& layer : layers_) value = layer(value);
  return value;
}

}  // namespace tenon::nn
