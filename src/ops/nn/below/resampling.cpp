// Images of other sizes, as all of ATen's forms have it: by sizes, by factors, and backward by itself.
#include "ops/nn/resample.h"

#include <tenon/ops/table.h>

namespace tenon::ops {
namespace {

using Scale = std::optional<double>;
using Sizes = std::optional<SymInts>;
using Factors = std::optional<std::vector<double>>;

// A function of the arguments that a form has, for so many dimensions.
template <size_t dims>
auto plain(const char* name, Resampling kind) {
  if constexpr (dims == 1)
    return [=](const Tensor& self, const SymInts& sizes, Scale w) {
      return resampled(self, sizes, {name, kind, false, {w}});
    };
  else if constexpr (dims == 2)
    return [=](const Tensor& self, const SymInts& sizes, Scale h, Scale w) {
      return resampled(self, sizes, {name, kind, false, {h, w}});
    };
  else
    return [=](const Tensor& self, const SymInts& sizes, Scale d, Scale h, Scale w) {
      return resampled(self, sizes, {name, kind, false, {d, h, w}});
    };
}

template <size_t dims>
auto aligned(const char* name, Resampling kind) {
  if constexpr (dims == 1)
    return [=](const Tensor& self, const SymInts& sizes, bool align_corners, Scale w) {
      return resampled(self, sizes, {name, kind, align_corners, {w}});
    };
  else if constexpr (dims == 2)
    return [=](const Tensor& self, const SymInts& sizes, bool align_corners, Scale h, Scale w) {
      return resampled(self, sizes, {name, kind, align_corners, {h, w}});
    };
  else
    return [=](const Tensor& self, const SymInts& sizes, bool align_corners, Scale d, Scale h, Scale w) {
      return resampled(self, sizes, {name, kind, align_corners, {d, h, w}});
    };
}

template <size_t dims>
auto by_factors(const char* name, Resampling kind) {
  return [=](const Tensor& input, const Sizes& sizes, const Factors& factors) {
    return resampled(input, resampled_sizes(input, sizes, factors, dims, name),
                     {name, kind, false, scales_of(factors, dims)});
  };
}
template <size_t dims>
auto aligned_by_factors(const char* name, Resampling kind) {
  return [=](const Tensor& input, const Sizes& sizes, bool align_corners, const Factors& factors) {
    return resampled(input, resampled_sizes(input, sizes, factors, dims, name),
                     {name, kind, align_corners, scales_of(factors, dims)});
  };
}

template <size_t dims>
auto plain_backward(const char* name, Resampling kind) {
  if constexpr (dims == 1)
    return [=](const Tensor& grad, const SymInts& sizes, const SymInts& input, Scale w) {
      return resampled_backward(grad, sizes, input, {name, kind, false, {w}});
    };
  else if constexpr (dims == 2)
    return [=](const Tensor& grad, const SymInts& sizes, const SymInts& input, Scale h, Scale w) {
      return resampled_backward(grad, sizes, input, {name, kind, false, {h, w}});
    };
  else
    return [=](const Tensor& grad, const SymInts& sizes, const SymInts& input, Scale d, Scale h, Scale w) {
      return resampled_backward(grad, sizes, input, {name, kind, false, {d, h, w}});
    };
}

template <size_t dims>
auto aligned_backward(const char* name, Resampling kind) {
  if constexpr (dims == 1)
    return [=](const Tensor& grad, const SymInts& sizes, const SymInts& input, bool align_corners, Scale w) {
      return resampled_backward(grad, sizes, input, {name, kind, align_corners, {w}});
    };
  else if constexpr (dims == 2)
    return [=](const Tensor& grad, const SymInts& sizes, const SymInts& input, bool align_corners, Scale h, Scale w) {
      return resampled_backward(grad, sizes, input, {name, kind, align_corners, {h, w}});
    };
  else
    return [=](const Tensor& grad, const SymInts& sizes, const SymInts& input, bool align_corners, Scale d, Scale h,
               Scale w) { return resampled_backward(grad, sizes, input, {name, kind, align_corners, {d, h, w}}); };
}

}  // namespace

OPS(resampling) {
  op("upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor")
      .decompose(plain<1>("upsample_nearest1d", Resampling::Nearest));
  op("upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor")
      .decompose(by_factors<1>("upsample_nearest1d", Resampling::Nearest));
  op("upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? "
     "scales_w=None) -> Tensor")
      .decompose(plain<3>("upsample_nearest3d", Resampling::Nearest));
  op("upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor")
      .decompose(by_factors<3>("upsample_nearest3d", Resampling::Nearest));
  op("_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor")
      .decompose(plain<1>("_upsample_nearest_exact1d", Resampling::NearestExact));
  op("_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor")
      .decompose(by_factors<1>("_upsample_nearest_exact1d", Resampling::NearestExact));
  op("_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) "
     "-> Tensor")
      .decompose(plain<2>("_upsample_nearest_exact2d", Resampling::NearestExact));
  op("_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor")
      .decompose(by_factors<2>("_upsample_nearest_exact2d", Resampling::NearestExact));
  op("_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, "
     "float? scales_w=None) -> Tensor")
      .decompose(plain<3>("_upsample_nearest_exact3d", Resampling::NearestExact));
  op("_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor")
      .decompose(by_factors<3>("_upsample_nearest_exact3d", Resampling::NearestExact));
  op("upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor")
      .decompose(aligned<1>("upsample_linear1d", Resampling::Linear));
  op("upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
     "Tensor")
      .decompose(aligned_by_factors<1>("upsample_linear1d", Resampling::Linear));
  op("upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float? "
     "scales_h=None, float? scales_w=None) -> Tensor")
      .decompose(aligned<3>("upsample_trilinear3d", Resampling::Linear));
  op("upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) "
     "-> Tensor")
      .decompose(aligned_by_factors<3>("upsample_trilinear3d", Resampling::Linear));
  op("upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
     "scales_w=None) -> Tensor")
      .decompose(aligned<2>("upsample_bicubic2d", Resampling::Cubic));
  op("upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
     "Tensor")
      .decompose(aligned_by_factors<2>("upsample_bicubic2d", Resampling::Cubic));
}

OPS(resampling_backward) {
  op("upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? "
     "scales=None) -> Tensor")
      .decompose(plain_backward<1>("upsample_nearest1d_backward", Resampling::Nearest));
  op("upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? "
     "scales_h=None, float? scales_w=None) -> Tensor")
      .decompose(plain_backward<2>("upsample_nearest2d_backward", Resampling::Nearest));
  op("upsample_nearest3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? "
     "scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor")
      .decompose(plain_backward<3>("upsample_nearest3d_backward", Resampling::Nearest));
  op("_upsample_nearest_exact1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? "
     "scales=None) -> Tensor")
      .decompose(plain_backward<1>("_upsample_nearest_exact1d_backward", Resampling::NearestExact));
  op("_upsample_nearest_exact2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? "
     "scales_h=None, float? scales_w=None) -> Tensor")
      .decompose(plain_backward<2>("_upsample_nearest_exact2d_backward", Resampling::NearestExact));
  op("_upsample_nearest_exact3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? "
     "scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor")
      .decompose(plain_backward<3>("_upsample_nearest_exact3d_backward", Resampling::NearestExact));
  op("upsample_linear1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, bool "
     "align_corners, float? scales=None) -> Tensor")
      .decompose(aligned_backward<1>("upsample_linear1d_backward", Resampling::Linear));
  op("upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool "
     "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor")
      .decompose(aligned_backward<2>("upsample_bilinear2d_backward", Resampling::Linear));
  op("upsample_trilinear3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, bool "
     "align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor")
      .decompose(aligned_backward<3>("upsample_trilinear3d_backward", Resampling::Linear));
  op("upsample_bicubic2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool "
     "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor")
      .decompose(aligned_backward<2>("upsample_bicubic2d_backward", Resampling::Cubic));
}

}  // namespace tenon::ops
