// Layers that forget some of their input while they train.
#pragma once

#include <tenon/nn/layer.h>

namespace tenon {

// Whole channels of [N, C, …], so that neighbours cannot stand in for each other.
//
//   Tensor a = feature_dropout(ones({2, 3, 4}), 0.5, true), b = alpha_dropout(x, 0.5, true);
Tensor feature_dropout(const Tensor& input, double p, bool train);
// Keeps mean and variance of what SELU gives.
Tensor alpha_dropout(const Tensor& input, double p, bool train);

}  // namespace tenon

namespace tenon::nn {

// A function of the input, a probability and whether it trains.
class DropoutLayer : public Module {
 public:
  Tensor operator()(const Tensor& input) const;

 protected:
  using Function = Tensor (*)(const Tensor& input, double p, bool train);
  DropoutLayer(const char* kind, double p, Function function);

 private:
  double p_;
  Function function_;
};

//   Tensor a = nn::Dropout(0.1)(x), b = nn::AlphaDropout()(x), c = nn::Dropout1d()(ones({2, 3, 4}));
//   Tensor d = nn::Dropout2d()(ones({2, 3, 4, 4})), e = nn::Dropout3d()(ones({2, 3, 2, 2, 2}));
class Dropout : public DropoutLayer {
 public:
  explicit Dropout(double p = 0.5);
};
class Dropout1d : public DropoutLayer {
 public:
  explicit Dropout1d(double p = 0.5);
};
class Dropout2d : public DropoutLayer {
 public:
  explicit Dropout2d(double p = 0.5);
};
class Dropout3d : public DropoutLayer {
 public:
  explicit Dropout3d(double p = 0.5);
};
class AlphaDropout : public DropoutLayer {
 public:
  explicit AlphaDropout(double p = 0.5);
};

}  // namespace tenon::nn
