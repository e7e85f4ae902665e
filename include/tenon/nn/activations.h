// What stands between layers. Each is the operator of its name; arguments have PyTorch's names and defaults.
//
//   Tensor a = nn::ReLU()(x), b = nn::ReLU6()(x), c = nn::LeakyReLU(0.1)(x), d = nn::ELU(2.0)(x), e = nn::SELU()(x);
//   Tensor f = nn::CELU(2.0)(x), g = nn::GELU("tanh")(x), h = nn::SiLU()(x), i = nn::Mish()(x), j = nn::Sigmoid()(x);
//   Tensor k = nn::Tanh()(x), l = nn::LogSigmoid()(x), m = nn::Softplus(2.0)(x), n = nn::Softsign()(x);
//   Tensor o = nn::Softshrink(0.1)(x), p = nn::Hardshrink(0.1)(x), q = nn::Tanhshrink()(x);
//   Tensor r = nn::Hardtanh(-2, 2)(x), s = nn::Hardsigmoid()(x), t = nn::Hardswish()(x);
//   Tensor u = nn::Threshold(0.5, 0)(x), v = nn::GLU(0)(x), w = nn::Softmax(1)(x), z = nn::LogSoftmax(1)(x);
//   Tensor aa = nn::Softmin(1)(x), ab = nn::Softmax2d()(ones({1, 3, 2, 2}));
#pragma once

#include <tenon/nn/layer.h>

namespace tenon {

// x / (1 + |x|), and x - tanh(x).
//
//   Tensor a = softsign(x), b = tanhshrink(x), c = softmin(x, 1);
Tensor softsign(const Tensor& input);
Tensor tanhshrink(const Tensor& input);
// The softmax of -x.
Tensor softmin(const Tensor& input, int64_t dim);
// A leaky ReLU whose slope is drawn for each element in training, else the middle of the range.
//
//   Tensor noisy = rrelu(x, 0.1, 0.3, /*training=*/true);
Tensor rrelu(const Tensor& input, double lower = 1.0 / 8, double upper = 1.0 / 3, bool training = false);

}  // namespace tenon

namespace tenon::nn {

class ReLU : public FunctionLayer {
 public:
  ReLU();
};
class ReLU6 : public FunctionLayer {
 public:
  ReLU6();
};
class LeakyReLU : public FunctionLayer {
 public:
  explicit LeakyReLU(double negative_slope = 0.01);
};
class ELU : public FunctionLayer {
 public:
  explicit ELU(double alpha = 1);
};
class SELU : public FunctionLayer {
 public:
  SELU();
};
class CELU : public FunctionLayer {
 public:
  explicit CELU(double alpha = 1);
};
class GELU : public FunctionLayer {
 public:
  explicit GELU(std::string approximate = "none");
};
class SiLU : public FunctionLayer {
 public:
  SiLU();
};
class Mish : public FunctionLayer {
 public:
  Mish();
};
class Sigmoid : public FunctionLayer {
 public:
  Sigmoid();
};
class Tanh : public FunctionLayer {
 public:
  Tanh();
};
class LogSigmoid : public FunctionLayer {
 public:
  LogSigmoid();
};
class Softplus : public FunctionLayer {
 public:
  explicit Softplus(double beta = 1, double threshold = 20);
};
class Softsign : public FunctionLayer {
 public:
  Softsign();
};
class Softshrink : public FunctionLayer {
 public:
  explicit Softshrink(double lambd = 0.5);
};
class Hardshrink : public FunctionLayer {
 public:
  explicit Hardshrink(double lambd = 0.5);
};
class Tanhshrink : public FunctionLayer {
 public:
  Tanhshrink();
};
class Hardtanh : public FunctionLayer {
 public:
  explicit Hardtanh(double min_val = -1, double max_val = 1);
};
class Hardsigmoid : public FunctionLayer {
 public:
  Hardsigmoid();
};
class Hardswish : public FunctionLayer {
 public:
  Hardswish();
};
class Threshold : public FunctionLayer {
 public:
  Threshold(double threshold, double value);
};
// Half of dimension `dim`, gated by the other half.
class GLU : public FunctionLayer {
 public:
  explicit GLU(int64_t dim = -1);
};
class Softmax : public FunctionLayer {
 public:
  explicit Softmax(int64_t dim);
};
class LogSoftmax : public FunctionLayer {
 public:
  explicit LogSoftmax(int64_t dim);
};
class Softmin : public FunctionLayer {
 public:
  explicit Softmin(int64_t dim);
};
// Over the channels of images.
class Softmax2d : public FunctionLayer {
 public:
  Softmax2d();
};

// A slope that is learned: one, or one for each channel.
//
//   Tensor result = nn::PReLU(3)(x);
class PReLU : public Module {
 public:
  explicit PReLU(int64_t num_parameters = 1, double init = 0.25, Dtype dtype = kFloat32);
  Tensor operator()(const Tensor& input) const;

  Cell<Tensor> weight;
};

//   Tensor result = nn::RReLU(0.1, 0.3)(x);
class RReLU : public Module {
 public:
  explicit RReLU(double lower = 1.0 / 8, double upper = 1.0 / 3);
  Tensor operator()(const Tensor& input) const;

 private:
  double lower_, upper_;
};

}  // namespace tenon::nn
