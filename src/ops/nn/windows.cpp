#include "ops/nn/windows.h"

#include "sym/divide_up.h"

#include <tenon/sym/size_rules.h>

namespace tenon::ops {

namespace {

// A list of one number for all pooled dimensions, or of one for each.
Ints numbers_for(const dispatch::Value& value, size_t dims, std::string_view what, std::string_view op_name) {
  Ints numbers = value.ints();
  if (numbers.size() == 1)
    while (numbers.size() < dims) numbers.push_back(numbers[0]);
  TENON_CHECK(numbers.size() == dims, "[{}] expected {} of 1 or {} numbers, got {}", op_name, what, dims,
              numbers.size());
  return numbers;
}

SymInt window_count(const SymInt& size, const Sliding& s, size_t dim, std::string_view op_name) {
  SymInt padded = size + SymInt(s.padding[dim]) * 2, window = SymInt(s.dilation[dim]) * (s.kernel[dim] - 1) + 1;
  SymInt reach = padded - window;
  TENON_CHECK(expect(reach >= 0), "[{}] a window of {} does not fit into {} elements", op_name, window.str(),
              padded.str());
  if (!s.ceil) return reach / SymInt(s.stride[dim]) + 1;
  SymInt count = divide_up(reach, s.stride[dim]) + 1;
  // The last window must start inside the input or the padding before it.
  return bool((count - 1) * s.stride[dim] >= size + s.padding[dim]) ? count - 1 : count;
}

}  // namespace

const Tensor& pooled_input(const Arguments& arguments, std::string_view name, size_t dims) {
  const Tensor& self = arguments.tensor(name);
  std::string_view op_name = arguments.op().brief_name();
  TENON_CHECK(self.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  auto rank = static_cast<size_t>(self.dim());
  TENON_CHECK(rank == dims + 1 || rank == dims + 2, "[{}] expected a tensor of {} or {} dimensions, got {}", op_name,
              dims + 1, dims + 2, self.description());
  TENON_CHECK_IMPLEMENTED(self.dtype() != kBool, "[{}] expected a tensor of numbers, got {}", op_name,
                          self.description());
  return self;
}

Sliding sliding_of(const Arguments& arguments, size_t dims) {
  std::string_view op_name = arguments.op().brief_name();
  Sliding s;
  s.kernel = numbers_for(arguments["kernel_size"], dims, "a kernel_size", op_name);
  // No stride means windows side by side.
  s.stride =
      arguments["stride"].ints().empty() ? s.kernel : numbers_for(arguments["stride"], dims, "a stride", op_name);
  s.padding = numbers_for(arguments["padding"], dims, "a padding", op_name);
  s.dilation = arguments.has("dilation") ? numbers_for(arguments["dilation"], dims, "a dilation", op_name)
                                         : Ints(std::vector<int64_t>(dims, 1));
  s.ceil = arguments.boolean("ceil_mode");
  for (size_t dim = 0; dim < dims; ++dim) {
    TENON_CHECK(s.kernel[dim] > 0 && s.stride[dim] > 0 && s.dilation[dim] > 0,
                "[{}] expected a kernel_size, stride and dilation of at least 1, got {}, {} and {}", op_name,
                s.kernel[dim], s.stride[dim], s.dilation[dim]);
    TENON_CHECK(s.padding[dim] >= 0 && s.padding[dim] <= s.kernel[dim] / 2,
                "[{}] expected a padding of at most half of the kernel_size {}, got {}", op_name, s.kernel[dim],
                s.padding[dim]);
  }
  return s;
}

SymInts slid_sizes(const SymInts& sizes, const Sliding& s, std::string_view op_name) {
  SymInts result = sizes;
  size_t lead = sizes.size() - s.kernel.size();
  for (size_t dim = 0; dim < s.kernel.size(); ++dim)
    result[lead + dim] = window_count(sizes[lead + dim], s, dim, op_name);
  return result;
}

Windows sliding(std::span<const int64_t> sizes, std::span<const int64_t> counts, const Sliding& s, bool count_padding) {
  Windows windows;
  size_t dims = s.kernel.size();
  for (size_t dim = 0; dim < dims; ++dim) {
    windows.push_back(kernels::sliding_windows(sizes[sizes.size() - dims + dim], s.kernel[dim], s.stride[dim],
                                               s.padding[dim], s.dilation[dim], counts[counts.size() - dims + dim]));
    if (!count_padding)
      for (kernels::Window& w : windows.back()) w.divisor = w.end - w.start;
  }
  return windows;
}

Windows even(std::span<const int64_t> sizes, std::span<const int64_t> counts, size_t dims) {
  Windows windows;
  for (size_t dim = 0; dim < dims; ++dim)
    windows.push_back(kernels::even_windows(sizes[sizes.size() - dims + dim], counts[counts.size() - dims + dim]));
  return windows;
}

std::vector<TensorMeta> with_places(const Tensor& self, const SymInts& sizes) {
  return {TensorMeta::in_order_of(self, sizes, self.dtype()), TensorMeta::in_order_of(self, sizes, kInt64)};
}

int64_t divisor_of(const Arguments& arguments) {
  const dispatch::Value& value = arguments["divisor_override"];
  if (value.is_none()) return 0;
  TENON_CHECK(value.integer() != 0, "[{}] expected a divisor_override other than 0", arguments.op().brief_name());
  return value.integer();
}

}  // namespace tenon::ops
