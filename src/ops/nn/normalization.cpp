// Normalisation by the statistics of a batch, or of the last dimensions of each element of it.
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

// Everything but the channels, which are dimension 1.
Ints all_but_channels(const Tensor& input) {
  Ints dims{0};
  for (int64_t dim = 2; dim < input.dim(); ++dim) dims.push_back(dim);
  return dims;
}

// One number per channel, to be broadcast over the others.
Tensor by_channel(const Tensor& numbers, const Tensor& like) {
  SymInts sizes(static_cast<size_t>(like.dim()), SymInt(1));
  sizes[1] = like.size(1);
  return view(numbers, sizes);
}

// Of the batch, dimensions kept; halves are computed in float32.
struct Statistics {
  Tensor apart;  // the input less its mean
  Tensor mean, rstd;
  explicit Statistics(const Tensor& input, double eps) {
    Tensor x = input.to(compute_dtype(input.dtype()));
    Ints dims = all_but_channels(input);
    mean = tenon::mean(x, OptionalInts(dims), true);
    apart = x - mean;
    rstd = rsqrt(tenon::mean(apart * apart, OptionalInts(dims), true) + eps);
  }
};

std::tuple<Tensor, Tensor, Tensor> normalised(const Tensor& input, const std::optional<Tensor>& weight,
                                              const std::optional<Tensor>& bias, bool training, double, double eps) {
  TENON_CHECK(input.defined() && input.dim() >= 2 && is_floating(input.dtype()),
              "[batch_norm] expected a floating point tensor of at least 2 dimensions, got {}",
              input.defined() ? input.description() : "an undefined one");
  TENON_CHECK(training, "[batch_norm] expected running statistics, or training");
  for (const std::optional<Tensor>& each : {weight, bias})
    TENON_CHECK(!each || (each->dim() == 1 && same_size(each->size(0), input.size(1))),
                "[batch_norm] expected a weight and bias of {} elements, got {}", input.size(1).str(),
                each->description());
  Statistics s(input, eps);
  Tensor result = s.apart * s.rstd;
  if (weight) result = result * by_channel(weight->to(result.dtype()), input);
  if (bias) result = result + by_channel(bias->to(result.dtype()), input);
  SymInts channels{input.size(1)};
  return {result.to(input.dtype()), view(s.mean, channels), view(s.rstd, channels)};
}

// The statistics are computed anew, because gradients flow through them too when backward is differentiated.
Tensor input_gradient(Grad& g) {
  Tensor input = g.saved("input");
  Statistics s(input, g.argument("eps").real());
  Tensor grad = g.grad().to(s.rstd.dtype());
  if (g.has("weight")) grad = grad * by_channel(g.saved("weight").to(s.rstd.dtype()), input);
  Ints dims = all_but_channels(input);
  Tensor unit = s.apart * s.rstd;
  Tensor result = (grad - mean(grad, OptionalInts(dims), true) - unit * mean(grad * unit, OptionalInts(dims), true));
  return (result * s.rstd).to(input.dtype());
}

Tensor weight_gradient(Grad& g) {
  Tensor input = g.saved("input");
  Statistics s(input, g.argument("eps").real());
  return sum(g.grad().to(s.rstd.dtype()) * s.apart * s.rstd, all_but_channels(input)).to(g.dtype("weight"));
}

bool same_sizes(const SymInts& a, const SymInts& b) {
  bool same = a.size() == b.size();
  for (size_t dim = 0; same && dim < a.size(); ++dim) same = same_size(a[dim], b[dim]);
  return same;
}

Tensor layer_normalised(const Tensor& input, const SymInts& shape, const std::optional<Tensor>& weight,
                        const std::optional<Tensor>& bias, double eps, bool) {
  TENON_CHECK(input.defined() && is_floating(input.dtype()), "[layer_norm] expected a floating point tensor, got {}",
              input.defined() ? input.description() : "an undefined one");
  SymInts sizes = input.sym_sizes();
  bool fits = !shape.empty() && shape.size() <= sizes.size();
  Ints dims;
  for (size_t at = 0; fits && at < shape.size(); ++at) {
    fits = same_size(shape[at], sizes[sizes.size() - shape.size() + at]);
    dims.push_back(static_cast<int64_t>(sizes.size() - shape.size() + at));
  }
  TENON_CHECK(fits, "[layer_norm] expected the last dimensions of {} to be {}", input.description(), str(shape));
  for (const std::optional<Tensor>& each : {weight, bias})
    TENON_CHECK(!each || same_sizes(each->sym_sizes(), shape), "[layer_norm] expected a weight and bias of {}, got {}",
                str(shape), each->description());
  // Halves are computed in float32 and rounded once.
  Dtype wide = compute_dtype(input.dtype());
  Tensor x = input.to(wide), apart = x - mean(x, OptionalInts(dims), true);
  Tensor result = apart * rsqrt(mean(apart * apart, OptionalInts(dims), true) + eps);
  if (weight) result = result * weight->to(wide);
  if (bias) result = result + bias->to(wide);
  return result.to(input.dtype());
}

}  // namespace

OPS(normalization) {
  // The result, and the mean and 1/√(variance + eps) of each channel. `momentum` is for those with running statistics.
  op("_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, "
     "float eps) -> (Tensor, Tensor, Tensor)")
      .decompose(normalised)
      .not_differentiable("result1")
      .not_differentiable("result2")
      .grad("input", saves("input", "weight"), input_gradient)
      .grad("weight", saves("input"), weight_gradient)
      .grad("bias", saves(), [](Grad& g) {
        Tensor grad = g.grad();
        return sum(grad.to(compute_dtype(grad.dtype())), all_but_channels(grad)).to(g.dtype("bias"));
      });
  op("layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
     "bool cudnn_enable=True) "
     "-> Tensor")
      .decompose(layer_normalised);
}

}  // namespace tenon::ops
