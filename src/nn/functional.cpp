#include <tenon/autograd/grad_mode.h>
#include <tenon/dispatch/call.h>
#include <tenon/generated/ops.h>
#include <tenon/nn/functional.h>
#include <tenon/nn/pooling.h>

#include <fmt/format.h>

namespace tenon {

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options) {
  return cross_entropy_loss(logits, target, options.weight, static_cast<int64_t>(options.reduction),
                            options.ignore_index, options.label_smoothing);
}

Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormOptions& options) {
  TENON_CHECK(input.defined() && input.dim() >= 2 && input.is_floating_point(),
              "[batch_norm] expected a floating point tensor of at least 2 dimensions, got {}",
              input.defined() ? input.description() : "an undefined one");
  TENON_CHECK(running_mean.defined() == running_var.defined(),
              "[batch_norm] expected both running statistics or neither");
  for (const Tensor& each : {running_mean, running_var})
    TENON_CHECK(!each.defined() || (each.dim() == 1 && bool(each.size(0) == input.size(1))),
                "[batch_norm] expected running statistics of {} elements, got {}", input.size(1).str(),
                each.description());
  if (!options.training && running_mean.defined()) {
    SymInts sizes(static_cast<size_t>(input.dim()), SymInt(1));
    sizes[1] = input.size(1);
    Dtype wide = compute_dtype(input.dtype());
    auto by_channel = [&](const Tensor& numbers) { return view(numbers.to(wide), sizes); };
    Tensor result = (input.to(wide) - by_channel(running_mean)) * rsqrt(by_channel(running_var) + options.eps);
    if (options.weight) result = result * by_channel(*options.weight);
    if (options.bias) result = result + by_channel(*options.bias);
    return result.to(input.dtype());
  }
  SymInt count = input.numel() / input.size(1);
  TENON_CHECK(bool(count > 1), "[batch_norm] expected more than 1 value per channel when training, got {}",
              input.description());
  auto [result, mean, rstd] =
      _native_batch_norm_legit(input, options.weight, options.bias, true, options.momentum, options.eps);
  if (running_mean.defined()) {
    NoGrad off;
    Ints dims{0};
    for (int64_t dim = 2; dim < input.dim(); ++dim) dims.push_back(dim);
    // The running variance is of the population that the batch was drawn from: unbiased.
    Tensor variance = var(input.to(mean.dtype()), dims, 1);
    // One write to each, as PyTorch's: whoever watches their versions counts batches.
    running_mean.copy_(running_mean * (1 - options.momentum) + mean * options.momentum);
    running_var.copy_(running_var * (1 - options.momentum) + variance * options.momentum);
  }
  return result;
}

namespace {

std::string described(const Tensor& tensor) { return tensor.defined() ? tensor.description() : "an undefined one"; }

// What operators call a mode, and of how many dimensions behind the channels it is; 0: of 1, 2 and 3.
struct Mode {
  const char* name;
  int64_t dims;
  bool aligns;  // whether corners can be aligned
};

Mode mode_of(Interpolation mode) {
  switch (mode) {
    case Interpolation::Nearest: return {"nearest", 0, false};
    case Interpolation::NearestExact: return {"nearest_exact", 0, false};
    case Interpolation::Area: return {"area", 0, false};
    case Interpolation::Linear: return {"linear", 1, true};
    case Interpolation::Bilinear: return {"bilinear", 2, true};
    case Interpolation::Bicubic: return {"bicubic", 2, true};
    case Interpolation::Trilinear: return {"trilinear", 3, true};
  }
  fail<ValueError>("[interpolate] expected a mode of Interpolation, got number {}", static_cast<int>(mode));
}

Tensor averaged_to(const Tensor& input, const SymInts& size) {
  switch (size.size()) {
    case 1: return adaptive_avg_pool1d(input, size);
    case 2: return adaptive_avg_pool2d(input, size);
    default: return adaptive_avg_pool3d(input, size);
  }
}

SymInts scaled(const Tensor& input, const std::vector<double>& scales) {
  SymInts sizes;
  for (size_t at = 0; at < scales.size(); ++at)
    sizes.push_back(floor(SymFloat(input.size(static_cast<int64_t>(at) + 2)) * scales[at]));
  return sizes;
}

}  // namespace

std::string_view name(Interpolation mode) {
  return mode == Interpolation::NearestExact ? "nearest-exact" : mode_of(mode).name;
}

Tensor interpolate(const Tensor& input, const InterpolateOptions& options) {
  const Mode mode = mode_of(options.mode);
  TENON_CHECK(input.defined() && input.dim() >= 3 && input.dim() <= 5,
              "[interpolate] expected an input [N, C, W], [N, C, H, W] or [N, C, D, H, W], got {}", described(input));
  const int64_t dims = input.dim() - 2;
  TENON_CHECK_VALUE(mode.dims == 0 || mode.dims == dims,
                    "[interpolate] expected an input of {} dimensions for the mode {}, got {}", mode.dims + 2,
                    name(options.mode), input.description());
  TENON_CHECK_VALUE(mode.aligns || !options.align_corners,
                    "[interpolate] align_corners can only be set for the linear, bilinear, bicubic and trilinear "
                    "modes, not for {}",
                    name(options.mode));
  const bool smooths = options.mode == Interpolation::Bilinear || options.mode == Interpolation::Bicubic;
  TENON_CHECK_VALUE(smooths || !options.antialias,
                    "[interpolate] antialias can only be set for the bilinear and bicubic modes, not for {}",
                    name(options.mode));
  TENON_CHECK_VALUE(options.size.has_value() != options.scale_factor.has_value(),
                    "[interpolate] expected either a size or a scale_factor");
  std::optional<SymInts> size = options.size;
  std::optional<std::vector<double>> scales = options.scale_factor;
  const auto wanted = static_cast<size_t>(dims);
  if (size && size->size() == 1) size->resize(wanted, SymInt((*size)[0]));
  if (scales && scales->size() == 1) scales->resize(wanted, (*scales)[0]);
  const size_t given = size ? size->size() : scales->size();
  TENON_CHECK_VALUE(given == wanted, "[interpolate] expected 1 or {} numbers for {}, got {}", wanted,
                    input.description(), given);
  if (options.mode == Interpolation::Area) return averaged_to(input, size ? *size : scaled(input, *scales));
  const std::string name = fmt::format("aten::{}upsample_{}{}d{}.vec",
                                       options.antialias || options.mode == Interpolation::NearestExact ? "_" : "",
                                       mode.name, dims, options.antialias ? "_aa" : "");
  std::vector<dispatch::Value> arguments{dispatch::Value(input), dispatch::Value(size)};
  if (mode.aligns) arguments.emplace_back(options.align_corners);
  arguments.emplace_back(scales);
  return dispatch::call<Tensor>(dispatch::find_operator(name), arguments);
}

Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleOptions& options) {
  TENON_CHECK_VALUE(options.mode == Interpolation::Bilinear || options.mode == Interpolation::Nearest ||
                        options.mode == Interpolation::Bicubic,
                    "[grid_sample] expected the mode Bilinear, Nearest or Bicubic, got {}", name(options.mode));
  TENON_CHECK(input.defined() && grid.defined() && (input.dim() == 4 || input.dim() == 5) && grid.dim() == input.dim(),
              "[grid_sample] expected an input [N, C, H, W] with a grid [N, H', W', 2], or [N, C, D, H, W] with "
              "[N, D', H', W', 3], got {} and {}",
              described(input), described(grid));
  const int64_t mode = options.mode == Interpolation::Bilinear ? 0 : options.mode == Interpolation::Nearest ? 1 : 2;
  return grid_sampler(input, grid, mode, static_cast<int64_t>(options.padding), options.align_corners);
}

Tensor affine_grid(const Tensor& theta, const SymInts& size, bool align_corners) {
  const auto dims = static_cast<int64_t>(size.size()) - 2;
  TENON_CHECK_VALUE(dims == 2 || dims == 3, "[affine_grid] expected a size [N, C, H, W] or [N, C, D, H, W], got {}",
                    str(size));
  TENON_CHECK(theta.defined() && theta.is_floating_point() && theta.dim() == 3 && bool(theta.size(0) == size[0]) &&
                  bool(theta.size(1) == dims) && bool(theta.size(2) == dims + 1),
              "[affine_grid] expected floating point maps [{}, {}, {}], got {}", size[0].str(), dims, dims + 1,
              described(theta));
  const TensorOptions like(theta.dtype(), theta.device());
  SymInts places(size.begin() + 2, size.end());
  // Coordinates along each dimension, x first; then a 1 for what is added.
  std::vector<Tensor> columns;
  for (int64_t dim = dims; dim-- > 0;) {
    const SymInt count = places[static_cast<size_t>(dim)];
    Tensor steps = arange(Scalar(count), like) * 2 - Scalar(count - 1);  // from -(count - 1) to count - 1, by twos
    steps = steps / (align_corners ? Scalar(max(count - 1, SymInt(1))) : Scalar(count));
    SymInts shape(static_cast<size_t>(dims), SymInt(1));
    shape[static_cast<size_t>(dim)] = count;
    columns.push_back(expand(reshape(steps, shape), places));
  }
  columns.push_back(ones(places, like));
  Tensor base = reshape(stack(columns, -1), SymInts{1, SymInt(-1), SymInt(dims + 1)});
  SymInts result{size[0]};
  for (const SymInt& place : places) result.push_back(place);
  result.push_back(SymInt(dims));
  return reshape(matmul(base, transpose(theta, 1, 2)), result);
}

}  // namespace tenon
