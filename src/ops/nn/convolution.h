// What the gradients of transposed convolutions share.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon::ops {

// How many elements lie behind the last that a transposed convolution's windows reach, in strides, as a padding of its
// input: positions that hold zeros would reach them. Empty where there are none.
SymInts positions_behind(const SymInts& output_padding, const SymInts& stride);
Tensor padded_behind(const Tensor& input, const SymInts& output_padding, const SymInts& stride);

// A list of one number for all dimensions, or of one for each.
SymInts numbers_for(const SymInts& list, size_t dims, std::string_view what, std::string_view op_name);

}  // namespace tenon::ops
