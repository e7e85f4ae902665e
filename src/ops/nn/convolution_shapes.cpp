// What convolutions ask of tensors and windows, and the sizes of what they give.
#include "ops/nn/convolution.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

constexpr int64_t kFar = int64_t{1} << 31;

std::string together(const SymInts& a, const SymInts& b, const SymInts& c) {
  return fmt::format("{}, {} and {}", str(a), str(b), str(c));
}

void check_images(const Tensor& input, const Tensor& weight, size_t dims, std::string_view op_name) {
  TENON_CHECK(input.defined() && weight.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  auto rank = static_cast<int64_t>(dims) + 2;
  TENON_CHECK(input.dim() == rank && weight.dim() == rank,
              "[{}] expected an input and a weight of {} dimensions, got {} and {}", op_name, rank, input.description(),
              weight.description());
  TENON_CHECK(input.dtype() == weight.dtype() && (is_floating(input.dtype()) || input.dtype() == kInt64),
              "[{}] expected tensors of one floating point dtype, or of int64, got {} and {}", op_name,
              input.description(), weight.description());
}

void check_windows(const ImageWindows& w, std::string_view op_name) {
  TENON_CHECK(w.dims() >= 1 && w.dims() <= 3 && w.padding.size() == w.dims() && w.dilation.size() == w.dims(),
              "[{}] expected a stride, padding and dilation for one to three dimensions, got {}", op_name,
              together(w.stride, w.padding, w.dilation));
  for (size_t dim = 0; dim < w.dims(); ++dim) {
    TENON_CHECK(expect(w.stride[dim] > 0) && expect(w.dilation[dim] > 0) && expect(w.padding[dim] >= 0),
                "[{}] expected a stride and dilation of at least 1 and a padding of at least 0, got {}", op_name,
                together(w.stride, w.dilation, w.padding));
    // What lies further apart than any image reaches has no windows to speak of, and positions beyond 64 bits.
    TENON_CHECK(expect(w.stride[dim] < kFar) && expect(w.dilation[dim] < kFar) && expect(w.padding[dim] < kFar),
                "[{}] expected a stride, dilation and padding below 2^31, got {}", op_name,
                together(w.stride, w.dilation, w.padding));
  }
  TENON_CHECK(expect(w.groups > 0), "[{}] expected at least 1 group, got {}", op_name, w.groups.str());
}

SymInts transposed_sizes(const SymInts& input, const SymInts& weight, const Convolution& c, std::string_view op_name) {
  const ImageWindows& w = c.windows;
  SymInts sizes{input[0], weight[1] * w.groups};
  for (size_t dim = 0; dim < w.dims(); ++dim) {
    const SymInt& extra = c.output_padding[dim];
    TENON_CHECK(expect(extra >= 0) && (decide_or(extra < w.stride[dim], true) || expect(extra < w.dilation[dim])),
                "[{}] expected an output_padding below the stride or the dilation, got {}", op_name,
                str(c.output_padding));
    SymInt size = (input[dim + 2] - 1) * w.stride[dim] - w.padding[dim] * 2 + w.span(weight, dim) + extra;
    TENON_CHECK(expect(weight[dim + 2] > 0) && expect(size > 0),
                "[{}] nothing is left of an input of {} and a kernel of {} with a padding of {}", op_name, str(input),
                str(weight), str(w.padding));
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace

SymInts positions_behind(const SymInts& output_padding, const SymInts& stride) {
  SymInts pad;
  bool any = false;
  for (size_t dim = stride.size(); dim-- > 0;) {
    SymInt behind =
        decide_or(output_padding[dim] >= stride[dim], false) ? output_padding[dim] / stride[dim] : SymInt(0);
    any |= !is_zero(behind);
    pad.push_back(0);
    pad.push_back(behind);
  }
  return any ? pad : SymInts{};
}

Tensor padded_behind(const Tensor& input, const SymInts& output_padding, const SymInts& stride) {
  SymInts pad = positions_behind(output_padding, stride);
  return pad.empty() ? input : constant_pad_nd(input, pad);
}

SymInts numbers_for(const SymInts& list, size_t dims, std::string_view what, std::string_view op_name) {
  TENON_CHECK(list.size() == 1 || list.size() == dims, "[{}] expected a {} of 1 or {} numbers, got {}", op_name, what,
              dims, str(list));
  return list.size() == dims ? list : SymInts(dims, list[0]);
}

SymInts convolved_sizes(const SymInts& input, const SymInts& weight, const ImageWindows& w, std::string_view op_name) {
  SymInts sizes{input[0], weight[0]};
  for (size_t dim = 0; dim < w.dims(); ++dim) {
    SymInt padded = input[dim + 2] + w.padding[dim] * 2, span = w.span(weight, dim);
    TENON_CHECK(expect(weight[dim + 2] > 0) && expect(span <= padded),
                "[{}] a kernel of {} does not fit into an input of {} with a padding of {} and a dilation of {}",
                op_name, str(weight), str(input), str(w.padding), str(w.dilation));
    sizes.push_back((padded - span) / w.stride[dim] + 1);
  }
  return sizes;
}

SymInts checked_sizes(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                      const Convolution& c, std::string_view op_name) {
  check_images(input, weight, c.windows.dims(), op_name);
  check_windows(c.windows, op_name);
  const SymInt& groups = c.windows.groups;
  SymInt channels = c.transposed ? weight.size(1) * groups : weight.size(0);
  bool fits =
      c.transposed ? same_size(input.size(1), weight.size(0)) : same_size(input.size(1), weight.size(1) * groups);
  TENON_CHECK(fits && expect(weight.size(0) % groups == 0), "[{}] input {} and weight {} do not fit with {} groups",
              op_name, input.description(), weight.description(), groups.str());
  TENON_CHECK(!bias || (bias->defined() && bias->dim() == 1 && same_size(bias->size(0), channels)),
              "[{}] expected a bias of {} elements, got {}", op_name, channels.str(),
              bias->defined() ? bias->description() : "an undefined tensor");
  TENON_CHECK(!bias || bias->dtype() == input.dtype(), "[{}] expected a bias of {}, got {}", op_name,
              name(input.dtype()), bias->description());
  TENON_CHECK(!c.transposed || c.output_padding.size() == c.windows.dims(),
              "[{}] expected an output_padding of {} numbers, got {}", op_name, c.windows.dims(),
              str(c.output_padding));
  return c.transposed ? transposed_sizes(input.sym_sizes(), weight.sym_sizes(), c, op_name)
                      : convolved_sizes(input.sym_sizes(), weight.sym_sizes(), c.windows, op_name);
}

void check_convolution_gradient(const Tensor& result, const Tensor& other, const SymInts& input, const SymInts& weight,
                                const ImageWindows& w, std::string_view op_name) {
  check_images(result, other, w.dims(), op_name);
  check_windows(w, op_name);
  bool fits = input.size() == w.dims() + 2 && weight.size() == w.dims() + 2;
  for (const SymInts* list : {&input, &weight})
    for (const SymInt& size : *list) fits = fits && may_be_size(size);
  fits = fits && same_size(input[1], weight[1] * w.groups) && expect(weight[0] % w.groups == 0);
  TENON_CHECK(fits, "[{}] an input of {} and a weight of {} do not fit with {} groups", op_name, str(input),
              str(weight), w.groups.str());
  SymInts expected = convolved_sizes(input, weight, w, op_name), given = result.sym_sizes();
  for (size_t dim = 0; fits && dim < expected.size(); ++dim) fits = same_size(given[dim], expected[dim]);
  TENON_CHECK(fits, "[{}] expected a gradient of {}, got {}", op_name, str(expected), result.description());
}

}  // namespace tenon::ops
