#include <tenon/generated/ops.h>
#include <tenon/nn/functional.h>

namespace tenon {

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options) {
  return cross_entropy_loss(logits, target, options.weight, static_cast<int64_t>(options.reduction),
                            options.ignore_index, options.label_smoothing);
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
