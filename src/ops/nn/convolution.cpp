// Convolutions over one, two and three dimensions. `convolution` and its two gradients are calls of a library; dtypes
// and windows that it does not take are matrix products over windows (im2col).
//
// A convolution is linear in its input and in its weight, so the gradients of each of the three are the other two.
#include "ops/nn/convolution.h"
#include "support/checked.h"

#include <tenon/kernels/convolution.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>

namespace tenon::ops {
namespace {

// Whether the channels of images lie together in memory.
bool is_channels_last(const Tensor& tensor) { return tensor.suggested_format() != MemoryFormat::Contiguous; }

// Results are laid out as images or weights are; float64 is always contiguous.
TensorMeta laid_out(const SymInts& sizes, const Tensor& images, const Tensor& other) {
  TensorMeta meta = TensorMeta::contiguous(sizes, images.dtype(), images.device());
  if (images.dtype() == kFloat64 || (!is_channels_last(images) && !is_channels_last(other))) return meta;
  SymInt next = sizes[1];
  meta.strides[1] = 1;
  for (size_t dim = sizes.size(); dim-- > 2; next *= sizes[dim]) meta.strides[dim] = next;
  meta.strides[0] = next;
  return meta;
}

// A contiguous result of products, laid out as `laid_out` says.
Tensor relaid(const Tensor& result, const Tensor& images, const Tensor& other) {
  if (laid_out(result.sym_sizes(), images, other).strides[1].maybe_constant() != 1 || is_one(result.size(1)))
    return result.is_contiguous() ? result : clone(result, MemoryFormat::Contiguous);
  Ints there{0}, back{0, result.dim() - 1};
  for (int64_t dim = 2; dim < result.dim(); ++dim) {
    there.push_back(dim);
    back.push_back(dim - 1);
  }
  there.push_back(1);
  return permute(clone(permute(result, there), MemoryFormat::Contiguous), back);
}

// The library takes it: its dtype, and windows that all reach into the image.
bool by_library(Dtype dtype, const SymInts& weight, const ImageWindows& w) {
  if (!kernels::convolution_supports(dtype)) return false;
  constexpr int64_t kWide = 1 << 15;
  for (size_t dim = 0; dim < w.dims(); ++dim)
    if (!decide_or(w.padding[dim] < w.span(weight, dim), true) || !decide_or(w.stride[dim] < kWide, true) ||
        !decide_or(w.dilation[dim] < kWide, true) || !decide_or(weight[dim + 2] < kWide, true))
      return false;
  return true;
}

// A list of one number stands for all dimensions.
template <typename List>
List for_all(const List& list, size_t dims) {
  return list.size() == 1 && dims > 1 ? List(dims, list[0]) : list;
}
template <typename List>
size_t longest(const List& a, const List& b, const List& c) {
  return std::max({a.size(), b.size(), c.size()});
}
ImageWindows evened(const SymInts& stride, const SymInts& padding, const SymInts& dilation, const SymInt& groups) {
  const size_t dims = longest(stride, padding, dilation);
  return {for_all(stride, dims), for_all(padding, dims), for_all(dilation, dims), groups};
}
ImageWindows windows_in(const Arguments& arguments) {
  return evened(arguments["stride"].sym_ints(), arguments["padding"].sym_ints(), arguments["dilation"].sym_ints(),
                arguments["groups"].sym_int());
}
ImageWindows windows_in(const Grad& g) {
  return evened(g.argument("stride").sym_ints(), g.argument("padding").sym_ints(), g.argument("dilation").sym_ints(),
                g.argument("groups").sym_int());
}
Convolution convolution_in(const Arguments& arguments) {
  ImageWindows windows = windows_in(arguments);
  SymInts output_padding = for_all(arguments["output_padding"].sym_ints(), windows.dims());
  return {windows, arguments.boolean("transposed"), output_padding};
}

kernels::ConvolutionWindows plain(const Arguments& arguments) {
  const Ints stride = arguments["stride"].ints(), padding = arguments["padding"].ints(),
             dilation = arguments["dilation"].ints();
  const size_t dims = longest(stride, padding, dilation);
  auto even = [&](const Ints& list) {
    Ints all = list;
    if (list.size() == 1) all.resize(dims, list[0]);
    return all;
  };
  return {even(stride), even(padding), even(dilation), arguments.integer("groups")};
}

// The windows as numbers, and the matrix that a group multiplies by.
struct Matrices {
  Ints step, border, apart, kernel;
  int64_t groups;
  SymInt inner, outer;  // elements of a window, channels out
  int64_t span(size_t dim) const { return checked::add(checked::multiply(kernel[dim] - 1, apart[dim]), 1); }
  size_t dims() const { return step.size(); }

  Matrices(const ImageWindows& w, const SymInts& weight) : groups(int64_t(w.groups)), inner(weight[1]) {
    for (size_t dim = 0; dim < w.dims(); ++dim) {
      step.push_back(int64_t(w.stride[dim]));
      border.push_back(int64_t(w.padding[dim]));
      apart.push_back(int64_t(w.dilation[dim]));
      kernel.push_back(int64_t(weight[dim + 2]));
      inner *= kernel[dim];
    }
    outer = weight[0] / SymInt(groups);
  }
};

SymInt product_from(const SymInts& sizes, size_t first) {
  SymInt product = 1;
  for (size_t dim = first; dim < sizes.size(); ++dim) product *= sizes[dim];
  return product;
}

// [N, C, …] to the windows of all images, one column each: [N * groups, inner, positions].
Tensor windows_of(const Tensor& input, const Matrices& m) {
  Tensor x = input;
  SymInts pad;
  for (size_t dim = m.dims(); dim-- > 0;) {
    pad.push_back(m.border[dim]);
    pad.push_back(m.border[dim]);
  }
  if (std::any_of(m.border.begin(), m.border.end(), [](int64_t border) { return border > 0; }))
    x = constant_pad_nd(x, pad);
  // [N, C, positions…, elements of a window…], all of it in place.
  for (size_t dim = 0; dim < m.dims(); ++dim) x = unfold(x, static_cast<int64_t>(dim) + 2, m.span(dim), m.step[dim]);
  Ints order{0, 1};
  for (size_t dim = 0; dim < m.dims(); ++dim) {
    auto at = static_cast<int64_t>(dim + m.dims()) + 2;
    if (m.apart[dim] > 1) x = slice(x, at, std::nullopt, std::nullopt, m.apart[dim]);
    order.push_back(at);
  }
  SymInt positions = 1;
  for (size_t dim = 0; dim < m.dims(); ++dim) {
    order.push_back(static_cast<int64_t>(dim) + 2);
    positions *= x.size(static_cast<int64_t>(dim) + 2);
  }
  return reshape(permute(x, order), SymInts{x.size(0) * m.groups, m.inner, positions});
}

// The weight for every image and group: [N * groups, outer, inner].
Tensor filters_of(const Tensor& weight, const SymInt& batch, const Matrices& m) {
  Tensor filters =
      expand(reshape(weight, SymInts{1, m.groups, m.outer, m.inner}), SymInts{batch, m.groups, m.outer, m.inner});
  return m.groups == 1 ? squeeze(filters, 1) : reshape(filters, SymInts{batch * m.groups, m.outer, m.inner});
}

// One matrix for each image and group: [N * groups, outer, positions].
Tensor result_matrices(const Tensor& result, const Matrices& m) {
  SymInts sizes = result.sym_sizes();
  return reshape(result, SymInts{sizes[0] * m.groups, m.outer, product_from(sizes, 2)});
}

// A bias under images.
Tensor by_channel(const Tensor& bias, size_t dims) {
  SymInts sizes(dims + 2, SymInt(1));
  sizes[1] = bias.size(0);
  return view(bias, sizes);
}

// Halves are added up in float32 and rounded once.
Tensor convolved_by_products(const Tensor& input, const Tensor& weight, const ImageWindows& w) {
  if (const Dtype wide = compute_dtype(input.dtype()); wide != input.dtype())
    return convolved_by_products(input.to(wide), weight.to(wide), w).to(input.dtype());
  Matrices m(w, weight.sym_sizes());
  SymInts sizes = convolved_sizes(input.sym_sizes(), weight.sym_sizes(), w, "convolution");
  return relaid(view(bmm(filters_of(weight, input.size(0), m), windows_of(input, m)), sizes), input, weight);
}

Tensor input_gradient_by_products(const Tensor& grad, const Tensor& weight, const SymInts& input_size,
                                  const ImageWindows& w) {
  if (const Dtype wide = compute_dtype(grad.dtype()); wide != grad.dtype())
    return input_gradient_by_products(grad.to(wide), weight.to(wide), input_size, w).to(grad.dtype());
  Matrices m(w, weight.sym_sizes());
  SymInts out = grad.sym_sizes();
  // [N, C, kernel…, positions…] to [N, C, positions…, kernel…].
  SymInts apart{input_size[0], input_size[1]};
  Ints order{0, 1};
  for (size_t dim = 0; dim < m.dims(); ++dim) apart.push_back(m.kernel[dim]);
  for (size_t dim = 0; dim < m.dims(); ++dim) apart.push_back(out[dim + 2]);
  for (size_t dim = 0; dim < m.dims(); ++dim) order.push_back(static_cast<int64_t>(m.dims() + dim) + 2);
  for (size_t dim = 0; dim < m.dims(); ++dim) order.push_back(static_cast<int64_t>(dim) + 2);
  Tensor windows = bmm(transpose(filters_of(weight, input_size[0], m), 1, 2), result_matrices(grad, m));
  Tensor x = permute(view(windows, apart), order);
  // What lies between the elements of a window that are apart gets nothing.
  for (size_t dim = 0; dim < m.dims(); ++dim) {
    if (m.apart[dim] == 1) continue;
    SymInts whole = x.sym_sizes();
    auto at = m.dims() + dim + 2;
    whole[at] = m.span(dim);
    x = slice_scatter(zeros(whole, TensorOptions(x.dtype(), x.device())), x, static_cast<int64_t>(at), std::nullopt,
                      std::nullopt, m.apart[dim]);
  }
  for (size_t dim = m.dims(); dim-- > 0;) {
    SymInts sizes = x.sym_sizes();
    sizes.resize(sizes.size() - 1);
    sizes[dim + 2] = input_size[dim + 2] + SymInt(m.border[dim]) * 2;
    x = unfold_backward(x, sizes, static_cast<int64_t>(dim) + 2, m.span(dim), m.step[dim]);
  }
  for (size_t dim = 0; dim < m.dims(); ++dim)
    if (m.border[dim] > 0)
      x = slice(x, static_cast<int64_t>(dim) + 2, m.border[dim], input_size[dim + 2] + m.border[dim]);
  return relaid(x, grad, weight);
}

Tensor weight_gradient_by_products(const Tensor& grad, const Tensor& input, const SymInts& weight_size,
                                   const ImageWindows& w) {
  if (const Dtype wide = compute_dtype(grad.dtype()); wide != grad.dtype())
    return weight_gradient_by_products(grad.to(wide), input.to(wide), weight_size, w).to(grad.dtype());
  Matrices m(w, weight_size);
  Tensor each = bmm(result_matrices(grad, m), transpose(windows_of(input, m), 1, 2));
  return view(sum(view(each, SymInts{input.size(0), m.groups, m.outer, m.inner}), 0), weight_size);
}

Tensor convolution_in_parts(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                            const SymInts& stride, const SymInts& padding, const SymInts& dilation, bool transposed,
                            const SymInts& output_padding, const SymInt& groups) {
  const ImageWindows w = evened(stride, padding, dilation, groups);
  Convolution c{w, transposed, for_all(output_padding, w.dims())};
  SymInts sizes = checked_sizes(input, weight, bias, c, "convolution");
  Tensor result;
  if (transposed) {
    Tensor padded = padded_behind(input, c.output_padding, w.stride);
    result = _convolution_input_gradient(padded, weight, sizes, w.stride, w.padding, w.dilation, groups);
    // Padding does not keep the order of an image's dimensions.
    if (!padded.is(input)) result = relaid(result, input, weight);
  } else {
    result = convolved_by_products(input, weight, c.windows);
  }
  return bias ? result + by_channel(*bias, c.windows.dims()) : result;
}

Tensor input_gradient(Grad& g) {
  ImageWindows w = windows_in(g);
  if (!g.argument("transposed").boolean())
    return _convolution_input_gradient(g.grad(), g.saved("weight"), g.sizes("input"), w.stride, w.padding, w.dilation,
                                       w.groups);
  SymInts none(w.dims(), SymInt(0)), sizes = g.sizes("input");
  Tensor result =
      convolution(g.grad(), g.saved("weight"), std::nullopt, w.stride, w.padding, w.dilation, false, none, w.groups);
  if (!positions_behind(for_all(g.argument("output_padding").sym_ints(), w.dims()), w.stride).empty())
    for (size_t dim = 0; dim < w.dims(); ++dim)
      result = slice(result, static_cast<int64_t>(dim) + 2, std::nullopt, sizes[dim + 2]);
  return result;
}

Tensor weight_gradient(Grad& g) {
  ImageWindows w = windows_in(g);
  Tensor input = g.saved("input");
  if (!g.argument("transposed").boolean())
    return _convolution_weight_gradient(g.grad(), input, g.sizes("weight"), w.stride, w.padding, w.dilation, w.groups);
  return _convolution_weight_gradient(
      padded_behind(input, for_all(g.argument("output_padding").sym_ints(), w.dims()), w.stride), g.grad(),
      g.sizes("weight"), w.stride, w.padding, w.dilation, w.groups);
}

Tensor bias_gradient(Grad& g) {
  Tensor grad = g.grad();
  Ints dims{0};
  for (int64_t dim = 2; dim < grad.dim(); ++dim) dims.push_back(dim);
  return sum(grad, dims, false, g.dtype("bias"));
}

}  // namespace

OPS(convolution) {
  op("convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
     "bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor")
      .role(Role::Convolution)
      .kernel(
          [](const Arguments& arguments, std::span<Tensor> outputs) {
            const dispatch::Value& bias = arguments["bias"];
            kernels::convolution(arguments.tensor("input"), arguments.tensor("weight"),
                                 bias.is_none() ? nullptr : &bias.tensor(), plain(arguments), outputs[0]);
          },
          [](const Arguments& arguments) {
            const Tensor& weight = arguments.tensor("weight");
            return !arguments.boolean("transposed") &&
                   by_library(weight.dtype(), weight.sym_sizes(), windows_in(arguments));
          })
      .decompose(convolution_in_parts)
      .shape([](const Arguments& arguments) {
        const Tensor &input = arguments.tensor("input"), &weight = arguments.tensor("weight");
        const dispatch::Value& bias = arguments["bias"];
        SymInts sizes = checked_sizes(input, weight, bias.is_none() ? std::nullopt : std::optional(bias.tensor()),
                                      convolution_in(arguments), "convolution");
        return std::vector{laid_out(sizes, input, weight)};
      })
      .grad("input", saves("weight"), input_gradient)
      .grad("weight", saves("input"), weight_gradient)
      .grad("bias", saves(), bias_gradient);
  // The gradient of a convolution's input, and so what a transposed convolution is.
  op("_convolution_input_gradient(Tensor grad_output, Tensor weight, SymInt[] input_size, SymInt[] stride, SymInt[] "
     "padding, SymInt[] dilation, SymInt groups) -> Tensor")
      .kernel(
          [](const Arguments& arguments, std::span<Tensor> outputs) {
            kernels::convolution_input_gradient(arguments.tensor("grad_output"), arguments.tensor("weight"),
                                                plain(arguments), outputs[0]);
          },
          [](const Arguments& arguments) {
            const Tensor& weight = arguments.tensor("weight");
            return by_library(weight.dtype(), weight.sym_sizes(), windows_in(arguments));
          })
      .decompose([](const Tensor& grad, const Tensor& weight, const SymInts& input_size, const SymInts& stride,
                    const SymInts& padding, const SymInts& dilation, const SymInt& groups) {
        ImageWindows w{stride, padding, dilation, groups};
        check_convolution_gradient(grad, weight, input_size, weight.sym_sizes(), w, "_convolution_input_gradient");
        return input_gradient_by_products(grad, weight, input_size, w);
      })
      .shape([](const Arguments& arguments) {
        const Tensor &grad = arguments.tensor("grad_output"), &weight = arguments.tensor("weight");
        SymInts sizes = arguments["input_size"].sym_ints();
        check_convolution_gradient(grad, weight, sizes, weight.sym_sizes(), windows_in(arguments),
                                   "_convolution_input_gradient");
        return std::vector{laid_out(sizes, grad, weight)};
      })
      .grad("grad_output", saves("weight"),
            [](Grad& g) {
              ImageWindows w = windows_in(g);
              return convolution(g.grad(), g.saved("weight"), std::nullopt, w.stride, w.padding, w.dilation, false,
                                 SymInts(w.dims(), SymInt(0)), w.groups);
            })
      .grad("weight", saves("grad_output"), [](Grad& g) {
        ImageWindows w = windows_in(g);
        return _convolution_weight_gradient(g.saved("grad_output"), g.grad(), g.sizes("weight"), w.stride, w.padding,
                                            w.dilation, w.groups);
      });
  op("_convolution_weight_gradient(Tensor grad_output, Tensor input, SymInt[] weight_size, SymInt[] stride, SymInt[] "
     "padding, SymInt[] dilation, SymInt groups) -> Tensor")
      .kernel(
          [](const Arguments& arguments, std::span<Tensor> outputs) {
            kernels::convolution_weight_gradient(arguments.tensor("grad_output"), arguments.tensor("input"),
                                                 plain(arguments), outputs[0]);
          },
          [](const Arguments& arguments) {
            return by_library(arguments.tensor("input").dtype(), arguments["weight_size"].sym_ints(),
                              windows_in(arguments));
          })
      .decompose([](const Tensor& grad, const Tensor& input, const SymInts& weight_size, const SymInts& stride,
                    const SymInts& padding, const SymInts& dilation, const SymInt& groups) {
        ImageWindows w{stride, padding, dilation, groups};
        check_convolution_gradient(grad, input, input.sym_sizes(), weight_size, w, "_convolution_weight_gradient");
        return weight_gradient_by_products(grad, input, weight_size, w);
      })
      .shape([](const Arguments& arguments) {
        const Tensor &grad = arguments.tensor("grad_output"), &input = arguments.tensor("input");
        SymInts sizes = arguments["weight_size"].sym_ints();
        check_convolution_gradient(grad, input, input.sym_sizes(), sizes, windows_in(arguments),
                                   "_convolution_weight_gradient");
        return std::vector{TensorMeta::contiguous(sizes, input.dtype(), input.device())};
      })
      .grad("grad_output", saves("input"),
            [](Grad& g) {
              ImageWindows w = windows_in(g);
              return convolution(g.saved("input"), g.grad(), std::nullopt, w.stride, w.padding, w.dilation, false,
                                 SymInts(w.dims(), SymInt(0)), w.groups);
            })
      .grad("input", saves("grad_output"), [](Grad& g) {
        ImageWindows w = windows_in(g);
        return _convolution_input_gradient(g.saved("grad_output"), g.grad(), g.sizes("input"), w.stride, w.padding,
                                           w.dilation, w.groups);
      });
}

}  // namespace tenon::ops
