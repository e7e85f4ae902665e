// A layer beside a shortcut: what deep networks are made of.
#pragma once

#include <tenon/nn/layer.h>

namespace tenon::nn {

// shortcut(x) + body(x); without a shortcut, x + body(x).
//
//   nn::Residual plain(nn::Sequential(nn::Linear(3, 8), nn::ReLU(), nn::Linear(8, 3)));
//   nn::Residual wider(nn::Linear(3, 8), nn::Linear(3, 8, {.bias = false}));
//   Tensor result = wider(plain(x));  // [2, 8]
class Residual : public Module {
 public:
  explicit Residual(AnyLayer body);
  Residual(AnyLayer body, AnyLayer shortcut);
  Tensor operator()(const Tensor& input) const;

 private:
  AnyLayer body_, shortcut_;
};

}  // namespace tenon::nn
