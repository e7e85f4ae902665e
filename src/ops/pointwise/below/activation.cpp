// Gradients of activations as operators, and forward with what backward needs, as graphs below autograd have them. Rows
// of this folder have no C++ function: a program calls the operator and autograd does the rest; a graph that was made
// elsewhere names them.
#include <tenon/ops/table.h>

#include <cmath>
#include <numbers>

namespace tenon::ops {
namespace {

// A gradient and what its activation was given, or gave: in one dtype, halves in float32 and rounded once.
struct Slope {
  Dtype result;
  Tensor grad, x;
  Slope(const Tensor& grad_output, const Tensor& self, std::string_view op_name)
      : result(promote(grad_output.dtype(), self.dtype())),
        grad(grad_output.to(compute_dtype(result))),
        x(self.to(compute_dtype(result))) {
    TENON_CHECK_IMPLEMENTED(is_floating(result), "[{}] expected floating point tensors, got {} and {}", op_name,
                            grad_output.description(), self.description());
  }
  Tensor times(const Tensor& slope) const { return (grad * slope).to(result); }
  Tensor number(const Scalar& value) const { return full(SymInts{}, value, TensorOptions(x.dtype(), x.device())); }
};

Tensor gelu_slope(const Tensor& x, std::string_view approximate) {
  TENON_CHECK(approximate == "none" || approximate == "tanh",
              "[gelu_backward] expected approximate to be 'none' or 'tanh', got '{}'", approximate);
  if (approximate == "none") {
    Tensor below = (erf(x * std::numbers::sqrt2 * 0.5) + 1) * 0.5;
    return below + x * (exp(x * x * -0.5) * (0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi));
  }
  constexpr double kCubic = 0.044715;
  const double factor = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  Tensor t = tanh((x + x * x * x * kCubic) * factor);
  return (t + 1) * 0.5 + x * (1 - t * t) * (x * x * (3 * kCubic) + 1) * (0.5 * factor);
}

}  // namespace

OPS(activation_backward) {
  op("_prelu_kernel(Tensor self, Tensor weight) -> Tensor").decompose([](const Tensor& self, const Tensor& weight) {
    return where(self > 0, self, self * weight);
  });
  op("gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor")
      .decompose([](const Tensor& grad, const Tensor& self, std::string_view approximate) {
        Slope s(grad, self, "gelu_backward");
        return s.times(gelu_slope(s.x, approximate));
      });
  op("silu_backward(Tensor grad_output, Tensor self) -> Tensor").decompose([](const Tensor& grad, const Tensor& self) {
    Slope s(grad, self, "silu_backward");
    Tensor y = sigmoid(s.x);
    return s.times(y * (s.x * (1 - y) + 1));
  });
  op("sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor")
      .decompose([](const Tensor& grad, const Tensor& output) {
        Slope s(grad, output, "sigmoid_backward");
        return s.times((1 - s.x) * s.x);
      });
  op("tanh_backward(Tensor grad_output, Tensor output) -> Tensor")
      .decompose([](const Tensor& grad, const Tensor& output) {
        Slope s(grad, output, "tanh_backward");
        return s.times(1 - s.x * s.x);
      });
  op("hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor")
      .decompose([](const Tensor& grad, const Tensor& self, const Scalar& low, const Scalar& high) {
        Slope s(grad, self, "hardtanh_backward");
        return where(logical_or(s.x <= low, s.x >= high), s.number(0), s.grad).to(s.result);
      });
  op("hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor")
      .decompose([](const Tensor& grad, const Tensor& self) {
        Slope s(grad, self, "hardsigmoid_backward");
        return where(logical_and(s.x > -3.0, s.x < 3.0), s.grad / 6, s.number(0)).to(s.result);
      });
  op("hardswish_backward(Tensor grad_output, Tensor self) -> Tensor")
      .decompose([](const Tensor& grad, const Tensor& self) {
        Slope s(grad, self, "hardswish_backward");
        Tensor inside = s.grad * (s.x / 3 + 0.5);
        return where(s.x > -3.0, where(s.x < 3.0, inside, s.grad), s.number(0)).to(s.result);
      });
  op("leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor")
      .decompose([](const Tensor& grad, const Tensor& self, const Scalar& slope, bool is_result) {
        Slope s(grad, self, "leaky_relu_backward");
        TENON_CHECK(!is_result || slope.is_symbolic() || slope.to_double() >= 0,
                    "[leaky_relu_backward] a result tells its input's sign only for a slope of at least 0, got {}",
                    slope.str());
        return where(s.x > 0, s.grad, s.grad * slope).to(s.result);
      });
  op("elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor "
     "self_or_result) -> Tensor")
      .decompose([](const Tensor& grad, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale,
                    bool is_result, const Tensor& self_or_result) {
        Slope s(grad, self_or_result, "elu_backward");
        Scalar height(alpha.sym_real() * scale.sym_real());
        Tensor falling = is_result ? (s.x + height) * input_scale : exp(s.x * input_scale) * height * input_scale;
        return s.times(where(s.x <= 0, falling, s.number(scale)));
      });
  op("softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor")
      .decompose([](const Tensor& grad, const Tensor& self, const Scalar& beta, const Scalar& threshold) {
        Slope s(grad, self, "softplus_backward");
        Tensor scaled = s.x * beta;
        return where(scaled > threshold, s.grad, s.grad * sigmoid(scaled)).to(s.result);
      });
  op("mish_backward(Tensor grad_output, Tensor self) -> Tensor").decompose([](const Tensor& grad, const Tensor& self) {
    Slope s(grad, self, "mish_backward");
    Tensor t = tanh(softplus(s.x));
    return s.times(t + s.x * sigmoid(s.x) * (1 - t * t));
  });
  // The logarithm of the sigmoid, and exp(-|x|), which its gradient needs.
  op("log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)").decompose([](const Tensor& self) {
    TENON_CHECK(self.defined() && is_floating(self.dtype()),
                "[log_sigmoid_forward] expected a floating point tensor, got {}",
                self.defined() ? self.description() : "an undefined one");
    Tensor x = self.to(compute_dtype(self.dtype())), buffer = exp(-abs(x));
    return std::tuple((clamp_max(x, 0) - log1p(buffer)).to(self.dtype()), buffer.to(self.dtype()));
  });
}

}  // namespace tenon::ops
