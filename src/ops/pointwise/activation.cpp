// What networks put between their layers.
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

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

Lane clipped(Lane x, double low, double high) { return minimum(maximum(x, number(x, low)), number(x, high)); }

Tensor zero_where(const Tensor& condition, const Tensor& otherwise) {
  return where(condition, zeros_like(otherwise), otherwise);
}

// One weight for all elements, or one for each channel (dimension 1; of a vector, there is one channel).
Tensor prelu_of(const Tensor& self, const Tensor& weight) {
  TENON_CHECK(self.defined() && weight.defined(), "[prelu] expected a tensor, got an undefined one");
  TENON_CHECK(self.dtype() == weight.dtype() && is_floating(self.dtype()),
              "[prelu] expected floating point tensors of one dtype, got {} and {}", self.description(),
              weight.description());
  TENON_CHECK(weight.dim() <= 1, "[prelu] expected a weight of at most one dimension, got {}", weight.description());
  SymInt channels = self.dim() > 1 ? self.size(1) : SymInt(1);
  bool single = weight.dim() == 0 || statically_true(weight.size(0) == 1);
  TENON_CHECK(single || same_size(weight.size(0), channels),
              "[prelu] expected a weight for each of {} channels, got {}", channels.str(), weight.description());
  SymInts sizes(static_cast<size_t>(self.dim()), SymInt(1));
  if (!single) sizes[1] = channels;
  return where(self > 0, self, self * reshape(weight, sizes));
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
      .check([](const Arguments& arguments) {
        TENON_CHECK(arguments.tensor("self").dtype() != kBool, "[{}] expected a tensor of numbers, got {}",
                    arguments.op().brief_name(), arguments.tensor("self").description());
      })
      .grad("self", saves("self"), [](Grad& g) {
        Tensor x = g.saved("self");
        // A NaN is not outside, and passes the gradient on.
        Tensor outside = logical_or(x <= g.argument("min_val").scalar(), x >= g.argument("max_val").scalar());
        return where(outside, zeros_like(g.grad()), g.grad());
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
  op("hardsigmoid(Tensor self) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x) { return clipped(x + 3.0, 0, 6) / 6.0; })
      .check(check_floats)
      .grad("self", saves("self"), [](Grad& g) {
        Tensor x = g.saved("self");
        return where(logical_and(x > -3, x < 3), g.grad() / 6, zeros_like(g.grad()));
      });
  op("hardswish(Tensor self) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x) { return x * clipped(x + 3.0, 0, 6) / 6.0; })
      .check(check_floats)
      .grad("self", saves("self"), [](Grad& g) {
        Tensor x = g.saved("self");
        return zero_where(x <= -3, where(x < 3, g.grad() * (x / 3 + 0.5), g.grad()));
      });
  op("mish(Tensor self) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x) { return x * tanh(select(x > 20.0, x, log1p(exp(x)))); })
      .check(check_floats)
      .grad("self", saves("self"), [](Grad& g) {
        Tensor x = g.saved("self"), t = tanh(softplus(x));
        return g.grad() * (t + x * sigmoid(x) * (1 - t * t));
      });
  op("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x, Lane edge) { return select((x >= -edge) & (x <= edge), number(x, 0), x); })
      .check(check_floats)
      .no_inplace()
      .grad("self", saves("self"), [](Grad& g) {
        Tensor x = g.saved("self");
        return zero_where(abs(x) <= g.argument("lambd").scalar(), g.grad());
      });
  // 0 times x: a NaN stays one.
  op("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor")
      .pointwise(Promotion::Same,
                 [](Lane x, Lane edge) { return select(x > edge, x - edge, select(x < -edge, x + edge, x * 0.0)); })
      .check(check_floats)
      .no_inplace()
      .grad("self", saves("self"), [](Grad& g) {
        Tensor x = g.saved("self");
        return zero_where(abs(x) <= g.argument("lambd").scalar(), g.grad());
      });
  op("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor")
      .pointwise(Promotion::Self, [](Lane x, Lane edge, Lane value) { return select(x <= edge, value, x); })
      .grad("self", saves("self"),
            [](Grad& g) { return threshold_backward(g.grad(), g.saved("self"), g.argument("threshold").scalar()); });
  op("log_sigmoid(Tensor self) -> Tensor")
      .pointwise(Promotion::Same, [](Lane x) { return minimum(x, number(x, 0)) - log1p(exp(-abs(x))); })
      .check(check_floats)
      .no_inplace()
      .grad("self", saves("self"), [](Grad& g) { return g.grad() * sigmoid(-g.saved("self")); });
  // The scale and slope that keep mean 0 and variance 1 from layer to layer.
  op("selu(Tensor self) -> Tensor")
      .decompose([](const Tensor& self) {
        return elu(self, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946);
      })
      .with_inplace();
  op("celu(Tensor self, Scalar alpha=1.0) -> Tensor")
      .decompose([](const Tensor& self, const Scalar& alpha) {
        TENON_CHECK(alpha.to_double() != 0, "[celu] expected an alpha other than 0");
        return elu(self, alpha, 1, 1 / alpha.to_double());
      })
      .with_inplace();
  // Example: prelu(x, ones({3}));
  op("prelu(Tensor self, Tensor weight) -> Tensor").decompose(prelu_of);
  // The first half along `dim`, gated by the second.
  // Example: glu(x, 0);
  op("glu(Tensor self, int dim=-1) -> Tensor").decompose([](const Tensor& self, int64_t dim) {
    TENON_CHECK(self.defined() && self.dim() > 0 && is_floating(self.dtype()),
                "[glu] expected a floating point tensor of at least one dimension, got {}",
                self.defined() ? self.description() : "an undefined one");
    int64_t at = wrap_dim(dim, self.dim(), "glu");
    TENON_CHECK(bool(self.size(at) % 2 == 0), "[glu] expected an even size of dimension {}, got {}", dim,
                self.description());
    SymInt half = self.size(at) / 2;
    return narrow(self, at, 0, half) * sigmoid(narrow(self, at, half, half));
  });
}

}  // namespace tenon::ops
