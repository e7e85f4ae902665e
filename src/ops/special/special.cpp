// Functions with a name of their own: the error function's relatives, those of the gamma function, and others.
#include <tenon/kernels/special.h>
#include <tenon/ops/table.h>

#include <limits>
#include <numbers>

namespace tenon::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kSlope = 2 * std::numbers::inv_sqrtpi;  // of erf at 0

// Computed in float64 and rounded once.
template <typename Body>
Lane in_double(Lane x, Body body) {
  Lane result = body(cast(x, kFloat64));
  return x.dtype() == kFloat64 ? result : cast(result, x.dtype());
}

// A first guess (Winitzki's), and three steps of Halley's, each with three times as many right digits. Near 1, erf has
// lost what erfc still has.
Lane inverse_error_function(Lane y) {
  constexpr double a = 0.147;
  Lane size = abs(y), rest = 1.0 - size, logarithm = log(rest) + log1p(size);
  Lane middle = logarithm * 0.5 + 2 / (std::numbers::pi * a);
  Lane x = sqrt(sqrt(middle * middle - logarithm / a) - middle);
  for (int step = 0; step < 3; ++step) {
    Lane off = select(size < 0.5, erf(x) - size, rest - erfc(x));
    Lane move = off / (exp(-(x * x)) * kSlope);
    x = x - move / (x * move + 1.0);
  }
  x = select(size == 1.0, number(y, kInf), select(size > 1.0, number(y, std::numeric_limits<double>::quiet_NaN()), x));
  return select(y < 0.0, -x, select(y == 0.0, y, x));
}

// By the series for large arguments, after eight steps of digamma(x) = digamma(x + 1) - 1/x; left of 0 by reflection.
Lane digamma_of(Lane given) {
  Lane left = given < 0.0, x = select(left, 1.0 - given, given);
  Lane steps = reciprocal(x);
  for (int step = 1; step < 8; ++step) steps = steps + reciprocal(x + static_cast<double>(step));
  Lane far = x + 8.0, z = reciprocal(far * far);
  constexpr double terms[] = {1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12};
  Lane series = number(x, terms[0]);
  for (size_t at = 1; at < std::size(terms); ++at) series = series * z + terms[at];
  Lane right = log(far) - 0.5 / far - z * series - steps;
  Lane part = given - trunc(given);
  Lane reflected = right - std::numbers::pi / tan(part * std::numbers::pi);
  Lane nothing = number(x, std::numeric_limits<double>::quiet_NaN());
  Lane result = select(left, select(part == 0.0, nothing, reflected), right);
  return select(given == 0.0, -reciprocal(given), result);
}

Tensor log_multigamma(const Tensor& self, int64_t p) {
  TENON_CHECK(self.defined(), "[mvlgamma] expected a tensor, got an undefined one");
  constexpr int64_t kMost = 1 << 20;  // a matrix of that size is out of reach
  TENON_CHECK(p >= 1 && p <= kMost, "[mvlgamma] expected p to be at least 1 and at most {}, got {}", kMost, p);
  Tensor x = is_floating(self.dtype()) ? self : self.to(kFloat32);
  Tensor halves = arange(p, TensorOptions(x.dtype(), x.device())) / 2;
  auto order = static_cast<double>(p);
  return sum(lgamma(unsqueeze(x, -1) - halves), Ints{-1}, false) + order * (order - 1) / 4 * std::log(std::numbers::pi);
}

Tensor log_odds(const Tensor& self, std::optional<double> eps) {
  TENON_CHECK(self.defined(), "[logit] expected a tensor, got an undefined one");
  Tensor x = is_floating(self.dtype()) ? self : self.to(kFloat32);
  if (eps) x = clamp(x, Scalar(*eps), Scalar(1 - *eps));
  return log(x / (1 - x));
}

std::vector<TensorMeta> incomplete_gamma_shape(const Arguments& arguments) {
  const Tensor inputs[] = {arguments.tensor("self"), arguments.tensor("other")};
  for (const Tensor& input : inputs)
    TENON_CHECK(input.defined(), "[{}] expected a tensor, got an undefined one", arguments.op().brief_name());
  TENON_CHECK(inputs[0].device() == inputs[1].device(), "[{}] expected all tensors on {}, got one on {}",
              arguments.op().brief_name(), inputs[0].device().str(), inputs[1].device().str());
  Dtype dtype = result_type(arguments);
  TENON_CHECK_IMPLEMENTED(is_floating(dtype), "[{}] expected floating point tensors, got numbers of {}",
                          arguments.op().brief_name(), name(dtype));
  const SymInts shapes[] = {inputs[0].sym_sizes(), inputs[1].sym_sizes()};
  SymInts sizes = broadcast(shapes, arguments.op().brief_name());
  SymInts strides = pointwise_strides(sizes, inputs, {inputs[0].dtype() != dtype, inputs[1].dtype() != dtype});
  return {TensorMeta{sizes, strides, dtype, inputs[0].device()}};
}

// How fast the lower function grows: x^(a - 1) e^-x / gamma(a). That of the parameter has no closed form.
Tensor incomplete_gamma_slope(Grad& g) {
  Tensor a = g.saved("self"), x = g.saved("other");
  Tensor slope = g.grad() * exp((a - 1) * log(x) - x - lgamma(a));
  return sum_to_size(slope, g.sizes("other")).to(g.dtype("other"));
}

Lane sinc_of(Lane x) {
  Lane angle = x * std::numbers::pi;
  return select(x == 0.0, number(x, 1), sin(angle) / angle);
}

}  // namespace

OPS(special) {
  op("erfc(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return erfc(x); })
      .grad("self", saves("self"), [](Grad& g) {
        Tensor x = g.saved("self");
        return g.grad() * (exp(-(x * x)) * -kSlope);
      });
  op("erfinv(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane y) { return in_double(y, inverse_error_function); })
      .grad("self", saves("result"), [](Grad& g) {
        Tensor x = g.saved("result");
        return g.grad() * (exp(x * x) / kSlope);
      });
  op("lgamma(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return lgamma(x); })
      .grad("self", saves("self"), [](Grad& g) { return g.grad() * digamma(g.saved("self")); });
  op("digamma(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return in_double(x, digamma_of); })
      .grad("self", saves("self"), [](Grad& g) { return g.grad() * polygamma(1, g.saved("self")); });
  op("polygamma(int n, Tensor self) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        kernels::polygamma(arguments.integer("n"), arguments.tensor("self"), outputs[0]);
      })
      .shape([](const Arguments& arguments) {
        const Tensor& self = arguments.tensor("self");
        TENON_CHECK(self.defined(), "[polygamma] expected a tensor, got an undefined one");
        TENON_CHECK(arguments.integer("n") >= 0, "[polygamma] expected n to be at least 0, got {}",
                    arguments.integer("n"));
        Dtype dtype = is_floating(self.dtype()) ? self.dtype() : kFloat32;
        return std::vector{TensorMeta::contiguous(self.sym_sizes(), dtype, self.device())};
      })
      .grad("self", saves("self"),
            [](Grad& g) { return g.grad() * polygamma(g.argument("n").integer() + 1, g.saved("self")); });
  op("mvlgamma(Tensor self, int p) -> Tensor").decompose(log_multigamma).with_inplace();
  op("igamma(Tensor self, Tensor other) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        kernels::incomplete_gamma(arguments.tensor("self"), arguments.tensor("other"), false, outputs[0]);
      })
      .shape(incomplete_gamma_shape)
      .with_inplace()
      .grad_not_implemented("self", "igamma: input")
      .grad("other", saves("self", "other"), incomplete_gamma_slope);
  op("igammac(Tensor self, Tensor other) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        kernels::incomplete_gamma(arguments.tensor("self"), arguments.tensor("other"), true, outputs[0]);
      })
      .shape(incomplete_gamma_shape)
      .with_inplace()
      .grad_not_implemented("self", "igammac: input")
      .grad("other", saves("self", "other"), [](Grad& g) { return -incomplete_gamma_slope(g); });
  op("logit(Tensor self, float? eps=None) -> Tensor").decompose(log_odds).with_inplace();
  op("sinc(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat, [](Lane x) { return sinc_of(x); })
      .grad("self", saves("self"), [](Grad& g) {
        Tensor x = g.saved("self"), angle = x * std::numbers::pi;
        Tensor slope = (angle * cos(angle) - sin(angle)) / (angle * x);
        return g.grad() * where(x == 0, zeros_like(x), slope);
      });
  op("special_entr(Tensor self) -> Tensor")
      .pointwise(Promotion::ToFloat,
                 [](Lane x) {
                   Lane below = number(x, -kInf), none = number(x, 0);
                   return select(isnan(x), x, select(x > 0.0, -x * log(x), select(x == 0.0, none, below)));
                 })
      .no_inplace()
      .grad("self", saves("self"), [](Grad& g) { return g.grad() * (-log(g.saved("self")) - 1); });
  op("special_ndtr(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    TENON_CHECK(self.defined(), "[special_ndtr] expected a tensor, got an undefined one");
    return erfc(self * -std::numbers::sqrt2 / 2) * 0.5;
  });
}

}  // namespace tenon::ops
