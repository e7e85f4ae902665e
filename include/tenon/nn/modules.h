// The layers.
#pragma once

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
