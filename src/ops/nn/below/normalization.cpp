// Normalisation as graphs below autograd have it: the result with the mean and 1/√(variance + eps) that it was made by.
// Halves are computed in float32; statistics that move (`running_*`) are written to.
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

using OptionalTensor = std::optional<Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

const Tensor& real(const Tensor& input, int64_t least, const char* op_name) {
  TENON_CHECK(input.defined() && is_floating(input.dtype()) && input.dim() >= least,
              "[{}] expected a floating point tensor of at least {} dimensions, got {}", op_name, least,
              input.defined() ? input.description() : "an undefined one");
  return input;
}

void check_size(const OptionalTensor& numbers, const SymInt& size, const char* op_name) {
  TENON_CHECK(!numbers || (numbers->dim() == 1 && same_size(numbers->size(0), size)),
              "[{}] expected {} numbers, one for each channel, got {}", op_name, size.str(),
              numbers ? numbers->description() : "none");
}

// What statistics are given in: as the parameters are, where there are any.
Dtype kept_dtype(const Tensor& input, std::initializer_list<OptionalTensor> parameters) {
  for (const OptionalTensor& each : parameters)
    if (each) return each->dtype();
  return input.dtype();
}

// One number for each channel, dimension 1, to be broadcast.
Tensor by_channel(const Tensor& numbers, const Tensor& like, Dtype dtype) {
  SymInts sizes(static_cast<size_t>(like.dim()), SymInt(1));
  sizes[1] = numbers.size(0);
  return view(numbers, sizes).to(dtype);
}

struct Moments {
  Tensor mean, apart, variance;
  Moments(const Tensor& x, const Ints& dims) : mean(tenon::mean(x, OptionalInts(dims), true)), apart(x - mean) {
    variance = tenon::mean(apart * apart, OptionalInts(dims), true);
  }
};

// By the statistics of the batch, towards which the running ones move; or by these.
struct Batch {
  Tensor input;
  OptionalTensor weight, bias, running_mean, running_var;
  double momentum, eps;
  const char* op_name;

  void check() const {
    real(input, 2, op_name);
    for (const OptionalTensor& each : {weight, bias, running_mean, running_var})
      check_size(each, input.size(1), op_name);
  }
  Tensor scaled(const Tensor& unit) const {
    Tensor result = unit;
    if (weight) result = result * by_channel(*weight, input, unit.dtype());
    if (bias) result = result + by_channel(*bias, input, unit.dtype());
    return result.to(input.dtype());
  }
  Three by_batch() const {
    check();
    const Dtype wide = compute_dtype(input.dtype());
    Ints dims{0};
    SymInt count = input.size(0);
    for (int64_t dim = 2; dim < input.dim(); ++dim) {
      dims.push_back(dim);
      count *= input.size(dim);
    }
    const Moments m(input.to(wide), dims);
    Tensor rstd = rsqrt(m.variance + eps);
    const SymInts channels{input.size(1)};
    Tensor mean = reshape(m.mean, channels), variance = reshape(m.variance, channels);
    auto move = [&](const OptionalTensor& running, const Tensor& to) {
      if (running) running->copy_((*running * (1 - momentum) + to.detach() * momentum).to(running->dtype()));
    };
    move(running_mean, mean);
    move(running_var, variance * Scalar(count) / Scalar(count - 1));
    const Dtype kept = kept_dtype(input, {weight, bias, running_mean});
    return {scaled(m.apart * rstd), mean.to(kept), reshape(rstd, channels).to(kept)};
  }
  Tensor by_running() const {
    check();
    TENON_CHECK(running_mean && running_var, "[{}] expected running statistics, or training", op_name);
    const Dtype wide = compute_dtype(input.dtype());
    Tensor apart = input.to(wide) - by_channel(*running_mean, input, wide);
    return scaled(apart * rsqrt(by_channel(*running_var, input, wide) + eps));
  }
};

Three batch_norm(const Batch& batch, bool training) {
  if (training) return batch.by_batch();
  real(batch.input, 2, batch.op_name);
  const Dtype kept = kept_dtype(batch.input, {batch.weight, batch.bias, batch.running_mean});
  Tensor none = zeros(SymInts{0}, TensorOptions(kept, batch.input.device()));
  return {batch.by_running(), none, none};
}

Three layer_norm_parts(const Tensor& input, const SymInts& shape, const OptionalTensor& weight,
                       const OptionalTensor& bias, double eps) {
  Tensor result = layer_norm(input, shape, weight, bias, eps);
  Ints dims;
  for (size_t dim = 0; dim < shape.size(); ++dim) dims.push_back(input.dim() - 1 - static_cast<int64_t>(dim));
  const Moments m(input.to(compute_dtype(input.dtype())), dims);
  const Dtype kept = kept_dtype(input, {weight, bias});
  return {result, m.mean.to(kept), rsqrt(m.variance + eps).to(kept)};
}

// [N, C, …] in groups of channels.
Three group_norm_parts(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias, const SymInt& n,
                       const SymInt& channels, const SymInt& area, int64_t groups, double eps) {
  real(input, 2, "native_group_norm");
  TENON_CHECK(groups > 0 && expect(channels % groups == 0),
              "[native_group_norm] expected groups that divide {} channels, got {}", channels.str(), groups);
  TENON_CHECK(same_size(n * channels * area, input.numel()),
              "[native_group_norm] expected {} samples of {} channels of {}, got {}", n.str(), channels.str(),
              area.str(), input.description());
  check_size(weight, channels, "native_group_norm");
  check_size(bias, channels, "native_group_norm");
  const Dtype wide = compute_dtype(input.dtype());
  const Moments m(reshape(input.to(wide), SymInts{n, groups, channels / groups * area}), Ints{2});
  Tensor rstd = rsqrt(m.variance + eps);
  Tensor result = reshape(m.apart * rstd, input.sym_sizes());
  if (weight) result = result * by_channel(*weight, input, wide);
  if (bias) result = result + by_channel(*bias, input, wide);
  const SymInts sizes{n, groups};
  const Dtype kept = kept_dtype(input, {weight, bias});
  return {result.to(input.dtype()), reshape(m.mean, sizes).to(kept), reshape(rstd, sizes).to(kept)};
}

}  // namespace

OPS(normalization_parts) {
  op("native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
     "training, float momentum, float eps) -> (Tensor, Tensor, Tensor)")
      .decompose([](const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                    const OptionalTensor& mean, const OptionalTensor& variance, bool training, double momentum,
                    double eps) {
        return batch_norm({input, weight, bias, mean, variance, momentum, eps, "native_batch_norm"}, training);
      });
  op("_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) "
     "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)")
      .decompose([](const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias, const Tensor& mean,
                    const Tensor& variance, bool training, double momentum, double eps) {
        return batch_norm({input, weight, bias, mean, variance, momentum, eps, "_native_batch_norm_legit"}, training);
      });
  op("_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) "
     "running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)")
      .decompose([](const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias, const Tensor& mean,
                    const Tensor& variance, double momentum, double eps) {
        auto [result, saved_mean, saved_rstd] =
            Batch{input, weight, bias, mean, variance, momentum, eps, "_batch_norm_with_update"}.by_batch();
        // What a library would keep for backward; ours keeps nothing.
        return std::tuple(result, saved_mean, saved_rstd, zeros(SymInts{0}, TensorOptions(kUInt8, input.device())));
      });
  op("batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
     "float momentum, float eps, bool cudnn_enabled) -> Tensor")
      .decompose([](const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                    const OptionalTensor& mean, const OptionalTensor& variance, bool training, double momentum,
                    double eps, bool) {
        return std::get<0>(batch_norm({input, weight, bias, mean, variance, momentum, eps, "batch_norm"}, training));
      });
  // Each sample by itself: its channels are those of a batch of one.
  op("instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
     "use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor")
      .decompose([](const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                    const OptionalTensor& mean, const OptionalTensor& variance, bool by_input, double momentum,
                    double eps, bool) {
        real(input, 3, "instance_norm");
        if (!by_input) return Batch{input, weight, bias, mean, variance, momentum, eps, "instance_norm"}.by_running();
        const SymInt samples = input.size(0), channels = input.size(1);
        for (const OptionalTensor& each : {weight, bias, mean, variance}) check_size(each, channels, "instance_norm");
        SymInts sizes = input.sym_sizes();
        sizes[0] = 1;
        sizes[1] = samples * channels;
        auto repeated = [&](const OptionalTensor& each) {
          return each ? OptionalTensor(repeat(*each, SymInts{samples})) : OptionalTensor();
        };
        const OptionalTensor means = repeated(mean), variances = repeated(variance);
        auto [result, _, unused] =
            Batch{reshape(input, sizes), repeated(weight), repeated(bias), means, variances, momentum, eps,
                  "instance_norm"}
                .by_batch();
        auto put_back = [&](const OptionalTensor& running, const OptionalTensor& moved) {
          if (running) running->copy_(tenon::mean(reshape(*moved, SymInts{samples, channels}), OptionalInts(Ints{0})));
        };
        put_back(mean, means);
        put_back(variance, variances);
        return reshape(result, input.sym_sizes());
      });
  op("native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, "
     "Tensor, Tensor)")
      .decompose(layer_norm_parts);
  op("native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float "
     "eps) -> (Tensor, Tensor, Tensor)")
      .decompose(group_norm_parts);
  op("group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool "
     "cudnn_enabled=True) -> Tensor")
      .decompose([](const Tensor& input, int64_t groups, const OptionalTensor& weight, const OptionalTensor& bias,
                    double eps, bool) {
        real(input, 2, "group_norm");
        SymInt area = 1;
        for (int64_t dim = 2; dim < input.dim(); ++dim) area *= input.size(dim);
        return std::get<0>(group_norm_parts(input, weight, bias, input.size(0), input.size(1), area, groups, eps));
      });
  op("rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor")
      .decompose([](const Tensor& input, const SymInts& shape, const OptionalTensor& weight,
                    std::optional<double> eps) {
        real(input, 1, "rms_norm");
        bool fits = !shape.empty() && shape.size() <= static_cast<size_t>(input.dim());
        Ints dims;
        for (size_t dim = 0; fits && dim < shape.size(); ++dim) {
          const int64_t at = input.dim() - static_cast<int64_t>(shape.size() - dim);
          fits = same_size(input.size(at), shape[dim]);
          dims.push_back(at);
        }
        TENON_CHECK(fits, "[rms_norm] expected the last dimensions of {} to be {}", input.description(), str(shape));
        const Dtype wide = compute_dtype(input.dtype());
        Tensor x = input.to(wide);
        const double least = wide == kFloat64 ? 0x1p-52 : 0x1p-23;
        Tensor result = x * rsqrt(tenon::mean(x * x, OptionalInts(dims), true) + eps.value_or(least));
        if (weight) result = result * weight->to(wide);
        return result.to(input.dtype());
      });
}

}  // namespace tenon::ops
