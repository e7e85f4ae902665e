// The layers.
#pragma once

#include <tenon/nn/functional.h>
#include <tenon/nn/module.h>

#include <concepts>
#include <functional>

namespace tenon::nn {

//   nn::LinearOptions options{.bias = false, .dtype = kFloat64};
//   nn::Linear plain(3, 4, options);
struct LinearOptions {
  bool bias = true;
  Dtype dtype = kFloat32;
};

// x · weightᵀ + bias, with weight [out, in] and bias [out] uniform in ±1/√in.
//
//   nn::Linear layer(3, 4);
//   Tensor result = layer(x);  // [2, 4]
class Linear : public Module {
 public:
  Linear(int64_t in_features, int64_t out_features, const LinearOptions& options = {});
  Tensor operator()(const Tensor& input) const;

  Cell<Tensor> weight, bias;  // `bias` is undefined if there is none
};

//   Tensor positive = nn::ReLU()(x);
class ReLU : public Module {
 public:
  Tensor operator()(const Tensor& input) const;
};

// Two numbers, for rows and columns; one stands for both.
//
//   nn::Pair square = 3, flat = {1, 5};
//   bool right = square.rows == 3 && square.columns == 3 && flat.columns == 5;
struct Pair {
  int64_t rows, columns;
  Pair(int64_t both) : rows(both), columns(both) {}
  Pair(int both) : Pair(int64_t{both}) {}
  Pair(int64_t for_rows, int64_t for_columns) : rows(for_rows), columns(for_columns) {}
};

//   nn::Conv2dOptions options{.padding = nn::Pair(1), .groups = 2, .bias = false};
//   nn::Conv2dOptions same{.same_padding = true};
struct Conv2dOptions {
  Pair stride = 1;
  Pair padding = 0;
  Pair dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  bool same_padding = false;  // in place of `padding`: as much as keeps the image's size; for a stride of 1
  Dtype dtype = kFloat32;
};

// Images [N, in, H, W] or [in, H, W], with weight [out, in / groups, rows, columns] and bias [out] uniform in
// ±1/√(in / groups · rows · columns).
//
//   nn::Conv2d layer(3, 8, 5, {.padding = 2});
//   Tensor result = layer(ones({1, 3, 16, 16}));  // [1, 8, 16, 16]
class Conv2d : public Module {
 public:
  Conv2d(int64_t in_channels, int64_t out_channels, Pair kernel_size, const Conv2dOptions& options = {});
  Tensor operator()(const Tensor& input) const;

  Cell<Tensor> weight, bias;  // `bias` is undefined if there is none

 private:
  Conv2dOptions options_;
  Pair kernel_size_;
};

//   nn::BatchNormLayerOptions options{.momentum = 0.01, .affine = false};
struct BatchNormLayerOptions {
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = true;               // with weight and bias
  bool track_running_stats = true;  // with running statistics, by which it normalises when it is not training
  Dtype dtype = kFloat32;
};

// Of images [N, C, H, W]: each channel less its mean, over its deviation, times weight, plus bias.
//
//   nn::BatchNorm2d layer(3);
//   Tensor result = layer(ones({2, 3, 4, 4}));  // zeros
//   layer.eval();                               // from now on by the running statistics
class BatchNorm2d : public Module {
 public:
  explicit BatchNorm2d(int64_t num_features, const BatchNormLayerOptions& options = {});
  Tensor operator()(const Tensor& input) const;

  Cell<Tensor> weight, bias;                                    // undefined without `affine`
  Cell<Tensor> running_mean, running_var, num_batches_tracked;  // undefined without `track_running_stats`

 private:
  BatchNormLayerOptions options_;
};

//   Tensor row = nn::Flatten()(ones({2, 3, 4}));  // [2, 12]
class Flatten : public Module {
 public:
  explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1) : start_dim_(start_dim), end_dim_(end_dim) {}
  Tensor operator()(const Tensor& input) const;

 private:
  int64_t start_dim_, end_dim_;
};

// |input - target|.
//
//   Tensor loss = nn::L1Loss(Reduction::Sum)(x, y);
class L1Loss : public Module {
 public:
  explicit L1Loss(Reduction reduction = Reduction::Mean) : reduction_(reduction) {}
  Tensor operator()(const Tensor& input, const Tensor& target) const;

 private:
  Reduction reduction_;
};

template <typename M>
concept Layer = std::derived_from<M, Module> && requires(const M& module, const Tensor& input) {
  { module(input) } -> std::convertible_to<Tensor>;
};

// Each layer on the result of the one before.
//
//   nn::Sequential model(nn::Linear(3, 8), nn::ReLU());
//   model.push_back(nn::Linear(8, 2));
//   Tensor result = model(x);        // [2, 2]
//   size_t layers = model.size();    // 3
class Sequential : public Module {
 public:
  Sequential() = default;
  template <Layer First, Layer... Rest>
    requires(sizeof...(Rest) > 0 || !std::same_as<First, Sequential>)  // one Sequential alone is a copy
  explicit Sequential(First first, Rest... rest) {
    push_back(std::move(first));
    (push_back(std::move(rest)), ...);
  }

  template <Layer M>
  void push_back(M layer) {
    submodule(std::to_string(layers_.size()), layer);
    layers_.push_back([layer = std::move(layer)](const Tensor& input) { return Tensor(layer(input)); });
  }
  size_t size() const { return layers_.size(); }
  Tensor operator()(const Tensor& input) const;

 private:
  std::vector<std::function<Tensor(const Tensor&)>> layers_;
};

}  // namespace tenon::nn
