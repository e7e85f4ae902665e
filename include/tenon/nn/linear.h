// Affine and bilinear maps.
#pragma once

#include <tenon/nn/layer.h>

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

// For each output k: leftᵀ · weight[k] · right + bias[k].
//
//   nn::Bilinear layer(3, 3, 2);
//   Tensor result = layer(x, y);  // [2, 2]
class Bilinear : public Module {
 public:
  Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features, const LinearOptions& options = {});
  Tensor operator()(const Tensor& left, const Tensor& right) const;

  Cell<Tensor> weight, bias;
};

}  // namespace tenon::nn
