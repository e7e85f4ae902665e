#include "uniform.h"

#include <tenon/generated/ops.h>
#include <tenon/nn/convolution.h>

#include <fmt/format.h>

#include <cmath>

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
    return convolve(x, weight.get(), given(bias), symbolic(sizes_.stride), symbolic(sizes_.padding),
                    symbolic(sizes_.output_padding), sizes_.groups, symbolic(sizes_.dilation));
  });
}

}  // namespace tenon::nn::detail
