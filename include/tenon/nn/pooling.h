// Windows that slide, and windows as many as are asked for.
#pragma once

#include <tenon/nn/layer.h>
#include <tenon/nn/sizes.h>

namespace tenon {

// Of sequences and volumes; those of images are operators. Arguments as theirs.
//
//   Tensor s = ones({1, 2, 8}), v = ones({1, 2, 4, 4, 4});
//   Tensor a = max_pool1d(s, {2}), b = max_pool3d(v, {2}), c = avg_pool1d(s, {2}), d = avg_pool3d(v, {2});
//   Tensor e = adaptive_avg_pool1d(s, {4}), f = adaptive_avg_pool3d(v, {2}), g = adaptive_max_pool1d(s, {4});
Tensor max_pool1d(const Tensor& self, const Ints& kernel_size, const Ints& stride = {}, const Ints& padding = {0},
                  const Ints& dilation = {1}, bool ceil_mode = false);
Tensor max_pool3d(const Tensor& self, const Ints& kernel_size, const Ints& stride = {}, const Ints& padding = {0},
                  const Ints& dilation = {1}, bool ceil_mode = false);
Tensor avg_pool1d(const Tensor& self, const Ints& kernel_size, const Ints& stride = {}, const Ints& padding = {0},
                  bool ceil_mode = false, bool count_include_pad = true);
Tensor avg_pool3d(const Tensor& self, const Ints& kernel_size, const Ints& stride = {}, const Ints& padding = {0},
                  bool ceil_mode = false, bool count_include_pad = true);
Tensor adaptive_avg_pool1d(const Tensor& self, const SymInts& output_size);
Tensor adaptive_avg_pool3d(const Tensor& self, const SymInts& output_size);
Tensor adaptive_max_pool1d(const Tensor& self, const SymInts& output_size);

}  // namespace tenon

namespace tenon::nn {

// An undefined stride is the kernel's size.
//
//   nn::MaxPool2dOptions options{.stride = nn::Pair(1), .padding = 1};
template <typename Size>
struct MaxPoolOptions {
  std::optional<Size> stride = {};
  Size padding = 0;
  Size dilation = 1;
  bool ceil_mode = false;
};
using MaxPool1dOptions = MaxPoolOptions<int64_t>;
using MaxPool2dOptions = MaxPoolOptions<Pair>;
using MaxPool3dOptions = MaxPoolOptions<Triple>;

template <typename Size>
struct AvgPoolOptions {
  std::optional<Size> stride = {};
  Size padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};
using AvgPool1dOptions = AvgPoolOptions<int64_t>;
using AvgPool2dOptions = AvgPoolOptions<Pair>;
using AvgPool3dOptions = AvgPoolOptions<Triple>;

//   Tensor s = ones({1, 2, 8}), i = ones({1, 2, 8, 8}), v = ones({1, 2, 4, 4, 4});
//   Tensor a = nn::MaxPool1d(2)(s), b = nn::MaxPool2d(3, {.stride = 2, .padding = 1})(i), c = nn::MaxPool3d(2)(v);
//   Tensor d = nn::AvgPool1d(2)(s), e = nn::AvgPool2d(2)(i), f = nn::AvgPool3d(2)(v);
//   Tensor g = nn::AdaptiveAvgPool1d(4)(s), h = nn::AdaptiveAvgPool2d(1)(i), j = nn::AdaptiveAvgPool3d(2)(v);
//   Tensor k = nn::AdaptiveMaxPool1d(4)(s), l = nn::AdaptiveMaxPool2d(1)(i), m = nn::AdaptiveMaxPool3d(2)(v);
class MaxPool1d : public FunctionLayer {
 public:
  explicit MaxPool1d(int64_t kernel_size, const MaxPool1dOptions& options = {});
};
class MaxPool2d : public FunctionLayer {
 public:
  explicit MaxPool2d(Pair kernel_size, const MaxPool2dOptions& options = {});
};
class MaxPool3d : public FunctionLayer {
 public:
  explicit MaxPool3d(Triple kernel_size, const MaxPool3dOptions& options = {});
};
class AvgPool1d : public FunctionLayer {
 public:
  explicit AvgPool1d(int64_t kernel_size, const AvgPool1dOptions& options = {});
};
class AvgPool2d : public FunctionLayer {
 public:
  explicit AvgPool2d(Pair kernel_size, const AvgPool2dOptions& options = {});
};
class AvgPool3d : public FunctionLayer {
 public:
  explicit AvgPool3d(Triple kernel_size, const AvgPool3dOptions& options = {});
};
class AdaptiveAvgPool1d : public FunctionLayer {
 public:
  explicit AdaptiveAvgPool1d(int64_t output_size);
};
class AdaptiveAvgPool2d : public FunctionLayer {
 public:
  explicit AdaptiveAvgPool2d(Pair output_size);
};
class AdaptiveAvgPool3d : public FunctionLayer {
 public:
  explicit AdaptiveAvgPool3d(Triple output_size);
};
class AdaptiveMaxPool1d : public FunctionLayer {
 public:
  explicit AdaptiveMaxPool1d(int64_t output_size);
};
class AdaptiveMaxPool2d : public FunctionLayer {
 public:
  explicit AdaptiveMaxPool2d(Pair output_size);
};
class AdaptiveMaxPool3d : public FunctionLayer {
 public:
  explicit AdaptiveMaxPool3d(Triple output_size);
};

}  // namespace tenon::nn
