// Layers that normalise, by the batch or by the sample.
#pragma once

#include <tenon/nn/functional.h>
#include <tenon/nn/layer.h>

namespace tenon {

// The input over the root of its mean square, in the last dimensions; an eps of none is the dtype's epsilon.
//
//   Tensor a = rms_norm(x, {3}), b = rms_norm(x, {3}, ones({3}), 1e-6);
Tensor rms_norm(const Tensor& input, const SymInts& normalized_shape, const std::optional<Tensor>& weight = {},
                std::optional<double> eps = {});
// By groups of channels of each sample.
//
//   Tensor image = ones({2, 4, 3, 3});
//   Tensor a = group_norm(image, 2), b = instance_norm(image), c = local_response_norm(image, 3);
Tensor group_norm(const Tensor& input, int64_t num_groups, const std::optional<Tensor>& weight = {},
                  const std::optional<Tensor>& bias = {}, double eps = 1e-5);
// By each channel of each sample.
Tensor instance_norm(const Tensor& input, const std::optional<Tensor>& weight = {},
                     const std::optional<Tensor>& bias = {}, double eps = 1e-5);
// By neighbouring channels.
Tensor local_response_norm(const Tensor& input, int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);
// Vectors along `dim` with a p-norm of 1.
//
//   Tensor unit = normalize(x);
Tensor normalize(const Tensor& input, double p = 2, int64_t dim = 1, double eps = 1e-12);

}  // namespace tenon

namespace tenon::nn {

//   nn::BatchNormLayerOptions options{.momentum = 0.01, .affine = false};
struct BatchNormLayerOptions {
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = true;               // with weight and bias
  bool track_running_stats = true;  // with running statistics, by which it normalises when it is not training
  Dtype dtype = kFloat32;
};

namespace detail {

class BatchNormLayer : public Module {
 public:
  Tensor operator()(const Tensor& input) const;

  Cell<Tensor> weight, bias;                                    // undefined without `affine`
  Cell<Tensor> running_mean, running_var, num_batches_tracked;  // undefined without `track_running_stats`

 protected:
  BatchNormLayer(const char* kind, Ints dims, int64_t num_features, const BatchNormLayerOptions& options);

 private:
  Ints dims_;  // of inputs
  BatchNormLayerOptions options_;
};

}  // namespace detail

// Each channel less its mean, over its deviation, times weight, plus bias: of [N, C] or [N, C, L], of images
// [N, C, H, W], and of volumes [N, C, D, H, W].
//
//   Tensor rows = nn::BatchNorm1d(3)(x), deep = nn::BatchNorm3d(3)(ones({2, 3, 4, 4, 4}));
//   nn::BatchNorm2d layer(3);
//   Tensor result = layer(ones({2, 3, 4, 4}));  // zeros
//   layer.eval();                               // from now on by the running statistics
class BatchNorm1d : public detail::BatchNormLayer {
 public:
  explicit BatchNorm1d(int64_t num_features, const BatchNormLayerOptions& options = {})
      : BatchNormLayer("BatchNorm1d", {2, 3}, num_features, options) {}
};
class BatchNorm2d : public detail::BatchNormLayer {
 public:
  explicit BatchNorm2d(int64_t num_features, const BatchNormLayerOptions& options = {})
      : BatchNormLayer("BatchNorm2d", {4}, num_features, options) {}
};
class BatchNorm3d : public detail::BatchNormLayer {
 public:
  explicit BatchNorm3d(int64_t num_features, const BatchNormLayerOptions& options = {})
      : BatchNormLayer("BatchNorm3d", {5}, num_features, options) {}
};

//   nn::LayerNormOptions options{.eps = 1e-6, .bias = false};
struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;
  bool bias = true;
  Dtype dtype = kFloat32;
};

//   int64_t width = 3;
//   Tensor a = nn::LayerNorm(width)(x), b = nn::LayerNorm({width})(x), c = nn::LayerNorm({2, width})(x);
class LayerNorm : public Module {
 public:
  explicit LayerNorm(const Ints& normalized_shape, const LayerNormOptions& options = {});
  LayerNorm(std::initializer_list<int64_t> normalized_shape, const LayerNormOptions& options = {})
      : LayerNorm(Ints(normalized_shape), options) {}
  Tensor operator()(const Tensor& input) const;

  Cell<Tensor> weight, bias;

 private:
  Ints shape_;
  double eps_;
};

//   Tensor a = nn::RMSNorm(3)(x);
//   nn::RMSNormOptions options{.eps = 1e-6};
struct RMSNormOptions {
  std::optional<double> eps = {};
  bool elementwise_affine = true;
  Dtype dtype = kFloat32;
};

class RMSNorm : public Module {
 public:
  explicit RMSNorm(const Ints& normalized_shape, const RMSNormOptions& options = {});
  RMSNorm(std::initializer_list<int64_t> normalized_shape, const RMSNormOptions& options = {})
      : RMSNorm(Ints(normalized_shape), options) {}
  Tensor operator()(const Tensor& input) const;

  Cell<Tensor> weight;

 private:
  Ints shape_;
  std::optional<double> eps_;
};

//   Tensor a = nn::GroupNorm(2, 4)(ones({1, 4, 3}));
//   nn::GroupNormOptions options{.affine = false};
struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
  Dtype dtype = kFloat32;
};

class GroupNorm : public Module {
 public:
  GroupNorm(int64_t num_groups, int64_t num_channels, const GroupNormOptions& options = {});
  Tensor operator()(const Tensor& input) const;

  Cell<Tensor> weight, bias;

 private:
  int64_t groups_;
  double eps_;
};

//   Tensor a = nn::InstanceNorm1d(3)(ones({2, 3, 4})), b = nn::InstanceNorm2d(3)(ones({2, 3, 4, 4}));
//   Tensor c = nn::InstanceNorm3d(3)(ones({2, 3, 2, 2, 2}));
//   nn::InstanceNormOptions options{.affine = true};
struct InstanceNormOptions {
  double eps = 1e-5;
  bool affine = false;
  Dtype dtype = kFloat32;
};

namespace detail {

class InstanceNormLayer : public Module {
 public:
  Tensor operator()(const Tensor& input) const;

  Cell<Tensor> weight, bias;

 protected:
  InstanceNormLayer(const char* kind, int64_t dims, int64_t num_features, const InstanceNormOptions& options);

 private:
  int64_t dims_;
  double eps_;
};

}  // namespace detail

class InstanceNorm1d : public detail::InstanceNormLayer {
 public:
  explicit InstanceNorm1d(int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNormLayer("InstanceNorm1d", 3, num_features, options) {}
};
class InstanceNorm2d : public detail::InstanceNormLayer {
 public:
  explicit InstanceNorm2d(int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNormLayer("InstanceNorm2d", 4, num_features, options) {}
};
class InstanceNorm3d : public detail::InstanceNormLayer {
 public:
  explicit InstanceNorm3d(int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNormLayer("InstanceNorm3d", 5, num_features, options) {}
};

//   Tensor a = nn::LocalResponseNorm(3)(ones({1, 4, 2, 2}));
class LocalResponseNorm : public FunctionLayer {
 public:
  explicit LocalResponseNorm(int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);
};

}  // namespace tenon::nn
