// Windows that slide over the last dimensions.
#include "ops/nn/windows.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>

namespace tenon::ops {
namespace {

std::vector<TensorMeta> adaptive_shape(const Arguments& arguments, size_t dims, bool places) {
  const Tensor& self = pooled_input(arguments, "self", dims);
  std::string_view op_name = arguments.op().brief_name();
  SymInts sizes = self.sym_sizes(), wanted = arguments["output_size"].sym_ints();
  if (wanted.size() == 1)
    while (wanted.size() < dims) wanted.push_back(wanted[0]);
  TENON_CHECK(wanted.size() == dims, "[{}] expected an output_size of 1 or {} numbers, got {}", op_name, dims,
              str(wanted));
  for (size_t dim = 0; dim < dims; ++dim) {
    SymInt& size = sizes[sizes.size() - dims + dim];
    TENON_CHECK(expect(wanted[dim] >= 0), "[{}] expected sizes of at least 0, got {}", op_name, str(wanted));
    TENON_CHECK(!statically_true(size == 0) || statically_true(wanted[dim] == 0), "[{}] nothing can be pooled from {}",
                op_name, self.description());
    size = wanted[dim];
  }
  if (places && dims == 2) return with_places(self, sizes);
  if (places)
    return {TensorMeta::contiguous(sizes, self.dtype(), self.device()),
            TensorMeta::contiguous(sizes, kInt64, self.device())};
  TENON_CHECK_IMPLEMENTED(is_floating(self.dtype()), "[{}] expected a floating point tensor, got {}", op_name,
                          self.description());
  return {TensorMeta::in_order_of(self, sizes, self.dtype())};
}

// Each gradient to the element that was the largest of its window.
Tensor places_grad(Grad& g, size_t dims) {
  SymInts sizes = g.sizes("self"), flat = sizes, taken;
  SymInt plane = 1;
  for (size_t dim = 0; dim < dims; ++dim) {
    plane *= flat.back();
    flat.pop_back();
  }
  taken = flat;
  flat.push_back(plane);
  taken.push_back(-1);
  Tensor places = g.saved("indices");
  for (const SymInt& size : places.sym_sizes())
    if (statically_true(size == 0)) return zeros(sizes, TensorOptions(g.dtype("self"), g.grad().device()));
  Tensor base = zeros(flat, TensorOptions(g.dtype("self"), g.grad().device()));
  return view(scatter_add(base, -1, reshape(places, taken), reshape(g.grad(), taken)), sizes);
}

// The gradient of an input of `input_size`, from that of its pooled form: planes as many as there are, of sizes that
// there can be.
std::vector<TensorMeta> sized_like(const Arguments& arguments, size_t dims) {
  const Tensor& grad = pooled_input(arguments, "grad_output", dims);
  SymInts sizes = arguments["input_size"].sym_ints(), given = grad.sym_sizes();
  bool fits = sizes.size() == given.size();
  for (size_t dim = 0; fits && dim < sizes.size(); ++dim)
    fits = dim + dims < sizes.size() ? same_size(sizes[dim], given[dim]) : may_be_size(sizes[dim]);
  TENON_CHECK(fits, "[{}] {} is no gradient for an input of {}", arguments.op().brief_name(), grad.description(),
              str(sizes));
  return {TensorMeta::contiguous(sizes, grad.dtype(), grad.device())};
}

}  // namespace

OPS(max_pooling) {
  op("max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=[0, 0], int[2] "
     "dilation=[1, 1], "
     "bool ceil_mode=False) -> (Tensor result, Tensor indices)")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const Tensor& self = arguments.tensor("self");
        kernels::max_pool(self, sliding(self.sizes(), outputs[0].sizes(), sliding_of(arguments, 2)), outputs[0],
                          outputs[1]);
      })
      .shape([](const Arguments& arguments) {
        const Tensor& self = pooled_input(arguments, "self", 2);
        return with_places(self, slid_sizes(self.sym_sizes(), sliding_of(arguments, 2), "max_pool2d"));
      })
      .grad("self", saves("indices"), [](Grad& g) { return places_grad(g, 2); })
      .not_differentiable("indices");
  op("max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=[0, 0], int[2] dilation=[1, 1], "
     "bool ceil_mode=False) "
     "-> Tensor")
      .decompose([](const Tensor& self, const Ints& kernel_size, const Ints& stride, const Ints& padding,
                    const Ints& dilation, bool ceil_mode) {
        return std::get<0>(max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
      });
  op("adaptive_max_pool2d(Tensor self, SymInt[2] output_size) -> (Tensor result, Tensor indices)")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const Tensor& self = arguments.tensor("self");
        kernels::max_pool(self, even(self.sizes(), outputs[0].sizes(), 2), outputs[0], outputs[1]);
      })
      .shape([](const Arguments& arguments) { return adaptive_shape(arguments, 2, true); })
      .grad("self", saves("indices"), [](Grad& g) { return places_grad(g, 2); })
      .not_differentiable("indices");
  op("adaptive_max_pool3d(Tensor self, SymInt[3] output_size) -> (Tensor result, Tensor indices)")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const Tensor& self = arguments.tensor("self");
        kernels::max_pool(self, even(self.sizes(), outputs[0].sizes(), 3), outputs[0], outputs[1]);
      })
      .shape([](const Arguments& arguments) { return adaptive_shape(arguments, 3, true); })
      .grad("self", saves("indices"), [](Grad& g) { return places_grad(g, 3); })
      .not_differentiable("indices");
}

OPS(average_pooling) {
  op("avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=[0, 0], bool ceil_mode=False, "
     "bool count_include_pad=True, int? divisor_override=None) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const Tensor& self = arguments.tensor("self");
        Windows windows =
            sliding(self.sizes(), outputs[0].sizes(), sliding_of(arguments, 2), arguments.boolean("count_include_pad"));
        kernels::average_pool(self, windows, divisor_of(arguments), outputs[0]);
      })
      .shape([](const Arguments& arguments) {
        const Tensor& self = pooled_input(arguments, "self", 2);
        TENON_CHECK(is_floating(self.dtype()) || self.dtype() == kInt64,
                    "[avg_pool2d] expected a tensor of floating point numbers or int64, got {}", self.description());
        divisor_of(arguments);
        return std::vector{TensorMeta::in_order_of(
            self, slid_sizes(self.sym_sizes(), sliding_of(arguments, 2), "avg_pool2d"), self.dtype())};
      })
      .grad("self", saves(), [](Grad& g) {
        const dispatch::Value& divisor = g.argument("divisor_override");
        return _avg_pool2d_backward(g.grad(), g.sizes("self"), g.argument("kernel_size").ints(),
                                    g.argument("stride").ints(), g.argument("padding").ints(),
                                    g.argument("ceil_mode").boolean(), g.argument("count_include_pad").boolean(),
                                    divisor.is_none() ? std::nullopt : std::optional(divisor.integer()));
      });
  op("_avg_pool2d_backward(Tensor grad_output, SymInt[] input_size, int[2] kernel_size, int[2] stride, int[2] padding, "
     "bool ceil_mode, "
     "bool count_include_pad, int? divisor_override) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const Tensor& grad = arguments.tensor("grad_output");
        Windows windows =
            sliding(outputs[0].sizes(), grad.sizes(), sliding_of(arguments, 2), arguments.boolean("count_include_pad"));
        kernels::average_pool_backward(grad, windows, divisor_of(arguments), outputs[0]);
      })
      .shape([](const Arguments& arguments) { return sized_like(arguments, 2); })
      .grad("grad_output", saves(), [](Grad& g) {
        const dispatch::Value& divisor = g.argument("divisor_override");
        return avg_pool2d(g.grad(), g.argument("kernel_size").ints(), g.argument("stride").ints(),
                          g.argument("padding").ints(), g.argument("ceil_mode").boolean(),
                          g.argument("count_include_pad").boolean(),
                          divisor.is_none() ? std::nullopt : std::optional(divisor.integer()));
      });
  op("adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& output_size) {
        bool one = !output_size.empty() && std::all_of(output_size.begin(), output_size.end(),
                                                       [](const SymInt& s) { return statically_true(s == 1); });
        if (one && self.defined() && (self.dim() == 3 || self.dim() == 4) && is_floating(self.dtype()))
          return mean(self, OptionalInts(Ints{-2, -1}), true);
        return _adaptive_avg_pool2d(self, output_size);
      });
  op("_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const Tensor& self = arguments.tensor("self");
        kernels::average_pool(self, even(self.sizes(), outputs[0].sizes(), 2), 0, outputs[0]);
      })
      .shape([](const Arguments& arguments) { return adaptive_shape(arguments, 2, false); })
      .grad("self", saves(), [](Grad& g) { return _adaptive_avg_pool2d_backward(g.grad(), g.sizes("self")); });
  op("_adaptive_avg_pool2d_backward(Tensor grad_output, SymInt[] input_size) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const Tensor& grad = arguments.tensor("grad_output");
        kernels::average_pool_backward(grad, even(outputs[0].sizes(), grad.sizes(), 2), 0, outputs[0]);
      })
      .shape([](const Arguments& arguments) { return sized_like(arguments, 2); })
      .grad("grad_output", saves(), [](Grad& g) {
        SymInts sizes = g.sizes("grad_output");
        return _adaptive_avg_pool2d(g.grad(), SymInts{sizes[sizes.size() - 2], sizes[sizes.size() - 1]});
      });
}

}  // namespace tenon::ops
