// Convolutions by the number of their dimensions, of images with or without a batch.
#include "ops/nn/convolution.h"

#include <tenon/ops/table.h>

namespace tenon::ops {
namespace {

// `convolution`, of images with or without a batch.
Tensor over(size_t dims, std::string_view op_name, const Tensor& input, const Tensor& weight,
            const std::optional<Tensor>& bias, const SymInts& stride, const SymInts& padding, const SymInts& dilation,
            const SymInt& groups, bool transposed = false, const SymInts& output_padding = SymInts{0}) {
  auto rank = static_cast<int64_t>(dims);
  TENON_CHECK(input.defined() && weight.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  TENON_CHECK((input.dim() == rank + 1 || input.dim() == rank + 2) && weight.dim() == rank + 2,
              "[{}] expected an input of {} or {} dimensions and a weight of {}, got {} and {}", op_name, rank + 1,
              rank + 2, rank + 2, input.description(), weight.description());
  if (input.dim() == rank + 1)
    return squeeze(over(dims, op_name, unsqueeze(input, 0), weight, bias, stride, padding, dilation, groups, transposed,
                        output_padding),
                   0);
  Convolution c{{numbers_for(stride, dims, "stride", op_name), numbers_for(padding, dims, "padding", op_name),
                 numbers_for(dilation, dims, "dilation", op_name), groups},
                transposed,
                numbers_for(output_padding, dims, "output_padding", op_name)};
  checked_sizes(input, weight, bias, c, op_name);
  return convolution(input, weight, bias, c.windows.stride, c.windows.padding, c.windows.dilation, transposed,
                     c.output_padding, groups);
}

}  // namespace

OPS(named_convolutions) {
  op("conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], SymInt[1] "
     "dilation=[1], SymInt groups=1) -> Tensor")
      .decompose([](const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, const SymInts& stride,
                    const SymInts& padding, const SymInts& dilation, const SymInt& groups) {
        return over(1, "conv1d", input, weight, bias, stride, padding, dilation, groups);
      });
  op("conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], "
     "SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor")
      .decompose([](const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, const SymInts& stride,
                    const SymInts& padding, const SymInts& dilation, const SymInt& groups) {
        return over(2, "conv2d", input, weight, bias, stride, padding, dilation, groups);
      });
  op("conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], "
     "SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor")
      .decompose([](const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, const SymInts& stride,
                    const SymInts& padding, const SymInts& dilation, const SymInt& groups) {
        return over(3, "conv3d", input, weight, bias, stride, padding, dilation, groups);
      });
  op("conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], "
     "SymInt[1] output_padding=[0], SymInt groups=1, SymInt[1] dilation=[1]) -> Tensor")
      .decompose([](const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, const SymInts& stride,
                    const SymInts& padding, const SymInts& output_padding, const SymInt& groups,
                    const SymInts& dilation) {
        return over(1, "conv_transpose1d", input, weight, bias, stride, padding, dilation, groups, true,
                    output_padding);
      });
  op("conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] "
     "padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt groups=1, SymInt[2] dilation=[1, 1]) -> Tensor")
      .decompose([](const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, const SymInts& stride,
                    const SymInts& padding, const SymInts& output_padding, const SymInt& groups,
                    const SymInts& dilation) {
        return over(2, "conv_transpose2d", input, weight, bias, stride, padding, dilation, groups, true,
                    output_padding);
      });
  op("conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] "
     "padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt groups=1, SymInt[3] dilation=[1, 1, 1]) -> Tensor")
      .decompose([](const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, const SymInts& stride,
                    const SymInts& padding, const SymInts& output_padding, const SymInt& groups,
                    const SymInts& dilation) {
        return over(3, "conv_transpose3d", input, weight, bias, stride, padding, dilation, groups, true,
                    output_padding);
      });
}

}  // namespace tenon::ops
