// What networks put between their layers.
#include <tenon/ops/table.h>

#include <numbers>

namespace tenon::ops {
namespace {

void check_floats(const Arguments& arguments) {
  const Tensor& self = arguments.tensor("self");
  TENON_CHECK_IMPLEMENTED(is_floating(self.dtype()), "[{}] expected a floating point tensor, got {}",
                          arguments.op().brief_name(), self.description());
}

constexpr double kTanhScale = 0.7978845608028654;  // sqrt(2 / pi)
constexpr double kTanhCubic = 0.044715;

bool by_tanh(std::string_view approximate) {
  TENON_CHECK(approximate == "none" || approximate == "tanh",
              "[gelu] expected approximate to be 'none' or 'tanh', got '{}'", approximate);
  return approximate == "tanh";
}

Tensor gelu_of(const Tensor& self, std::string_view approximate) {
  TENON_CHECK_IMPLEMENTED(self.defined() && is_floating(self.dtype()),
                          "[gelu] expected a floating point tensor, got {}",
                          self.defined() ? self.description() : "an undefined one");
  // Halves are computed in float32 and rounded once.
  Tensor x = self.to(compute_dtype(self.dtype()));
  Tensor share =
      by_tanh(approximate) ? tanh((x + x * x * x * kTanhCubic) * kTanhScale) : erf(x * (1 / std::numbers::sqrt2));
  return (x * 0.5 * (share + 1)).to(self.dtype());
}

Tensor gelu_grad(Grad& g) {
  Dtype wide = compute_dtype(g.dtype("self"));
  Tensor x = g.saved("self").to(wide), grad = g.grad().to(wide), slope;
  if (by_tanh(g.argument("approximate").string())) {
    Tensor t = tanh((x + x * x * x * kTanhCubic) * kTanhScale);
    slope = (t + 1) * 0.5 + x * 0.5 * (1 - t * t) * ((x * x * (3 * kTanhCubic) + 1) * kTanhScale);
  } else {
    constexpr double density = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    slope = (erf(x * (1 / std::numbers::sqrt2)) + 1) * 0.5 + x * exp(x * x * -0.5) * density;
  }
  return (grad * slope).to(g.dtype("self"));
}

}  // namespace

OPS(activation) {
  op("gelu(Tensor self, *, str approximate='none') -> Tensor")
      .decompose(gelu_of)
      .grad("self", saves("self"), gelu_grad);
  op("silu(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return x * sigmoid(x); })
      .grad("self", saves("self"), [](Grad& g) {
        Tensor x = g.saved("self"), s = sigmoid(x);
        return g.grad() * (s * (1 + x * (1 - s)));
      });
  op("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane slope) { return select(x > 0.0, x, x * slope); })
      .check(check_floats)
      .grad("self", saves("self"), [](Grad& g) {
        return where(g.saved("self") > 0, g.grad(), g.grad() * g.argument("negative_slope").scalar());
      });
  op("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor")
      .pointwise(Promotion::Same,
                 [](Lane x, Lane alpha, Lane scale, Lane input_scale) {
                   return select(x > 0.0, x * scale, expm1(x * input_scale) * (alpha * scale));
                 })
      .check(check_floats)
      .grad("self", saves("self"), [](Grad& g) {
        Scalar alpha = g.argument("alpha").scalar(), scale = g.argument("scale").scalar(),
               input = g.argument("input_scale").scalar();
        Tensor x = g.saved("self");
        return where(x > 0, g.grad() * scale,
                     g.grad() * exp(x * input) * (alpha.to_double() * scale.to_double() * input.to_double()));
      });
  op("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor")
      .pointwise(Promotion::Self, [](Lane x, Lane low, Lane high) { return minimum(maximum(x, low), high); })
      .grad("self", saves("self"), [](Grad& g) {
        Tensor x = g.saved("self");
        Tensor inside = logical_and(x > g.argument("min_val").scalar(), x < g.argument("max_val").scalar());
        return where(inside, g.grad(), zeros_like(g.grad()));
      });
  op("relu6(Tensor self) -> Tensor").decompose([](const Tensor& self) { return hardtanh(self, 0, 6); });
  // Beyond the threshold it is the identity to within rounding.
  op("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor")
      .pointwise(Promotion::Same,
                 [](Lane x, Lane beta, Lane threshold) {
                   return select(x * beta > threshold, x, log1p(exp(x * beta)) / beta);
                 })
      .check(check_floats)
      .no_inplace()
      .grad("self", saves("self"), [](Grad& g) {
        Tensor scaled = g.saved("self") * g.argument("beta").scalar();
        return where(scaled > g.argument("threshold").scalar(), g.grad(), g.grad() * sigmoid(scaled));
      });
}

}  // namespace tenon::ops
