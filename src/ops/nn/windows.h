// What operators over windows read from their arguments: where the windows lie, and what sizes follow.
#pragma once

#include <tenon/kernels/pooling.h>
#include <tenon/ops/row.h>

namespace tenon::ops {

using kernels::Windows;

// A tensor of `dims` pooled dimensions after one or two others, of numbers.
const Tensor& pooled_input(const Arguments& arguments, std::string_view name, size_t dims);

struct Sliding {
  Ints kernel, stride, padding, dilation;
  bool ceil = false;
};
// From the arguments kernel_size, stride, padding, dilation (if there is one) and ceil_mode.
Sliding sliding_of(const Arguments& arguments, size_t dims);
// `sizes` with the pooled ones replaced by the number of windows.
SymInts slid_sizes(const SymInts& sizes, const Sliding& s, std::string_view op_name);
// For an input of `sizes` and an output of `counts`, both with the pooled dimensions last.
Windows sliding(std::span<const int64_t> sizes, std::span<const int64_t> counts, const Sliding& s,
                bool count_padding = true);
Windows even(std::span<const int64_t> sizes, std::span<const int64_t> counts, size_t dims);

// Of the largest elements and their places, with the channels last where they are last in `self`.
std::vector<TensorMeta> with_places(const Tensor& self, const SymInts& sizes);
// What an average divides by instead of the size of its windows; 0 for that size.
int64_t divisor_of(const Arguments& arguments);

}  // namespace tenon::ops
