#include "uniform.h"

#include <tenon/generated/ops.h>
#include <tenon/nn/normalization.h>

#include <fmt/format.h>

#include <limits>

namespace tenon {
namespace {

double epsilon(Dtype dtype) {
  switch (dtype) {
    case Dtype::Float64: return std::numeric_limits<double>::epsilon();
    case Dtype::Float16: return 0x1p-10;
    case Dtype::BFloat16: return 0x1p-7;
    default: return std::numeric_limits<float>::epsilon();
  }
}

// One number per channel, to be broadcast over an input [N, C, …].
Tensor by_channel(const Tensor& numbers, const Tensor& input) {
  SymInts sizes(static_cast<size_t>(input.dim()), SymInt(1));
  sizes[1] = input.size(1);
  return view(numbers, sizes);
}

}  // namespace

Tensor rms_norm(const Tensor& input, const SymInts& normalized_shape, const std::optional<Tensor>& weight,
                std::optional<double> eps) {
  TENON_CHECK(input.defined() && input.is_floating_point(), "[rms_norm] expected a floating point tensor, got {}",
              input.defined() ? input.description() : "an undefined one");
  SymInts sizes = input.sym_sizes();
  bool fits = !normalized_shape.empty() && normalized_shape.size() <= sizes.size();
  Ints dims;
  for (size_t at = 0; fits && at < normalized_shape.size(); ++at) {
    size_t dim = sizes.size() - normalized_shape.size() + at;
    fits = bool(sizes[dim] == normalized_shape[at]);
    dims.push_back(static_cast<int64_t>(dim));
  }
  TENON_CHECK(fits, "[rms_norm] expected the last dimensions of {} to be {}", input.description(),
              str(normalized_shape));
  // Halves are computed in float32 and rounded once.
  Dtype wide = compute_dtype(input.dtype());
  Tensor x = input.to(wide);
  Tensor result = x * rsqrt(mean(x * x, OptionalInts(dims), true) + eps.value_or(epsilon(input.dtype())));
  if (weight) result = result * weight->to(wide);
  return result.to(input.dtype());
}

Tensor group_norm(const Tensor& input, int64_t num_groups, const std::optional<Tensor>& weight,
                  const std::optional<Tensor>& bias, double eps) {
  TENON_CHECK(input.defined() && input.is_floating_point() && input.dim() >= 2,
              "[group_norm] expected a floating point tensor of at least 2 dimensions, got {}",
              input.defined() ? input.description() : "an undefined one");
  TENON_CHECK(num_groups > 0 && bool(input.size(1) % num_groups == 0),
              "[group_norm] expected channels that {} groups divide, got {}", num_groups, input.description());
  Dtype wide = compute_dtype(input.dtype());
  SymInt rest = input.numel() / (input.size(0) * num_groups);
  Tensor x = reshape(input.to(wide), SymInts{input.size(0), SymInt(num_groups), rest});
  Tensor apart = x - mean(x, -1, true);
  Tensor result = reshape(apart * rsqrt(mean(apart * apart, -1, true) + eps), input.sym_sizes());
  if (weight) result = result * by_channel(weight->to(wide), input);
  if (bias) result = result + by_channel(bias->to(wide), input);
  return result.to(input.dtype());
}

Tensor instance_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                     double eps) {
  TENON_CHECK(input.defined() && input.is_floating_point() && input.dim() >= 3,
              "[instance_norm] expected a floating point tensor of at least 3 dimensions, got {}",
              input.defined() ? input.description() : "an undefined one");
  Ints dims;
  for (int64_t dim = 2; dim < input.dim(); ++dim) dims.push_back(dim);
  Dtype wide = compute_dtype(input.dtype());
  Tensor x = input.to(wide), apart = x - mean(x, OptionalInts(dims), true);
  Tensor result = apart * rsqrt(mean(apart * apart, OptionalInts(dims), true) + eps);
  if (weight) result = result * by_channel(weight->to(wide), input);
  if (bias) result = result + by_channel(bias->to(wide), input);
  return result.to(input.dtype());
}

Tensor local_response_norm(const Tensor& input, int64_t size, double alpha, double beta, double k) {
  TENON_CHECK(input.defined() && input.dim() >= 3, "[local_response_norm] expected a tensor [N, C, …], got {}",
              input.defined() ? input.description() : "an undefined one");
  SymInt rest = input.numel() / (input.size(0) * input.size(1));
  Tensor squares = reshape(input * input, SymInts{input.size(0), 1, input.size(1), rest});
  // Channels as rows: the mean over `size` of them, with zeros beyond the ends.
  Tensor padded = constant_pad_nd(squares, SymInts{0, 0, size / 2, (size - 1) / 2});
  Tensor around = reshape(avg_pool2d(padded, {size, 1}, {1, 1}), input.sym_sizes());
  return input / pow(around * alpha + k, beta);
}

Tensor normalize(const Tensor& input, double p, int64_t dim, double eps) {
  return input / clamp_min(linalg_vector_norm(input, p, dim, true), eps);
}

}  // namespace tenon

namespace tenon::nn {
namespace detail {

BatchNormLayer::BatchNormLayer(const char* kind, Ints dims, int64_t num_features, const BatchNormLayerOptions& options)
    : dims_(std::move(dims)), options_(options) {
  TENON_CHECK(num_features > 0, "[{}] expected at least one feature, got {}", kind, num_features);
  TENON_CHECK(is_floating(options.dtype), "[{}] expected a floating point dtype, got {}", kind, name(options.dtype));
  TensorOptions like(options.dtype);
  weight = parameter("weight", options.affine ? ones({num_features}, like) : Tensor());
  bias = parameter("bias", options.affine ? zeros({num_features}, like) : Tensor());
  bool tracked = options.track_running_stats;
  running_mean = buffer("running_mean", tracked ? zeros({num_features}, like) : Tensor());
  running_var = buffer("running_var", tracked ? ones({num_features}, like) : Tensor());
  num_batches_tracked = buffer("num_batches_tracked", tracked ? zeros({}, TensorOptions(kInt64)) : Tensor());
  describe(kind, fmt::format("{}, eps={}, momentum={}, affine={}, track_running_stats={}", num_features, options.eps,
                             options.momentum, yes_or_no(options.affine), yes_or_no(tracked)));
}

Tensor BatchNormLayer::operator()(const Tensor& input) const {
  return run(input, [&](const Tensor& x) {
    bool fits = false;
    for (int64_t dims : dims_) fits |= x.defined() && x.dim() == dims;
    TENON_CHECK(fits, "[{}] expected a tensor of {} dimensions, got {}", kind(), fmt::join(dims_, " or "),
                x.defined() ? x.description() : "an undefined one");
    BatchNormOptions options{.training = is_training(), .momentum = options_.momentum, .eps = options_.eps};
    options.weight = given(weight);
    options.bias = given(bias);
    if (Tensor count = num_batches_tracked.get(); options.training && count.defined()) count.add_(1);
    return batch_norm(x, running_mean.get(), running_var.get(), options);
  });
}

InstanceNormLayer::InstanceNormLayer(const char* kind, int64_t dims, int64_t num_features,
                                     const InstanceNormOptions& options)
    : dims_(dims), eps_(options.eps) {
  TENON_CHECK(num_features > 0, "[{}] expected at least one feature, got {}", kind, num_features);
  weight = parameter("weight", options.affine ? ones({num_features}, TensorOptions(options.dtype)) : Tensor());
  bias = parameter("bias", options.affine ? zeros({num_features}, TensorOptions(options.dtype)) : Tensor());
  describe(kind, fmt::format("{}, eps={}, affine={}", num_features, options.eps, yes_or_no(options.affine)));
}

Tensor InstanceNormLayer::operator()(const Tensor& input) const {
  return run(input, [&](const Tensor& x) {
    TENON_CHECK(x.defined() && (x.dim() == dims_ || x.dim() == dims_ - 1),
                "[{}] expected a tensor of {} or {} dimensions, got {}", kind(), dims_ - 1, dims_,
                x.defined() ? x.description() : "an undefined one");
    if (x.dim() == dims_) return instance_norm(x, given(weight), given(bias), eps_);
    return squeeze(instance_norm(unsqueeze(x, 0), given(weight), given(bias), eps_), 0);
  });
}

}  // namespace detail

LayerNorm::LayerNorm(const Ints& normalized_shape, const LayerNormOptions& options)
    : shape_(normalized_shape), eps_(options.eps) {
  TENON_CHECK_VALUE(!normalized_shape.empty(), "[LayerNorm] expected at least one dimension");
  SymInts sizes(normalized_shape.span());
  bool affine = options.elementwise_affine;
  weight = parameter("weight", affine ? ones(sizes, TensorOptions(options.dtype)) : Tensor());
  bias = parameter("bias", affine && options.bias ? zeros(sizes, TensorOptions(options.dtype)) : Tensor());
  describe("LayerNorm",
           fmt::format("({},), eps={}, elementwise_affine={}", fmt::join(shape_, ", "), eps_, yes_or_no(affine)));
}

Tensor LayerNorm::operator()(const Tensor& input) const {
  return run(input,
             [&](const Tensor& x) { return layer_norm(x, SymInts(shape_.span()), given(weight), given(bias), eps_); });
}

RMSNorm::RMSNorm(const Ints& normalized_shape, const RMSNormOptions& options)
    : shape_(normalized_shape), eps_(options.eps) {
  TENON_CHECK_VALUE(!normalized_shape.empty(), "[RMSNorm] expected at least one dimension");
  weight = parameter("weight", options.elementwise_affine
                                   ? ones(SymInts(normalized_shape.span()), TensorOptions(options.dtype))
                                   : Tensor());
  describe("RMSNorm",
           fmt::format("({},), elementwise_affine={}", fmt::join(shape_, ", "), yes_or_no(options.elementwise_affine)));
}

Tensor RMSNorm::operator()(const Tensor& input) const {
  return run(input, [&](const Tensor& x) { return rms_norm(x, SymInts(shape_.span()), given(weight), eps_); });
}

GroupNorm::GroupNorm(int64_t num_groups, int64_t num_channels, const GroupNormOptions& options)
    : groups_(num_groups), eps_(options.eps) {
  TENON_CHECK_VALUE(num_groups > 0 && num_channels > 0 && num_channels % num_groups == 0,
                    "[GroupNorm] expected channels that {} groups divide, got {}", num_groups, num_channels);
  weight = parameter("weight", options.affine ? ones({num_channels}, TensorOptions(options.dtype)) : Tensor());
  bias = parameter("bias", options.affine ? zeros({num_channels}, TensorOptions(options.dtype)) : Tensor());
  describe("GroupNorm",
           fmt::format("{}, {}, eps={}, affine={}", num_groups, num_channels, eps_, yes_or_no(options.affine)));
}

Tensor GroupNorm::operator()(const Tensor& input) const {
  return run(input, [&](const Tensor& x) { return group_norm(x, groups_, given(weight), given(bias), eps_); });
}

LocalResponseNorm::LocalResponseNorm(int64_t size, double alpha, double beta, double k)
    : FunctionLayer("LocalResponseNorm", fmt::format("{}, alpha={}, beta={}, k={}", size, alpha, beta, k),
                    [=](const Tensor& x) { return local_response_norm(x, size, alpha, beta, k); }) {}

}  // namespace tenon::nn
