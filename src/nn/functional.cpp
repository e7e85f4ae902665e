#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>
#include <tenon/nn/functional.h>

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

Tensor interpolate(const Tensor& input, const InterpolateOptions& options) {
  std::optional<SymInts> size = options.size;
  std::optional<std::vector<double>> scales = options.scale_factor;
  if (size && size->size() == 1) size->push_back(SymInt((*size)[0]));
  if (scales && scales->size() == 1) scales->push_back((*scales)[0]);
  if (options.mode == Interpolation::Bilinear) return upsample_bilinear2d(input, size, options.align_corners, scales);
  TENON_CHECK_VALUE(!options.align_corners, "[interpolate] align_corners can only be set for the bilinear mode");
  return upsample_nearest2d(input, size, scales);
}

}  // namespace tenon
