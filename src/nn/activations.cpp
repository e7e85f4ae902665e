#include <tenon/generated/ops.h>
#include <tenon/nn/activations.h>

#include <fmt/format.h>

namespace tenon {

Tensor softsign(const Tensor& input) { return input / (abs(input) + 1); }
Tensor tanhshrink(const Tensor& input) { return input - tanh(input); }
Tensor softmin(const Tensor& input, int64_t dim) { return softmax(neg(input), dim); }
Tensor rrelu(const Tensor& input, double lower, double upper, bool training) {
  TENON_CHECK_VALUE(lower <= upper, "[rrelu] expected a range of slopes, got {} to {}", lower, upper);
  if (!training) return leaky_relu(input, (lower + upper) / 2);
  Tensor slope = rand_like(input) * (upper - lower) + lower;
  return where(input > 0, input, input * slope);
}

}  // namespace tenon

namespace tenon::nn {
namespace {

std::string along(int64_t dim) { return fmt::format("dim={}", dim); }

}  // namespace

ReLU::ReLU() : FunctionLayer("ReLU", "", [](const Tensor& x) { return relu(x); }) {}
ReLU6::ReLU6() : FunctionLayer("ReLU6", "", [](const Tensor& x) { return relu6(x); }) {}
LeakyReLU::LeakyReLU(double slope)
    : FunctionLayer("LeakyReLU", fmt::format("negative_slope={}", slope),
                    [=](const Tensor& x) { return leaky_relu(x, slope); }) {}
ELU::ELU(double alpha)
    : FunctionLayer("ELU", fmt::format("alpha={}", alpha), [=](const Tensor& x) { return elu(x, alpha); }) {}
SELU::SELU() : FunctionLayer("SELU", "", [](const Tensor& x) { return selu(x); }) {}
CELU::CELU(double alpha)
    : FunctionLayer("CELU", fmt::format("alpha={}", alpha), [=](const Tensor& x) { return celu(x, alpha); }) {}
GELU::GELU(std::string approximate)
    : FunctionLayer("GELU", fmt::format("approximate='{}'", approximate),
                    [=](const Tensor& x) { return gelu(x, approximate); }) {}
SiLU::SiLU() : FunctionLayer("SiLU", "", [](const Tensor& x) { return silu(x); }) {}
Mish::Mish() : FunctionLayer("Mish", "", [](const Tensor& x) { return mish(x); }) {}
Sigmoid::Sigmoid() : FunctionLayer("Sigmoid", "", [](const Tensor& x) { return sigmoid(x); }) {}
Tanh::Tanh() : FunctionLayer("Tanh", "", [](const Tensor& x) { return tanh(x); }) {}
LogSigmoid::LogSigmoid() : FunctionLayer("LogSigmoid", "", [](const Tensor& x) { return log_sigmoid(x); }) {}
Softplus::Softplus(double beta, double threshold)
    : FunctionLayer("Softplus", fmt::format("beta={}, threshold={}", beta, threshold),
                    [=](const Tensor& x) { return softplus(x, beta, threshold); }) {}
Softsign::Softsign() : FunctionLayer("Softsign", "", [](const Tensor& x) { return softsign(x); }) {}
Softshrink::Softshrink(double lambd)
    : FunctionLayer("Softshrink", fmt::format("{}", lambd), [=](const Tensor& x) { return softshrink(x, lambd); }) {}
Hardshrink::Hardshrink(double lambd)
    : FunctionLayer("Hardshrink", fmt::format("{}", lambd), [=](const Tensor& x) { return hardshrink(x, lambd); }) {}
Tanhshrink::Tanhshrink() : FunctionLayer("Tanhshrink", "", [](const Tensor& x) { return tanhshrink(x); }) {}
Hardtanh::Hardtanh(double low, double high)
    : FunctionLayer("Hardtanh", fmt::format("min_val={}, max_val={}", low, high),
                    [=](const Tensor& x) { return hardtanh(x, low, high); }) {}
Hardsigmoid::Hardsigmoid() : FunctionLayer("Hardsigmoid", "", [](const Tensor& x) { return hardsigmoid(x); }) {}
Hardswish::Hardswish() : FunctionLayer("Hardswish", "", [](const Tensor& x) { return hardswish(x); }) {}
Threshold::Threshold(double edge, double value)
    : FunctionLayer("Threshold", fmt::format("threshold={}, value={}", edge, value),
                    [=](const Tensor& x) { return threshold(x, edge, value); }) {}
GLU::GLU(int64_t dim) : FunctionLayer("GLU", along(dim), [=](const Tensor& x) { return glu(x, dim); }) {}
Softmax::Softmax(int64_t dim)
    : FunctionLayer("Softmax", along(dim), [=](const Tensor& x) { return softmax(x, dim); }) {}
LogSoftmax::LogSoftmax(int64_t dim)
    : FunctionLayer("LogSoftmax", along(dim), [=](const Tensor& x) { return log_softmax(x, dim); }) {}
Softmin::Softmin(int64_t dim)
    : FunctionLayer("Softmin", along(dim), [=](const Tensor& x) { return softmin(x, dim); }) {}
Softmax2d::Softmax2d() : FunctionLayer("Softmax2d", "", [](const Tensor& x) { return softmax(x, -3); }) {}

PReLU::PReLU(int64_t num_parameters, double init, Dtype dtype) {
  TENON_CHECK_VALUE(num_parameters > 0, "[PReLU] expected at least one parameter, got {}", num_parameters);
  weight = parameter("weight", full({num_parameters}, init, TensorOptions(dtype)));
  describe("PReLU", fmt::format("num_parameters={}", num_parameters));
}
Tensor PReLU::operator()(const Tensor& input) const {
  return run(input, [&](const Tensor& x) { return prelu(x, weight.get()); });
}

RReLU::RReLU(double lower, double upper) : lower_(lower), upper_(upper) {
  describe("RReLU", fmt::format("lower={}, upper={}", lower, upper));
}
Tensor RReLU::operator()(const Tensor& input) const {
  return run(input, [&](const Tensor& x) { return rrelu(x, lower_, upper_, is_training()); });
}

}  // namespace tenon::nn
