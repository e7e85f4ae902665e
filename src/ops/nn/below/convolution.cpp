// The gradients of a convolution as one operator, and convolutions whose border has a name.
#include "ops/nn/convolution.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

struct Given {
  SymInts stride, padding, dilation, output_padding;
  SymInt groups;
  bool transposed;
};

Tensor gradient_of_input(const Tensor& grad, const Tensor& input, const Tensor& weight, const Given& given) {
  if (!given.transposed)
    return _convolution_input_gradient(grad, weight, input.sym_sizes(), given.stride, given.padding, given.dilation,
                                       given.groups);
  Tensor result = convolution(grad, weight, std::nullopt, given.stride, given.padding, given.dilation, false,
                              SymInts(given.stride.size(), SymInt(0)), given.groups);
  if (!positions_behind(given.output_padding, given.stride).empty())
    for (int64_t dim = 2; dim < input.dim(); ++dim) result = slice(result, dim, std::nullopt, input.size(dim));
  return result;
}

Tensor gradient_of_weight(const Tensor& grad, const Tensor& input, const Tensor& weight, const Given& given) {
  SymInts sizes = weight.sym_sizes();
  if (!given.transposed)
    return _convolution_weight_gradient(grad, input, sizes, given.stride, given.padding, given.dilation, given.groups);
  return _convolution_weight_gradient(padded_behind(input, given.output_padding, given.stride), grad, sizes,
                                      given.stride, given.padding, given.dilation, given.groups);
}

// With a border that is named: none ("valid"), or one that keeps the sizes ("same"), its odd element at the end.
Tensor with_named_border(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                         const SymInts& given_stride, std::string_view border, const SymInts& given_dilation,
                         const SymInt& groups, size_t dims, const char* op_name) {
  TENON_CHECK(input.defined() && weight.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  const auto rank = static_cast<int64_t>(dims) + 2;
  TENON_CHECK(weight.dim() == rank && (input.dim() == rank || input.dim() == rank - 1),
              "[{}] expected a weight of {} dimensions and an input of as many, or one less, got {} and {}", op_name,
              rank, weight.description(), input.description());
  TENON_CHECK(border == "same" || border == "valid", "[{}] expected padding to be 'same' or 'valid', got '{}'", op_name,
              border);
  if (input.dim() < rank)
    return squeeze(with_named_border(unsqueeze(input, 0), weight, bias, given_stride, border, given_dilation, groups,
                                     dims, op_name),
                   0);
  const SymInts stride = numbers_for(given_stride, dims, "stride", op_name),
                dilation = numbers_for(given_dilation, dims, "dilation", op_name), none(dims, SymInt(0));
  SymInts padding = none, behind;
  for (size_t dim = dims; border == "same" && dim-- > 0;) {
    TENON_CHECK(expect(stride[dim] == 1), "[{}] padding 'same' is for a stride of 1, got {}", op_name, str(stride));
    const SymInt total = dilation[dim] * (weight.size(static_cast<int64_t>(dim) + 2) - 1);
    padding[dim] = total / 2;
    behind.push_back(0);
    behind.push_back(total % 2);
  }
  Tensor x = input;
  for (const SymInt& more : behind)
    if (!is_zero(more)) {
      x = constant_pad_nd(x, behind);
      break;
    }
  return convolution(x, weight, bias, stride, padding, dilation, false, none, groups);
}

}  // namespace

OPS(named_borders) {
  op("conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], str padding='valid', "
     "SymInt[1] dilation=[1], SymInt groups=1) -> Tensor")
      .decompose([](const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, const SymInts& stride,
                    std::string_view padding, const SymInts& dilation, const SymInt& groups) {
        return with_named_border(input, weight, bias, stride, padding, dilation, groups, 1, "conv1d");
      });
  op("conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], str padding='valid', "
     "SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor")
      .decompose([](const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, const SymInts& stride,
                    std::string_view padding, const SymInts& dilation, const SymInt& groups) {
        return with_named_border(input, weight, bias, stride, padding, dilation, groups, 2, "conv2d");
      });
  op("conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], str padding='valid', "
     "SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor")
      .decompose([](const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, const SymInts& stride,
                    std::string_view padding, const SymInts& dilation, const SymInt& groups) {
        return with_named_border(input, weight, bias, stride, padding, dilation, groups, 3, "conv3d");
      });
}

OPS(convolution_gradients) {
  op("convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, "
     "SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] "
     "output_mask) -> (Tensor, Tensor, Tensor)")
      .decompose([](const Tensor& grad, const Tensor& input, const Tensor& weight, const std::optional<SymInts>&,
                    const SymInts& stride, const SymInts& padding, const SymInts& dilation, bool transposed,
                    const SymInts& output_padding, const SymInt& groups, const std::vector<bool>& output_mask) {
        const char* op_name = "convolution_backward";
        TENON_CHECK(grad.defined() && input.defined() && weight.defined(),
                    "[{}] expected a tensor, got an undefined one", op_name);
        TENON_CHECK(input.dim() >= 3 && input.dim() == grad.dim() && input.dim() == weight.dim(),
                    "[{}] expected a gradient, an input and a weight of as many dimensions, three to five, got {}, {} "
                    "and {}",
                    op_name, grad.description(), input.description(), weight.description());
        TENON_CHECK(output_mask.size() == 3, "[{}] expected an output_mask of 3, got {}", op_name, output_mask.size());
        const auto dims = static_cast<size_t>(input.dim()) - 2;
        Given given{numbers_for(stride, dims, "stride", op_name),
                    numbers_for(padding, dims, "padding", op_name),
                    numbers_for(dilation, dims, "dilation", op_name),
                    numbers_for(output_padding, dims, "output_padding", op_name),
                    groups,
                    transposed};
        // What was not asked for is an undefined tensor.
        std::tuple<Tensor, Tensor, Tensor> results;
        if (output_mask[0]) std::get<0>(results) = gradient_of_input(grad, input, weight, given);
        if (output_mask[1]) std::get<1>(results) = gradient_of_weight(grad, input, weight, given);
        if (output_mask[2]) {
          Ints summed{0};
          for (int64_t dim = 2; dim < grad.dim(); ++dim) summed.push_back(dim);
          std::get<2>(results) = sum(grad, summed);
        }
        return results;
      });
}

}  // namespace tenon::ops
