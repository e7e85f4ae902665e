// The gradients of a convolution as one operator.
#include "ops/convolution.h"

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

}  // namespace

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
