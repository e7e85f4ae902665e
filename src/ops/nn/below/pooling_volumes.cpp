// Pooling over volumes and lines, and its inverse: elements back to the places that they were taken from.
#include "ops/by_name.h"
#include "ops/nn/windows.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

// Each gradient back to the place of its element.
Tensor places_gradient(Grad& g, size_t dims) {
  const SymInts &sizes = g.sizes("self"), &pooled = g.sizes("result0");
  SymInts planes(std::span<const SymInt>(sizes).first(sizes.size() - dims)), flat = planes, taken = planes;
  SymInt area = 1, count = 1;
  for (size_t dim = sizes.size() - dims; dim < sizes.size(); ++dim) {
    area *= sizes[dim];
    count *= pooled[dim];
  }
  flat.push_back(area);
  taken.push_back(count);
  Tensor zero = zeros(flat, TensorOptions(g.grad().dtype(), g.grad().device()));
  return reshape(scatter_add(zero, -1, reshape(g.saved("result1"), taken), reshape(g.grad(), taken)), sizes);
}

// [.., L] as a plane of one row, pooled and taken back.
Ints beside_one(const Ints& given, int64_t one) {
  if (given.empty()) return {};
  TENON_CHECK(given.size() == 1, "[max_pool1d] expected one number, got [{}]", fmt::join(given, ", "));
  return {one, given[0]};
}

const Tensor& line(const Tensor& self, const char* op_name) {
  TENON_CHECK(self.defined() && (self.dim() == 2 || self.dim() == 3),
              "[{}] expected a tensor of 2 or 3 dimensions, got {}", op_name,
              self.defined() ? self.description() : "an undefined one");
  return self;
}

std::tuple<Tensor, Tensor> pooled_line(const Tensor& self, const Ints& kernel, const Ints& stride, const Ints& padding,
                                       const Ints& dilation, bool ceil) {
  auto [values, places] =
      max_pool2d_with_indices(unsqueeze(line(self, "max_pool1d"), -2), beside_one(kernel, 1), beside_one(stride, 1),
                              beside_one(padding, 0), beside_one(dilation, 1), ceil);
  return {squeeze(values, -2), squeeze(places, -2)};
}

// What lies at `indices` of each plane of `sizes`, the rest zeros.
Tensor unpooled(const Tensor& self, const Tensor& indices, const SymInts& output_size, size_t dims,
                const char* op_name) {
  TENON_CHECK(self.defined() && indices.defined() && indices.dtype() == kInt64 && self.dim() == indices.dim(),
              "[{}] expected an index of int64 for each element", op_name);
  const SymInts sizes = self.sym_sizes(), places = indices.sym_sizes();
  TENON_CHECK(output_size.size() == dims && (sizes.size() == dims + 1 || sizes.size() == dims + 2),
              "[{}] expected planes of {} dimensions and as many sizes, got {} and {}", op_name, dims,
              self.description(), str(output_size));
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    TENON_CHECK(same_size(sizes[dim], places[dim]), "[{}] expected an index for each element of {}, got {}", op_name,
                self.description(), indices.description());
  SymInts flat(std::span<const SymInt>(sizes).first(sizes.size() - dims)), taken = flat, result = flat;
  SymInt area = 1, count = 1;
  for (size_t dim = 0; dim < dims; ++dim) {
    TENON_CHECK(may_be_size(output_size[dim]), "[{}] expected sizes of at least 0, got {}", op_name, str(output_size));
    area *= output_size[dim];
    count *= sizes[sizes.size() - dims + dim];
    result.push_back(output_size[dim]);
  }
  flat.push_back(area);
  taken.push_back(count);
  Tensor zero = zeros(flat, TensorOptions(self.dtype(), self.device()));
  Tensor made = reshape(scatter(zero, -1, reshape(indices, taken), reshape(self, taken)), result);
  return contiguous(made, self.suggested_format());
}

// Means over windows that cover a dimension as evenly as can be, one dimension after another.
Tensor even_means(const Tensor& self, const SymInts& output_size, const char* op_name) {
  TENON_CHECK(self.defined() && is_floating(self.dtype()) && (self.dim() == 4 || self.dim() == 5),
              "[{}] expected a floating point tensor of 4 or 5 dimensions, got {}", op_name,
              self.defined() ? self.description() : "an undefined one");
  TENON_CHECK(output_size.size() == 3, "[{}] expected 3 sizes, got {}", op_name, str(output_size));
  const SymInts sizes = self.sym_sizes();
  const size_t first = sizes.size() - 3;
  // Planes of height and width, then depth as the height of planes of one column.
  SymInts flat(std::span<const SymInt>(sizes).first(first));
  SymInt planes = 1;
  for (const SymInt& size : flat) planes *= size;
  Tensor x = self.to(compute_dtype(self.dtype()));
  x = adaptive_avg_pool2d(reshape(x, SymInts{planes * sizes[first], 1, sizes[first + 1], sizes[first + 2]}),
                          SymInts{output_size[1], output_size[2]});
  x = adaptive_avg_pool2d(reshape(x, SymInts{planes, 1, sizes[first], output_size[1] * output_size[2]}),
                          SymInts{output_size[0], output_size[1] * output_size[2]});
  for (const SymInt& size : output_size) flat.push_back(size);
  return reshape(x, flat).to(self.dtype());
}

Tensor mean_of_line(const Tensor& self, const Ints& output_size) {
  TENON_CHECK(output_size.size() == 1, "[adaptive_avg_pool1d] expected one size, got [{}]",
              fmt::join(output_size, ", "));
  return squeeze(adaptive_avg_pool2d(unsqueeze(line(self, "adaptive_avg_pool1d"), -2), SymInts{1, output_size[0]}), -2);
}

}  // namespace

OPS(pooling_volumes) {
  op("max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=[0, 0, 0], int[3] "
     "dilation=[1, 1, 1], "
     "bool ceil_mode=False) -> (Tensor, Tensor)")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const Tensor& self = arguments.tensor("self");
        kernels::max_pool(self, sliding(self.sizes(), outputs[0].sizes(), sliding_of(arguments, 3)), outputs[0],
                          outputs[1]);
      })
      .shape([](const Arguments& arguments) {
        const Tensor& self = pooled_input(arguments, "self", 3);
        return with_places(self, slid_sizes(self.sym_sizes(), sliding_of(arguments, 3), "max_pool3d"));
      })
      .grad("self", saves("result1"), [](Grad& g) { return places_gradient(g, 3); })
      .not_differentiable("result1");
  op("max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=[0, 0, 0], int[3] dilation=[1, 1, "
     "1], bool "
     "ceil_mode=False) -> Tensor")
      .decompose([](const Tensor& self, const Ints& kernel, const Ints& stride, const Ints& padding,
                    const Ints& dilation, bool ceil) {
        return call("aten::max_pool3d_with_indices", {self, kernel, stride, padding, dilation, ceil});
      });
  op("max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] "
     "dilation=[1], "
     "bool ceil_mode=False) -> (Tensor, Tensor)")
      .decompose(pooled_line);
  op("max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool "
     "ceil_mode=False) -> Tensor")
      .decompose([](const Tensor& self, const Ints& kernel, const Ints& stride, const Ints& padding,
                    const Ints& dilation,
                    bool ceil) { return std::get<0>(pooled_line(self, kernel, stride, padding, dilation, ceil)); });
  op("avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool ceil_mode=False, bool "
     "count_include_pad=True) -> Tensor")
      .decompose(
          [](const Tensor& self, const Ints& kernel, const Ints& stride, const Ints& padding, bool ceil, bool counts) {
            return squeeze(avg_pool2d(unsqueeze(line(self, "avg_pool1d"), -2), beside_one(kernel, 1),
                                      beside_one(stride, 1), beside_one(padding, 0), ceil, counts),
                           -2);
          });
  op("adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)")
      .decompose([](const Tensor& self, const Ints& output_size) {
        TENON_CHECK(output_size.size() == 1, "[adaptive_max_pool1d] expected one size, got [{}]",
                    fmt::join(output_size, ", "));
        auto [values, places] =
            adaptive_max_pool2d(unsqueeze(line(self, "adaptive_max_pool1d"), -2), SymInts{1, output_size[0]});
        return std::tuple(squeeze(values, -2), squeeze(places, -2));
      });
  op("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor").decompose(mean_of_line);
  op("_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor")
      .decompose(
          [](const Tensor& self, const SymInts& sizes) { return even_means(self, sizes, "_adaptive_avg_pool3d"); });
  op("adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor")
      .decompose(
          [](const Tensor& self, const SymInts& sizes) { return even_means(self, sizes, "adaptive_avg_pool3d"); });
  op("max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& indices, const SymInts& size) {
        return unpooled(self, indices, size, 2, "max_unpool2d");
      });
  op("max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& indices, const SymInts& size, const Ints&, const Ints&) {
        return unpooled(self, indices, size, 3, "max_unpool3d");
      });
}

}  // namespace tenon::ops
