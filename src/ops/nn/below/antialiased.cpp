// Images of other sizes, of which each position is a weighted mean of all that it covers: what is made smaller is
// blurred by as much.
#include "ops/nn/resample.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

using Scale = std::optional<double>;
using Sizes = std::optional<SymInts>;
using Factors = std::optional<std::vector<double>>;

// Between two bytes the larger one, whatever the sum lost on the way.
constexpr double kHalf = 0.5 + 0x1p-20;

enum class Filter : uint8_t { Triangle, Cubic };  // Cubic: Keys' convolution with a = -0.5
constexpr int64_t reach_of(Filter filter) { return filter == Filter::Triangle ? 1 : 2; }

Tensor weight(const Tensor& distance, Filter filter) {
  if (filter == Filter::Triangle) return clamp_min(1 - distance, 0);
  constexpr double a = -0.5;
  Tensor near = ((distance * (a + 2) - (a + 3)) * distance) * distance + 1;
  Tensor far = ((distance * a - 5 * a) * distance + 8 * a) * distance - 4 * a;
  return where(distance < 1, near, where(distance < 2, far, zeros_like(far)));
}

// [count, size]: by how much each element counts for each position.
Tensor weights(const SymInt& size, const SymInt& count, bool align_corners, Scale scale, Filter filter,
               const TensorOptions& options) {
  auto number = [&](const Scalar& value) { return full(SymInts{}, value, options); };
  Tensor step;  // elements for a position
  if (align_corners)
    step = decide_or(count > 1, true) ? number(Scalar(size - 1)) / number(Scalar(count - 1)) : number(0);
  else
    step = scale && *scale > 0 ? number(1 / *scale) : number(Scalar(size)) / number(Scalar(count));
  Tensor blur = clamp_min(step, 1), support = blur * static_cast<double>(reach_of(filter));
  const TensorOptions whole(kInt64, options.device.value_or(Device()));
  Tensor middle = unsqueeze((arange(Scalar(count), whole).to(*options.dtype) + 0.5) * step, 1);
  Tensor element = unsqueeze(arange(Scalar(size), whole), 0);
  // Cut towards 0, as conversions to integers are.
  Tensor first = clamp_min((middle - support + 0.5).to(kInt64), 0), end = (middle + support + 0.5).to(kInt64);
  Tensor counts = logical_and(element >= first, element < end);
  Tensor each = weight(abs((element.to(*options.dtype) - middle + 0.5) / blur), filter);
  each = where(counts, each, zeros_like(each));
  Tensor total = sum(each, 1, true);
  return each / where(total == 0, ones_like(total), total);
}

void check(const Tensor& tensor, const SymInts& sizes, const char* op_name) {
  TENON_CHECK(tensor.defined() && tensor.dim() == 4 && sizes.size() == 2,
              "[{}] expected an image [N, C, H, W] and two sizes, got {} and {}", op_name,
              tensor.defined() ? tensor.description() : "an undefined tensor", str(sizes));
  TENON_CHECK_IMPLEMENTED(is_floating(tensor.dtype()) || tensor.dtype() == kUInt8,
                          "[{}] expected a floating point tensor, got {}", op_name, tensor.description());
  for (const SymInt& size : sizes)
    TENON_CHECK(expect(size > 0), "[{}] expected sizes of at least 1, got {}", op_name, str(sizes));
  for (int64_t dim = 2; dim < 4; ++dim)
    TENON_CHECK(expect(tensor.size(dim) > 0), "[{}] nothing can be interpolated from {}", op_name,
                tensor.description());
}

struct Weights {
  Tensor rows, columns;
};
Weights weights_of(const SymInts& input, const SymInts& sizes, bool align_corners, Scale h, Scale w, Filter filter,
                   Dtype dtype, Device device) {
  const TensorOptions options(dtype, device);
  return {weights(input[2], sizes[0], align_corners, h, filter, options),
          weights(input[3], sizes[1], align_corners, w, filter, options)};
}

Tensor smoothed(const Tensor& self, const SymInts& sizes, bool align_corners, Scale h, Scale w, Filter filter,
                const char* op_name) {
  check(self, sizes, op_name);
  // (Between bytes there are only bytes: columns first, as in PyTorch.)
  const bool bytes = self.dtype() == kUInt8;
  const Dtype wide = bytes ? kFloat64 : compute_dtype(self.dtype());
  const Weights by = weights_of(self.sym_sizes(), sizes, align_corners, h, w, filter, wide, self.device());
  auto rounded = [&](const Tensor& x) { return bytes ? clamp(floor(x + kHalf), Scalar(0), Scalar(255)) : x; };
  Tensor made = rounded(matmul(by.rows, rounded(matmul(self.to(wide), t(by.columns)))));
  return contiguous(made.to(self.dtype()), self.suggested_format());
}

Tensor smoothed_backward(const Tensor& grad, const SymInts& sizes, const SymInts& input, bool align_corners, Scale h,
                         Scale w, Filter filter, const char* op_name) {
  check(grad, sizes, op_name);
  TENON_CHECK(input.size() == 4 && same_size(grad.size(0), input[0]) && same_size(grad.size(1), input[1]) &&
                  same_size(grad.size(2), sizes[0]) && same_size(grad.size(3), sizes[1]) && expect(input[2] > 0) &&
                  expect(input[3] > 0),
              "[{}] {} is no gradient of an input of {} that was made {}", op_name, grad.description(), str(input),
              str(sizes));
  const Dtype wide = compute_dtype(grad.dtype());
  const Weights by = weights_of(input, sizes, align_corners, h, w, filter, wide, grad.device());
  return matmul(t(by.rows), matmul(grad.to(wide), by.columns)).to(grad.dtype());
}

auto by_sizes(const char* name, Filter filter) {
  return [=](const Tensor& self, const SymInts& sizes, bool align_corners, Scale h, Scale w) {
    return smoothed(self, sizes, align_corners, h, w, filter, name);
  };
}
auto by_factors(const char* name, Filter filter) {
  return [=](const Tensor& input, const Sizes& sizes, bool align_corners, const Factors& factors) {
    const std::vector<Scale> scales = scales_of(factors, 2);
    return smoothed(input, resampled_sizes(input, sizes, factors, 2, name), align_corners, scales[0], scales[1], filter,
                    name);
  };
}
auto backward(const char* name, Filter filter) {
  return [=](const Tensor& grad, const SymInts& sizes, const SymInts& input, bool align_corners, Scale h, Scale w) {
    return smoothed_backward(grad, sizes, input, align_corners, h, w, filter, name);
  };
}

}  // namespace

OPS(antialiased) {
  op("_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
     "scales_w=None) -> Tensor")
      .decompose(by_sizes("_upsample_bilinear2d_aa", Filter::Triangle));
  op("_upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
     "Tensor")
      .decompose(by_factors("_upsample_bilinear2d_aa", Filter::Triangle));
  op("_upsample_bilinear2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool "
     "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor")
      .decompose(backward("_upsample_bilinear2d_aa_backward", Filter::Triangle));
  op("_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
     "scales_w=None) -> Tensor")
      .decompose(by_sizes("_upsample_bicubic2d_aa", Filter::Cubic));
  op("_upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
     "Tensor")
      .decompose(by_factors("_upsample_bicubic2d_aa", Filter::Cubic));
  op("_upsample_bicubic2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool "
     "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor")
      .decompose(backward("_upsample_bicubic2d_aa_backward", Filter::Cubic));
}

}  // namespace tenon::ops
