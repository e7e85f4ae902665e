// Convolutions of all numbers of dimensions, over conv2d: of one dimension as images of one row, of three as sums of
// images, transposed ones as convolutions of inputs that are spread apart.
#include "uniform.h"

#include <tenon/generated/ops.h>
#include <tenon/nn/convolution.h>

#include <fmt/format.h>

#include <cmath>

namespace tenon {
namespace {

SymInts expanded(const SymInts& list, size_t dims, const char* what, const char* name) {
  TENON_CHECK(list.size() == 1 || list.size() == dims, "[{}] expected a {} of 1 or {} numbers, got {}", name, what,
              dims, list.size());
  return list.size() == dims ? list : SymInts(dims, list[0]);
}

// Whether the input has a batch; refuses what has the wrong number of dimensions.
bool batched(const Tensor& input, const Tensor& weight, size_t dims, const char* name) {
  auto rank = static_cast<int64_t>(dims);
  TENON_CHECK(input.defined() && weight.defined(), "[{}] expected a tensor, got an undefined one", name);
  TENON_CHECK(input.dim() == rank + 1 || input.dim() == rank + 2,
              "[{}] expected an input of {} or {} dimensions, got {}", name, rank + 1, rank + 2, input.description());
  TENON_CHECK(weight.dim() == rank + 2, "[{}] expected a weight of {} dimensions, got {}", name, rank + 2,
              weight.description());
  return input.dim() == rank + 2;
}

}  // namespace

Tensor conv1d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, const SymInts& stride,
              const SymInts& padding, const SymInts& dilation, const SymInt& groups) {
  batched(input, weight, 1, "conv1d");
  auto row = [](const SymInts& list, int64_t other, const char* what) {
    return SymInts{other, expanded(list, 1, what, "conv1d")[0]};
  };
  return squeeze(conv2d(unsqueeze(input, -2), unsqueeze(weight, -2), bias, row(stride, 1, "stride"),
                        row(padding, 0, "padding"), row(dilation, 1, "dilation"), groups),
                 -2);
}

Tensor conv3d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, const SymInts& stride,
              const SymInts& padding, const SymInts& dilation, const SymInt& groups) {
  if (!batched(input, weight, 3, "conv3d"))
    return squeeze(conv3d(unsqueeze(input, 0), weight, bias, stride, padding, dilation, groups), 0);
  SymInts steps = expanded(stride, 3, "stride", "conv3d"), borders = expanded(padding, 3, "padding", "conv3d"),
          apart = expanded(dilation, 3, "dilation", "conv3d");
  // Planes are a batch of images; the kernel's planes are convolved one by one and summed.
  Tensor volume = constant_pad_nd(input, SymInts{0, 0, 0, 0, borders[0], borders[0]});
  auto planes = int64_t(weight.size(2));
  SymInt depth = (volume.size(2) - apart[0] * (planes - 1) - 1) / steps[0] + 1, batch = input.size(0);
  TENON_CHECK(bool(depth > 0), "[conv3d] a kernel of {} does not fit into {}", weight.description(),
              input.description());
  Tensor total;
  for (int64_t plane = 0; plane < planes; ++plane) {
    SymInt first = apart[0] * plane;
    Tensor part = slice(volume, 2, first, first + steps[0] * (depth - 1) + 1, steps[0]);
    Tensor images = reshape(transpose(part, 1, 2), SymInts{batch * depth, input.size(1), input.size(3), input.size(4)});
    Tensor each = conv2d(images, select(weight, 2, plane), std::nullopt, SymInts{steps[1], steps[2]},
                         SymInts{borders[1], borders[2]}, SymInts{apart[1], apart[2]}, groups);
    total = plane == 0 ? each : total + each;
  }
  if (bias) total = total + view(*bias, SymInts{1, weight.size(0), 1, 1});
  Tensor result = view(total, SymInts{batch, depth, weight.size(0), total.size(2), total.size(3)});
  return contiguous(transpose(result, 1, 2));
}

namespace {

Ints expanded(const Ints& list, size_t dims, const char* what, const char* name) {
  TENON_CHECK(list.size() == 1 || list.size() == dims, "[{}] expected a {} of 1 or {} numbers, got {}", name, what,
              dims, list.size());
  return list.size() == dims ? list : Ints(std::vector<int64_t>(dims, list[0]));
}

Tensor transposed(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, const Ints& stride,
                  const Ints& padding, const Ints& output_padding, int64_t groups, const Ints& dilation, size_t dims,
                  const char* name) {
  if (!batched(input, weight, dims, name))
    return squeeze(
        transposed(unsqueeze(input, 0), weight, bias, stride, padding, output_padding, groups, dilation, dims, name),
        0);
  Ints steps = expanded(stride, dims, "stride", name), borders = expanded(padding, dims, "padding", name),
       extra = expanded(output_padding, dims, "output_padding", name),
       apart = expanded(dilation, dims, "dilation", name);
  TENON_CHECK(groups > 0 && bool(weight.size(0) % groups == 0) && bool(input.size(1) == weight.size(0)),
              "[{}] expected an input of {} channels, which {} groups divide, got {}", name, weight.size(0).str(),
              groups, input.description());
  // Between the elements of the input lie stride - 1 zeros.
  Tensor spread = input;
  for (size_t dim = 0; dim < dims; ++dim) {
    if (steps[dim] == 1) continue;
    TENON_CHECK(steps[dim] > 0, "[{}] expected a stride of at least 1, got {}", name, steps[dim]);
    auto at = static_cast<int64_t>(dim) + 2;
    SymInts sizes = spread.sym_sizes();
    sizes[dim + 2] = (sizes[dim + 2] - 1) * steps[dim] + 1;
    spread = slice_scatter(zeros(sizes, TensorOptions(input.dtype(), input.device())), spread, at, std::nullopt,
                           std::nullopt, steps[dim]);
  }
  SymInts pad;
  for (size_t dim = dims; dim-- > 0;) {
    TENON_CHECK(extra[dim] >= 0 && (extra[dim] < steps[dim] || extra[dim] < apart[dim]),
                "[{}] expected an output_padding below the stride or the dilation, got {}", name, extra[dim]);
    SymInt reach = apart[dim] * (weight.size(static_cast<int64_t>(dim) + 2) - 1) - borders[dim];
    pad.push_back(reach);
    pad.push_back(reach + extra[dim]);
  }
  spread = constant_pad_nd(spread, pad);
  // The kernel turned around, [in, out / groups, …] as [out, in / groups, …].
  Ints turned;
  for (size_t dim = 0; dim < dims; ++dim) turned.push_back(static_cast<int64_t>(dim) + 2);
  Tensor kernel = flip(weight, turned);
  SymInts sizes = kernel.sym_sizes(), parts{SymInt(groups), sizes[0] / groups, sizes[1]},
          whole{sizes[1] * groups, sizes[0] / groups};
  for (size_t dim = 0; dim < dims; ++dim) {
    parts.push_back(sizes[dim + 2]);
    whole.push_back(sizes[dim + 2]);
  }
  kernel = reshape(transpose(reshape(kernel, parts), 1, 2), whole);
  SymInts ones_(dims, SymInt(1)), zeros_(dims, SymInt(0)), dilated;
  for (int64_t each : apart) dilated.push_back(each);
  auto convolve = dims == 1 ? conv1d : dims == 3 ? conv3d : nullptr;
  return convolve ? convolve(spread, kernel, bias, ones_, zeros_, dilated, groups)
                  : conv2d(spread, kernel, bias, ones_, zeros_, dilated, groups);
}

}  // namespace

Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                        const Ints& stride, const Ints& padding, const Ints& output_padding, int64_t groups,
                        const Ints& dilation) {
  return transposed(input, weight, bias, stride, padding, output_padding, groups, dilation, 1, "conv_transpose1d");
}
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                        const Ints& stride, const Ints& padding, const Ints& output_padding, int64_t groups,
                        const Ints& dilation) {
  return transposed(input, weight, bias, stride, padding, output_padding, groups, dilation, 2, "conv_transpose2d");
}
Tensor conv_transpose3d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                        const Ints& stride, const Ints& padding, const Ints& output_padding, int64_t groups,
                        const Ints& dilation) {
  return transposed(input, weight, bias, stride, padding, output_padding, groups, dilation, 3, "conv_transpose3d");
}

}  // namespace tenon

namespace tenon::nn::detail {
namespace {

// A conv2d of "3 by 5" says so.
std::string by(const Ints& sizes) { return fmt::format("{}", fmt::join(sizes, " by ")); }

std::string details(int64_t in, int64_t out, const ConvSizes& s) {
  auto tuple = [](const Ints& list) {
    return fmt::format("({}{})", fmt::join(list, ", "), list.size() == 1 ? "," : "");
  };
  std::string text = fmt::format("{}, {}, kernel_size={}, stride={}", in, out, tuple(s.kernel), tuple(s.stride));
  auto unless = [&](const char* name, const Ints& list, int64_t usual) {
    for (int64_t each : list)
      if (each != usual) {
        text += fmt::format(", {}={}", name, tuple(list));
        break;
      }
  };
  if (s.same_padding)
    text += ", padding=same";
  else
    unless("padding", s.padding, 0);
  unless("output_padding", s.output_padding, 0);
  unless("dilation", s.dilation, 1);
  if (s.groups != 1) text += fmt::format(", groups={}", s.groups);
  if (!s.bias) text += ", bias=False";
  return text;
}

void check(int64_t in_channels, int64_t out_channels, const ConvSizes& s) {
  TENON_CHECK(in_channels > 0 && out_channels > 0 && s.groups > 0 && in_channels % s.groups == 0 &&
                  out_channels % s.groups == 0,
              "[{}] expected channels that {} groups divide, got {} in and {} out", s.kind, s.groups, in_channels,
              out_channels);
  bool fits = true, unit = true;
  for (int64_t size : s.kernel) fits &= size > 0;
  for (int64_t step : s.stride) unit &= step == 1;
  TENON_CHECK(fits, "[{}] expected a kernel_size above 0, got {}", s.kind, by(s.kernel));
  TENON_CHECK(!s.same_padding || unit, "[{}] expected a stride of 1 with same_padding, got {}", s.kind, by(s.stride));
  TENON_CHECK(is_floating(s.dtype), "[{}] expected a floating point dtype, got {}", s.kind, name(s.dtype));
}

SymInts symbolic(const Ints& list) { return SymInts(list.span()); }

double bound_of(int64_t channels, const ConvSizes& s) {
  double inputs = static_cast<double>(channels);
  for (int64_t size : s.kernel) inputs *= static_cast<double>(size);
  return 1 / std::sqrt(inputs);
}

}  // namespace

ConvLayer::ConvLayer(int64_t in_channels, int64_t out_channels, ConvSizes sizes) : sizes_(std::move(sizes)) {
  check(in_channels, out_channels, sizes_);
  double bound = bound_of(in_channels / sizes_.groups, sizes_);
  SymInts shape{out_channels, in_channels / sizes_.groups};
  for (int64_t size : sizes_.kernel) shape.push_back(size);
  weight = parameter("weight", uniform(shape, bound, sizes_.dtype));
  bias = parameter("bias", sizes_.bias ? uniform({out_channels}, bound, sizes_.dtype) : Tensor());
  describe(sizes_.kind, details(in_channels, out_channels, sizes_));
}

Tensor ConvLayer::operator()(const Tensor& input) const {
  return run(input, [&](const Tensor& x) {
    Tensor image = x;
    Ints padding = sizes_.padding;
    if (sizes_.same_padding) {
      SymInts rest;
      bool uneven = false;
      for (size_t dim = sizes_.kernel.size(); dim-- > 0;) {
        int64_t total = sizes_.dilation[dim] * (sizes_.kernel[dim] - 1);
        padding[dim] = total / 2;
        // Of an odd number the larger half comes last.
        rest.push_back(0);
        rest.push_back(total % 2);
        uneven |= total % 2 != 0;
      }
      if (uneven) image = constant_pad_nd(image, rest);
    }
    SymInts stride = symbolic(sizes_.stride), border = symbolic(padding), dilation = symbolic(sizes_.dilation);
    std::optional<Tensor> offset = given(bias);
    switch (sizes_.kernel.size()) {
      case 1: return conv1d(image, weight.get(), offset, stride, border, dilation, sizes_.groups);
      case 2: return conv2d(image, weight.get(), offset, stride, border, dilation, sizes_.groups);
      default: return conv3d(image, weight.get(), offset, stride, border, dilation, sizes_.groups);
    }
  });
}

ConvTransposeLayer::ConvTransposeLayer(int64_t in_channels, int64_t out_channels, ConvSizes sizes)
    : sizes_(std::move(sizes)) {
  check(in_channels, out_channels, sizes_);
  double bound = bound_of(out_channels / sizes_.groups, sizes_);
  SymInts shape{in_channels, out_channels / sizes_.groups};
  for (int64_t size : sizes_.kernel) shape.push_back(size);
  weight = parameter("weight", uniform(shape, bound, sizes_.dtype));
  bias = parameter("bias", sizes_.bias ? uniform({out_channels}, bound, sizes_.dtype) : Tensor());
  describe(sizes_.kind, details(in_channels, out_channels, sizes_));
}

Tensor ConvTransposeLayer::operator()(const Tensor& input) const {
  return run(input, [&](const Tensor& x) {
    auto convolve = sizes_.kernel.size() == 1   ? conv_transpose1d
                    : sizes_.kernel.size() == 2 ? conv_transpose2d
                                                : conv_transpose3d;
    return convolve(x, weight.get(), given(bias), sizes_.stride, sizes_.padding, sizes_.output_padding, sizes_.groups,
                    sizes_.dilation);
  });
}

}  // namespace tenon::nn::detail
