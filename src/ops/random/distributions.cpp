// Random numbers of several distributions, for the sake of the in-place forms, which are ATen's; and draws of classes.
#include "ops/random/generator_argument.h"

#include <tenon/dispatch/registration.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <cmath>
#include <numbers>

namespace tenon::ops {
namespace {

// Numbers of [0, 1) in the shape of `self`, in which what follows is computed.
Tensor uniform_like(const Tensor& self, const Generator* generator, const char* op_name) {
  refuse(generator, op_name);
  TENON_CHECK(self.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  const Dtype wide = is_floating(self.dtype()) ? compute_dtype(self.dtype()) : kFloat32;
  return rand(self.sym_sizes(), TensorOptions(wide, self.device()));
}

Tensor normal_like(const Tensor& self, const Generator* generator, const char* op_name) {
  refuse(generator, op_name);
  TENON_CHECK(self.defined() && is_floating(self.dtype()), "[{}] expected a floating point tensor, got {}", op_name,
              self.defined() ? self.description() : "an undefined one");
  return randn(self.sym_sizes(), TensorOptions(compute_dtype(self.dtype()), self.device()));
}

void check_real(const Tensor& self, const char* op_name) {
  TENON_CHECK(is_floating(self.dtype()), "[{}] expected a floating point tensor, got {}", op_name, self.description());
}

// 1 where something is kept; the same for a whole plane behind the channels, if `by_feature`.
Tensor kept(const Tensor& input, double p, bool by_feature, const char* op_name) {
  TENON_CHECK(p >= 0 && p <= 1, "[{}] expected a probability from 0 to 1, got {}", op_name, p);
  SymInts sizes = input.sym_sizes();
  TENON_CHECK(!by_feature || sizes.size() >= 2, "[{}] expected a tensor of at least 2 dimensions, got {}", op_name,
              input.description());
  for (size_t dim = 2; by_feature && dim < sizes.size(); ++dim) sizes[dim] = 1;
  const Dtype wide = compute_dtype(input.dtype());
  return (rand(sizes, TensorOptions(wide, input.device())) >= p).to(wide);
}

const Tensor& real(const Tensor& input, const char* op_name) {
  TENON_CHECK(input.defined() && is_floating(input.dtype()), "[{}] expected a floating point tensor, got {}", op_name,
              input.defined() ? input.description() : "an undefined one");
  return input;
}

// What is dropped has SELU's value far to the left; then mean and variance are put back where they were.
Tensor alpha_dropped(const Tensor& input, double p, bool train, bool by_feature, const char* op_name) {
  if (!train || p == 0 || decide_or(real(input, op_name).numel() == 0, false)) return real(input, op_name);
  if (p == 1) return real(input, op_name) * 0;
  constexpr double kAlpha = 1.7580993408473766;
  Tensor noise = kept(input, p, by_feature, op_name);
  const double scale = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  return (input.to(noise.dtype()) * noise * scale + ((noise - 1) * (kAlpha * scale) + kAlpha * scale * p))
      .to(input.dtype());
}

// `draws` classes for each row of weights: where a random share falls into their running sums, or, each at most once,
// those whose weight over an exponential number is largest.
Tensor draw_classes(const Tensor& self, const SymInt& draws, bool replacement, Generator* generator) {
  refuse(generator, "multinomial");
  TENON_CHECK(self.defined() && is_floating(self.dtype()) && (self.dim() == 1 || self.dim() == 2),
              "[multinomial] expected floating point weights of one or two dimensions, got {}",
              self.defined() ? self.description() : "an undefined one");
  TENON_CHECK(expect(draws > 0), "[multinomial] expected at least one sample, got {}", draws.str());
  TENON_CHECK(replacement || expect(draws <= self.size(-1)),
              "[multinomial] expected at most {} samples, as none is drawn twice, got {}", self.size(-1).str(),
              draws.str());
  const TensorOptions options(compute_dtype(self.dtype()), self.device());
  Tensor weights = self.detach().to(*options.dtype);
  if (!replacement) {
    Tensor exponential = -log(1.0 - rand(self.sym_sizes(), options));
    return std::get<1>(topk(weights / exponential, draws));
  }
  SymInts sizes = self.sym_sizes();
  sizes.back() = draws;
  Tensor sums = cumsum(weights, -1);
  Tensor found = searchsorted(sums, rand(sizes, options) * narrow(sums, -1, self.size(-1) - 1, 1), false, true);
  return clamp_max(found, Scalar(self.size(-1) - 1));
}

// What is below 0 times a random slope each.
Tensor rectified_with_noise(const Tensor& self, const Tensor& noise, const Scalar& lower, const Scalar& upper,
                            bool training, Generator* generator) {
  const double low = lower.to_double(), high = upper.to_double();
  TENON_CHECK(low <= high && std::isfinite(high - low), "[rrelu_with_noise] expected slopes in order, got {} and {}",
              low, high);
  if (!training) return leaky_relu(real(self, "rrelu_with_noise"), (low + high) / 2);
  TENON_CHECK(noise.defined() && noise.dtype() == self.dtype(), "[rrelu_with_noise] expected noise of {}, got {}",
              name(self.dtype()), noise.defined() ? noise.description() : "an undefined tensor");
  Tensor slope = uniform_like(real(self, "rrelu_with_noise"), generator, "rrelu_with_noise") * (high - low) + low;
  Tensor factor = where(self.detach() <= 0, slope, ones_like(slope)).to(self.dtype());
  copy_(noise, factor);
  return self * factor;
}

// In place: no row, because it does not follow from one.
[[maybe_unused]] const bool registered = [] {
  dispatch::Operator& op = dispatch::define(
      schema::parse("aten::rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, Scalar lower=0.125, Scalar "
                    "upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor(a!)"));
  dispatch::add_tags(op, {dispatch::Tag::pt2_compliant_tag});
  dispatch::register_composite(op, dispatch::Composite::Implicit,
                               dispatch::boxed([](const Tensor& self, const Tensor& noise, const Scalar& lower,
                                                  const Scalar& upper, bool training, Generator* generator) {
                                 Tensor slopes = training ? noise : empty_like(self);
                                 const double low = lower.to_double(), high = upper.to_double();
                                 const Scalar middle = (low + high) / 2;
                                 rectified_with_noise(self.detach(), slopes, training ? lower : middle,
                                                      training ? upper : middle, true, generator);
                                 // What is multiplied by keeps no value of `self` for backward.
                                 return mul_(self, slopes.detach().clone());
                               }));
  return true;
}();

}  // namespace

OPS(distributions) {
  // In place alone.
  op("uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor")
      .decompose([](const Tensor& self, double from, double to, Generator* generator) {
        Tensor drawn = uniform_like(self, generator, "uniform_");
        check_real(self, "uniform_");
        TENON_CHECK(from <= to && std::isfinite(to - from), "[uniform_] expected finite bounds in order, got {} and {}",
                    from, to);
        return (drawn * (to - from) + from).to(self.dtype());
      })
      .with_inplace();
  // In place alone.
  op("normal(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor")
      .decompose([](const Tensor& self, double mean, double std, Generator* generator) {
        TENON_CHECK(std >= 0, "[normal_] expected a deviation of at least 0, got {}", std);
        return (normal_like(self, generator, "normal_") * std + mean).to(self.dtype());
      })
      .with_inplace();
  // In place alone.
  op("log_normal(Tensor self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor")
      .decompose([](const Tensor& self, double mean, double std, Generator* generator) {
        TENON_CHECK(std > 0, "[log_normal_] expected a deviation above 0, got {}", std);
        return exp(normal_like(self, generator, "log_normal_") * std + mean).to(self.dtype());
      })
      .with_inplace();
  // In place alone.
  op("cauchy(Tensor self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor")
      .decompose([](const Tensor& self, double median, double sigma, Generator* generator) {
        Tensor drawn = uniform_like(self, generator, "cauchy_");
        check_real(self, "cauchy_");
        TENON_CHECK(sigma > 0, "[cauchy_] expected a width above 0, got {}", sigma);
        return (tan((drawn - 0.5) * std::numbers::pi) * sigma + median).to(self.dtype());
      })
      .with_inplace();
  // In place alone.
  op("exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor")
      .decompose([](const Tensor& self, double lambd, Generator* generator) {
        Tensor drawn = uniform_like(self, generator, "exponential_");
        check_real(self, "exponential_");
        TENON_CHECK(lambd > 0, "[exponential_] expected a rate above 0, got {}", lambd);
        return (log1p(-drawn) * (-1.0 / lambd)).to(self.dtype());
      })
      .with_inplace();
  // In place alone.
  op("geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor")
      .decompose([](const Tensor& self, double p, Generator* generator) {
        Tensor drawn = uniform_like(self, generator, "geometric_");
        TENON_CHECK(p > 0 && p < 1, "[geometric_] expected a probability between 0 and 1, got {}", p);
        return clamp_min(ceil(log1p(-drawn) * (1.0 / std::log1p(-p))), 1).to(self.dtype());
      })
      .with_inplace();
  op("normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor")
      .decompose([](const Tensor& mean, double std, Generator* generator) {
        TENON_CHECK(std >= 0, "[normal] expected a deviation of at least 0, got {}", std);
        return (normal_like(mean, generator, "normal") * std + mean.detach()).to(mean.dtype());
      });
  op("normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor")
      .decompose([](double mean, const Tensor& std, Generator* generator) {
        return (normal_like(std, generator, "normal") * std.detach() + mean).to(std.dtype());
      });
  op("normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor")
      .decompose([](const Tensor& mean, const Tensor& std, Generator* generator) {
        TENON_CHECK(mean.defined() && std.defined(), "[normal] expected a tensor, got an undefined one");
        const SymInts shapes[] = {mean.sym_sizes(), std.sym_sizes()};
        Tensor drawn = normal_like(expand(mean, broadcast(shapes, "normal")), generator, "normal");
        return (drawn * std.detach() + mean.detach()).to(mean.dtype());
      });
  op("normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
      .decompose([](double mean, double std, const SymInts& size, Generator* generator, std::optional<Dtype> dtype,
                    std::optional<Layout>, std::optional<Device> device, std::optional<bool>) {
        refuse(generator, "normal");
        TENON_CHECK(std >= 0, "[normal] expected a deviation of at least 0, got {}", std);
        TensorOptions options;
        options.dtype = dtype;
        options.device = device;
        return randn(size, options) * std + mean;
      });
  // For graphs alone.
  op("alpha_dropout(Tensor input, float p, bool train) -> Tensor")
      .decompose([](const Tensor& input, double p, bool train) {
        return alpha_dropped(input, p, train, false, "alpha_dropout");
      });
  // For graphs alone.
  op("feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor")
      .decompose([](const Tensor& input, double p, bool train) {
        return alpha_dropped(input, p, train, true, "feature_alpha_dropout");
      });
  // For graphs alone.
  op("feature_dropout(Tensor input, float p, bool train) -> Tensor")
      .decompose([](const Tensor& input, double p, bool train) {
        if (!train || p == 0 || decide_or(real(input, "feature_dropout").numel() == 0, false))
          return real(input, "feature_dropout");
        if (p == 1) return real(input, "feature_dropout") * 0;
        Tensor noise = kept(real(input, "feature_dropout"), p, true, "feature_dropout");
        return (input.to(noise.dtype()) * noise / (1 - p)).to(input.dtype());
      });
  // `noise` becomes the factors. Without training it is left alone.
  // For graphs alone.
  op("rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool "
     "training=False, Generator? generator=None) -> Tensor")
      .decompose(rectified_with_noise);
  // For graphs alone.
  op("rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool "
     "training, bool self_is_result) -> Tensor")
      .decompose([](const Tensor& grad, const Tensor& self, const Tensor& noise, const Scalar& lower,
                    const Scalar& upper, bool training, bool) {
        const double low = lower.to_double(), high = upper.to_double();
        if (training && high - low > 1e-6) return real(grad, "rrelu_with_noise_backward") * noise;
        return where(real(self, "rrelu_with_noise_backward") > 0, grad, grad * ((low + high) / 2));
      });
  // For graphs alone.
  op("rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? "
     "generator=None) -> Tensor")
      .decompose([](const Tensor& self, const Scalar& lower, const Scalar& upper, bool training, Generator* generator) {
        const double low = lower.to_double(), high = upper.to_double();
        TENON_CHECK(low <= high && std::isfinite(high - low), "[rrelu] expected slopes in order, got {} and {}", low,
                    high);
        if (!training) return leaky_relu(real(self, "rrelu"), (low + high) / 2);
        Tensor slope = uniform_like(real(self, "rrelu"), generator, "rrelu") * (high - low) + low;
        return where(self > 0, self, (self.to(slope.dtype()) * slope).to(self.dtype()));
      });
  op("multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor")
      .decompose(draw_classes);
}

}  // namespace tenon::ops
