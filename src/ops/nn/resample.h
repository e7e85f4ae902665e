// Tensors of other sizes: each position of a result is a weighted sum of a few elements along each dimension.
#pragma once

#include <tenon/core/tensor.h>

#include <optional>
#include <string_view>
#include <vector>

namespace tenon::ops {

enum class Resampling : uint8_t {
  Nearest,       // the element below
  NearestExact,  // the element whose middle is nearest
  Linear,        // the two around it
  Cubic,         // four: Keys' convolution with a = -0.75
};

struct Resample {
  std::string_view op_name;
  Resampling kind;
  bool align_corners = false;                 // the first and last elements are those of the result
  std::vector<std::optional<double>> scales;  // by dimension; none: the quotient of the sizes
};

// `self` has as many dimensions as there are scales, after two others; `sizes` are those that they get.
Tensor resampled(const Tensor& self, const SymInts& sizes, const Resample& how);
// The gradient of an input of `input_sizes` from that of its resampled form.
Tensor resampled_backward(const Tensor& grad, const SymInts& sizes, const SymInts& input_sizes, const Resample& how);

// The sizes asked for, or those by the scales.
SymInts resampled_sizes(const Tensor& input, const std::optional<SymInts>& sizes,
                        const std::optional<std::vector<double>>& scales, size_t dims, std::string_view op_name);
std::vector<std::optional<double>> scales_of(const std::optional<std::vector<double>>& scales, size_t dims);

}  // namespace tenon::ops
