// Convolutions of images by windows: how these lie, what they ask of tensors, and the sizes of what they give.
#pragma once

#include <tenon/core/tensor.h>

#include <optional>
#include <string_view>

namespace tenon::ops {

// How windows lie on images; lists have a number for each dimension.
struct ImageWindows {
  SymInts stride, padding, dilation;
  SymInt groups = 1;
  size_t dims() const { return stride.size(); }
  // How much of an image a window covers.
  SymInt span(const SymInts& weight, size_t dim) const { return dilation[dim] * (weight[dim + 2] - 1) + 1; }
};

struct Convolution {
  ImageWindows windows;
  bool transposed = false;
  SymInts output_padding;
};

// An Error unless all of it fits. The sizes of the result.
SymInts checked_sizes(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                      const Convolution& c, std::string_view op_name);
// The sizes of a result that is not transposed.
SymInts convolved_sizes(const SymInts& input, const SymInts& weight, const ImageWindows& w, std::string_view op_name);
// That `result` is what windows on an input of `input` and a weight of `weight` give.
void check_convolution_gradient(const Tensor& result, const Tensor& other, const SymInts& input, const SymInts& weight,
                                const ImageWindows& w, std::string_view op_name);

// How many elements lie behind the last that a transposed convolution's windows reach, in strides, as a padding of its
// input: positions that hold zeros would reach them. Empty where there are none.
SymInts positions_behind(const SymInts& output_padding, const SymInts& stride);
Tensor padded_behind(const Tensor& input, const SymInts& output_padding, const SymInts& stride);

// A list of one number for all dimensions, or of one for each.
SymInts numbers_for(const SymInts& list, size_t dims, std::string_view what, std::string_view op_name);

}  // namespace tenon::ops
