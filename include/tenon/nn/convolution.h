// Convolutions over one, two and three dimensions, and transposed ones.
#pragma once

#include <tenon/nn/layer.h>
#include <tenon/nn/sizes.h>

namespace tenon::nn {

//   nn::Conv2dOptions options{.padding = nn::Pair(1), .groups = 2, .bias = false};
//   nn::Conv2dOptions same{.same_padding = true};
template <typename Size>
struct ConvOptions {
  Size stride = 1;
  Size padding = 0;
  Size dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  bool same_padding = false;  // in place of `padding`: as much as keeps the image's size; for a stride of 1
  Dtype dtype = kFloat32;
};
using Conv1dOptions = ConvOptions<int64_t>;
using Conv2dOptions = ConvOptions<Pair>;
using Conv3dOptions = ConvOptions<Triple>;

namespace detail {

struct ConvSizes {
  const char* kind;
  Ints kernel, stride, padding, dilation, output_padding;
  int64_t groups = 1;
  bool bias = true, same_padding = false;
  Dtype dtype = kFloat32;
};

// With weight [out, in / groups, …] and bias [out] uniform in ±1/√(inputs of an output).
class ConvLayer : public Module {
 public:
  Tensor operator()(const Tensor& input) const;
  Cell<Tensor> weight, bias;  // `bias` is undefined if there is none

 protected:
  ConvLayer(int64_t in_channels, int64_t out_channels, ConvSizes sizes);

 private:
  ConvSizes sizes_;
};

class ConvTransposeLayer : public Module {
 public:
  Tensor operator()(const Tensor& input) const;
  Cell<Tensor> weight, bias;

 protected:
  ConvTransposeLayer(int64_t in_channels, int64_t out_channels, ConvSizes sizes);

 private:
  ConvSizes sizes_;
};

template <typename Size, typename Options>
ConvSizes conv_sizes(const char* kind, Size kernel, const Options& o) {
  ConvSizes sizes{kind, list_of(kernel), list_of(o.stride), list_of(o.padding), list_of(o.dilation), {}};
  sizes.groups = o.groups;
  sizes.bias = o.bias;
  sizes.dtype = o.dtype;
  if constexpr (requires { o.same_padding; }) sizes.same_padding = o.same_padding;
  if constexpr (requires { o.output_padding; }) sizes.output_padding = list_of(o.output_padding);
  return sizes;
}

}  // namespace detail

// Sequences [N, in, L], images [N, in, H, W] and volumes [N, in, D, H, W], with or without N.
//
//   Tensor a = nn::Conv1d(3, 8, 5, {.padding = 2})(ones({1, 3, 16}));           // [1, 8, 16]
//   Tensor b = nn::Conv2d(3, 8, 5, {.padding = 2})(ones({1, 3, 16, 16}));       // [1, 8, 16, 16]
//   Tensor c = nn::Conv3d(3, 8, 3, {.stride = 2})(ones({1, 3, 9, 9, 9}));       // [1, 8, 4, 4, 4]
class Conv1d : public detail::ConvLayer {
 public:
  Conv1d(int64_t in_channels, int64_t out_channels, int64_t kernel_size, const Conv1dOptions& options = {})
      : ConvLayer(in_channels, out_channels, detail::conv_sizes("Conv1d", kernel_size, options)) {}
};
class Conv2d : public detail::ConvLayer {
 public:
  Conv2d(int64_t in_channels, int64_t out_channels, Pair kernel_size, const Conv2dOptions& options = {})
      : ConvLayer(in_channels, out_channels, detail::conv_sizes("Conv2d", kernel_size, options)) {}
};
class Conv3d : public detail::ConvLayer {
 public:
  Conv3d(int64_t in_channels, int64_t out_channels, Triple kernel_size, const Conv3dOptions& options = {})
      : ConvLayer(in_channels, out_channels, detail::conv_sizes("Conv3d", kernel_size, options)) {}
};

//   nn::ConvTranspose2dOptions options{.stride = 2, .output_padding = 1};
template <typename Size>
struct ConvTransposeOptions {
  Size stride = 1;
  Size padding = 0;
  Size output_padding = 0;  // added at the end
  Size dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  Dtype dtype = kFloat32;
};
using ConvTranspose1dOptions = ConvTransposeOptions<int64_t>;
using ConvTranspose2dOptions = ConvTransposeOptions<Pair>;
using ConvTranspose3dOptions = ConvTransposeOptions<Triple>;

//   Tensor a = nn::ConvTranspose1d(3, 8, 4, {.stride = 2})(ones({1, 3, 5}));         // [1, 8, 12]
//   Tensor b = nn::ConvTranspose2d(3, 8, 2, {.stride = 2})(ones({1, 3, 5, 5}));      // [1, 8, 10, 10]
//   Tensor c = nn::ConvTranspose3d(3, 8, 2)(ones({1, 3, 2, 2, 2}));                  // [1, 8, 3, 3, 3]
class ConvTranspose1d : public detail::ConvTransposeLayer {
 public:
  ConvTranspose1d(int64_t in_channels, int64_t out_channels, int64_t kernel_size,
                  const ConvTranspose1dOptions& options = {})
      : ConvTransposeLayer(in_channels, out_channels, detail::conv_sizes("ConvTranspose1d", kernel_size, options)) {}
};
class ConvTranspose2d : public detail::ConvTransposeLayer {
 public:
  ConvTranspose2d(int64_t in_channels, int64_t out_channels, Pair kernel_size,
                  const ConvTranspose2dOptions& options = {})
      : ConvTransposeLayer(in_channels, out_channels, detail::conv_sizes("ConvTranspose2d", kernel_size, options)) {}
};
class ConvTranspose3d : public detail::ConvTransposeLayer {
 public:
  ConvTranspose3d(int64_t in_channels, int64_t out_channels, Triple kernel_size,
                  const ConvTranspose3dOptions& options = {})
      : ConvTransposeLayer(in_channels, out_channels, detail::conv_sizes("ConvTranspose3d", kernel_size, options)) {}
};

}  // namespace tenon::nn
