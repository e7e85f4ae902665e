// Gradients of pooling as operators, and pooling over windows at places that random numbers choose.
#include "ops/by_name.h"
#include "ops/nn/windows.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

bool same_sizes(const Tensor& a, const Tensor& b) {
  if (a.dim() != b.dim()) return false;
  for (int64_t dim = 0; dim < a.dim(); ++dim)
    if (!same_size(a.size(dim), b.size(dim))) return false;
  return true;
}

// Of a gradient that is to lie at the places `indices` of `self`.
std::vector<TensorMeta> like_input(const Arguments& arguments, size_t dims) {
  const Tensor &self = pooled_input(arguments, "self", dims), &grad = pooled_input(arguments, "grad_output", dims);
  const Tensor& indices = arguments.tensor("indices");
  std::string_view op_name = arguments.op().brief_name();
  TENON_CHECK(indices.defined() && indices.dtype() == kInt64 && same_sizes(indices, grad),
              "[{}] expected an index of int64 for each element of {}, got {}", op_name, grad.description(),
              indices.defined() ? indices.description() : "an undefined one");
  TENON_CHECK(grad.dtype() == self.dtype(), "[{}] expected a gradient of {}, got {}", op_name, name(self.dtype()),
              grad.description());
  bool fits = grad.dim() == self.dim();
  for (int64_t dim = 0; fits && dim + static_cast<int64_t>(dims) < self.dim(); ++dim)
    fits = same_size(self.size(dim), grad.size(dim));
  TENON_CHECK(fits, "[{}] {} is no gradient for an input of {}", op_name, grad.description(), self.description());
  return {TensorMeta::contiguous(self.sym_sizes(), self.dtype(), self.device())};
}

void to_places(const Arguments& arguments, std::span<Tensor> outputs, size_t dims) {
  kernels::max_pool_backward(arguments.tensor("grad_output"), arguments.tensor("indices"), dims, outputs[0]);
}

// What lies at the places, of the last `dims` dimensions as one: the gradient of writing there.
Tensor from_places(Grad& g, size_t dims) {
  Tensor grad = g.grad(), places = g.saved("indices");
  SymInts flat = grad.sym_sizes(), taken = places.sym_sizes();
  SymInt plane = 1, count = 1;
  for (size_t dim = 0; dim < dims; ++dim) {
    plane *= flat.back();
    count *= taken.back();
    flat.pop_back();
    taken.pop_back();
  }
  flat.push_back(plane);
  taken.push_back(count);
  return reshape(gather(reshape(grad, flat), -1, reshape(places, taken)), places.sym_sizes());
}

// The gradient of an input of `input_size` from that of its averages.
std::vector<TensorMeta> averaged_input(const Arguments& arguments, size_t dims) {
  const Tensor& grad = pooled_input(arguments, "grad_output", dims);
  SymInts sizes = arguments["input_size"].sym_ints();
  std::string_view op_name = arguments.op().brief_name();
  TENON_CHECK(is_floating(grad.dtype()), "[{}] expected a floating point tensor, got {}", op_name, grad.description());
  divisor_of(arguments);
  bool fits = sizes.size() == static_cast<size_t>(grad.dim());
  for (const SymInt& size : sizes) fits = fits && may_be_size(size);
  if (fits) {
    SymInts pooled = slid_sizes(sizes, sliding_of(arguments, dims), op_name);
    for (size_t dim = 0; dim < pooled.size(); ++dim)
      fits = fits && same_size(pooled[dim], grad.size(static_cast<int64_t>(dim)));
  }
  TENON_CHECK(fits, "[{}] {} is no gradient for an input of {}", op_name, grad.description(), str(sizes));
  return {TensorMeta::contiguous(sizes, grad.dtype(), grad.device())};
}

// `size` is what the input of the average must have.
Tensor averages_backward(const char* name, const Tensor& grad, const Tensor& self, const Ints& kernel_size,
                         const Ints& stride, const Ints& padding, bool ceil_mode, bool count_include_pad,
                         std::optional<int64_t> divisor_override) {
  TENON_CHECK(grad.defined() && self.defined() && grad.dtype() == self.dtype(),
              "[{}] expected a gradient of the input's dtype", std::string_view(name).substr(7));
  return call(name,
              {grad, self.sym_sizes(), kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override});
}

// Windows of `dims` dimensions at places that samples choose.
void fractional(const Arguments& arguments, std::span<Tensor> outputs) {
  kernels::fractional_max_pool(arguments.tensor("self"), arguments["kernel_size"].ints(),
                               arguments.tensor("random_samples"), outputs[0], outputs[1]);
}

std::vector<TensorMeta> fractional_shape(const Arguments& arguments, size_t dims) {
  const Tensor &self = pooled_input(arguments, "self", dims), &samples = arguments.tensor("random_samples");
  const std::string_view op_name = arguments.op().brief_name();
  TENON_CHECK(is_floating(self.dtype()), "[{}] expected a floating point tensor, got {}", op_name, self.description());
  Ints kernel = arguments["kernel_size"].ints(), wanted = arguments["output_size"].ints();
  TENON_CHECK(kernel.size() == dims && wanted.size() == dims,
              "[{}] expected {} numbers of kernel_size and of output_size, got {} and {}", op_name, dims, kernel.size(),
              wanted.size());
  SymInts sizes = self.sym_sizes();
  const size_t lead = sizes.size() - dims;
  TENON_CHECK(samples.defined() && samples.dtype() == self.dtype() && samples.dim() == 3 &&
                  expect(samples.size(0) >= (lead == 2 ? sizes[0] : SymInt(1))) &&
                  expect(samples.size(1) >= sizes[lead - 1]) &&
                  same_size(samples.size(2), SymInt(static_cast<int64_t>(dims))),
              "[{}] expected {} samples of {} for each plane of {}, got {}", op_name, dims, name(self.dtype()),
              self.description(), samples.defined() ? samples.description() : "nothing");
  for (size_t dim = 0; dim < dims; ++dim) {
    TENON_CHECK(
        kernel[dim] > 0 && wanted[dim] > 0 && expect(SymInt(wanted[dim]) + kernel[dim] - 1 <= sizes[lead + dim]),
        "[{}] {} windows of {} do not fit into {} elements", op_name, wanted[dim], kernel[dim],
        sizes[lead + dim].str());
    sizes[lead + dim] = wanted[dim];
  }
  return {TensorMeta::contiguous(sizes, self.dtype(), self.device()),
          TensorMeta::contiguous(sizes, kInt64, self.device())};
}

Tensor fractional_gradient(Grad& g, const char* indices, const char* backward) {
  Tensor like = empty(g.sizes("self"), TensorOptions(g.dtype("self"), g.grad().device()));
  return call(backward, {g.grad(), like, g.saved(indices)});
}

}  // namespace

OPS(max_pooling_backward) {
  op("max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] "
     "padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) { to_places(arguments, outputs, 2); })
      .shape([](const Arguments& arguments) {
        sliding_of(arguments, 2);
        return like_input(arguments, 2);
      })
      .grad("grad_output", saves("indices"), [](Grad& g) { return from_places(g, 2); });
  op("adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) { to_places(arguments, outputs, 2); })
      .shape([](const Arguments& arguments) { return like_input(arguments, 2); })
      .grad("grad_output", saves("indices"), [](Grad& g) { return from_places(g, 2); });
  op("adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) { to_places(arguments, outputs, 3); })
      .shape([](const Arguments& arguments) { return like_input(arguments, 3); })
      .grad("grad_output", saves("indices"), [](Grad& g) { return from_places(g, 3); });
}

OPS(average_pooling_backward) {
  op("avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool "
     "ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor")
      .decompose([](const Tensor& grad, const Tensor& self, const Ints& kernel_size, const Ints& stride,
                    const Ints& padding, bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor) {
        return averages_backward("aten::_avg_pool2d_backward", grad, self, kernel_size, stride, padding, ceil_mode,
                                 count_include_pad, divisor);
      });
  op("avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, bool "
     "ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor")
      .decompose([](const Tensor& grad, const Tensor& self, const Ints& kernel_size, const Ints& stride,
                    const Ints& padding, bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor) {
        return averages_backward("aten::_avg_pool3d_backward", grad, self, kernel_size, stride, padding, ceil_mode,
                                 count_include_pad, divisor);
      });
  op("_avg_pool3d_backward(Tensor grad_output, SymInt[] input_size, int[3] kernel_size, int[3] stride, int[3] padding, "
     "bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const Tensor& grad = arguments.tensor("grad_output");
        Windows windows =
            sliding(outputs[0].sizes(), grad.sizes(), sliding_of(arguments, 3), arguments.boolean("count_include_pad"));
        kernels::average_pool_backward(grad, windows, divisor_of(arguments), outputs[0]);
      })
      .shape([](const Arguments& arguments) { return averaged_input(arguments, 3); })
      .grad("grad_output", saves(), [](Grad& g) {
        return call("aten::avg_pool3d",
                    {g.grad(), g.argument("kernel_size"), g.argument("stride"), g.argument("padding"),
                     g.argument("ceil_mode"), g.argument("count_include_pad"), g.argument("divisor_override")});
      });
  op("avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool "
     "count_include_pad=True, int? divisor_override=None) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const Tensor& self = arguments.tensor("self");
        Windows windows =
            sliding(self.sizes(), outputs[0].sizes(), sliding_of(arguments, 3), arguments.boolean("count_include_pad"));
        kernels::average_pool(self, windows, divisor_of(arguments), outputs[0]);
      })
      .shape([](const Arguments& arguments) {
        const Tensor& self = pooled_input(arguments, "self", 3);
        TENON_CHECK(is_floating(self.dtype()) || self.dtype() == kInt64,
                    "[avg_pool3d] expected a tensor of floating point numbers or int64, got {}", self.description());
        divisor_of(arguments);
        SymInts sizes = slid_sizes(self.sym_sizes(), sliding_of(arguments, 3), "avg_pool3d");
        return std::vector{TensorMeta::contiguous(sizes, self.dtype(), self.device())};
      })
      .grad("self", saves(), [](Grad& g) {
        return call("aten::_avg_pool3d_backward",
                    {g.grad(), g.sizes("self"), g.argument("kernel_size"), g.argument("stride"), g.argument("padding"),
                     g.argument("ceil_mode"), g.argument("count_include_pad"), g.argument("divisor_override")});
      });
}

OPS(fractional_pooling) {
  op("fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor "
     "output, Tensor indices)")
      .kernel(fractional)
      .shape([](const Arguments& arguments) { return fractional_shape(arguments, 2); })
      .grad("self", saves("indices"),
            [](Grad& g) { return fractional_gradient(g, "indices", "aten::adaptive_max_pool2d_backward"); })
      .not_differentiable("indices");
  op("fractional_max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] output_size, Tensor "
     "indices) -> Tensor")
      .decompose([](const Tensor& grad, const Tensor& self, const Ints&, const Ints&, const Tensor& indices) {
        return call("aten::adaptive_max_pool2d_backward", {grad, self, indices});
      });
  op("fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> (Tensor, "
     "Tensor)")
      .kernel(fractional)
      .shape([](const Arguments& arguments) { return fractional_shape(arguments, 3); })
      .grad("self", saves("result1"),
            [](Grad& g) { return fractional_gradient(g, "result1", "aten::adaptive_max_pool3d_backward"); })
      .not_differentiable("result1");
  op("fractional_max_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] output_size, Tensor "
     "indices) -> Tensor")
      .decompose([](const Tensor& grad, const Tensor& self, const Ints&, const Ints&, const Tensor& indices) {
        return call("aten::adaptive_max_pool3d_backward", {grad, self, indices});
      });
}

}  // namespace tenon::ops
