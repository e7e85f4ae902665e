// Pools of sequences and volumes, over those of images: a window of three dimensions is one over the last two, and then
// one over the first.
#include <tenon/generated/ops.h>
#include <tenon/nn/pooling.h>

#include <fmt/format.h>

namespace tenon {
namespace {

Ints numbers(const Ints& list, size_t dims, const char* what, const char* name) {
  TENON_CHECK(list.size() == 1 || list.size() == dims, "[{}] expected a {} of 1 or {} numbers, got {}", name, what,
              dims, list.size());
  return list.size() == dims ? list : Ints(std::vector<int64_t>(dims, list[0]));
}

void check_dims(const Tensor& self, int64_t dims, const char* name) {
  TENON_CHECK(self.defined() && (self.dim() == dims + 1 || self.dim() == dims + 2),
              "[{}] expected a tensor of {} or {} dimensions, got {}", name, dims + 1, dims + 2,
              self.defined() ? self.description() : "an undefined one");
}

struct Slide {
  Ints kernel, stride, padding;
};

Slide slide(const Ints& kernel_size, const Ints& stride, const Ints& padding, size_t dims, const char* name) {
  Ints kernel = numbers(kernel_size, dims, "kernel_size", name);
  return {kernel, stride.empty() ? kernel : numbers(stride, dims, "stride", name),
          numbers(padding, dims, "padding", name)};
}

// A pool of images over the last two dimensions of volumes, then over the first with all others as columns.
template <typename Planes, typename Depth>
Tensor in_two_steps(const Tensor& self, Planes&& over_planes, Depth&& over_depth) {
  SymInts sizes = self.sym_sizes();
  size_t lead = sizes.size() - 3;  // before depth, rows and columns
  SymInt images = 1;
  for (size_t dim = 0; dim <= lead; ++dim) images *= sizes[dim];
  Tensor flat = over_planes(reshape(self, SymInts{images, 1, sizes[lead + 1], sizes[lead + 2]}));
  SymInts outer(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(lead));
  SymInt rows = flat.size(2), columns = flat.size(3), groups = images / sizes[lead];
  Tensor deep = over_depth(reshape(flat, SymInts{groups, 1, sizes[lead], rows * columns}));
  SymInts result = outer;
  for (const SymInt& size : {deep.size(2), rows, columns}) result.push_back(size);
  return reshape(deep, result);
}

}  // namespace

Tensor max_pool1d(const Tensor& self, const Ints& kernel_size, const Ints& stride, const Ints& padding,
                  const Ints& dilation, bool ceil_mode) {
  check_dims(self, 1, "max_pool1d");
  Slide s = slide(kernel_size, stride, padding, 1, "max_pool1d");
  int64_t apart = numbers(dilation, 1, "dilation", "max_pool1d")[0];
  return squeeze(
      max_pool2d(unsqueeze(self, -2), {1, s.kernel[0]}, {1, s.stride[0]}, {0, s.padding[0]}, {1, apart}, ceil_mode),
      -2);
}

Tensor max_pool3d(const Tensor& self, const Ints& kernel_size, const Ints& stride, const Ints& padding,
                  const Ints& dilation, bool ceil_mode) {
  check_dims(self, 3, "max_pool3d");
  Slide s = slide(kernel_size, stride, padding, 3, "max_pool3d");
  Ints apart = numbers(dilation, 3, "dilation", "max_pool3d");
  return in_two_steps(
      self,
      [&](const Tensor& x) {
        return max_pool2d(x, {s.kernel[1], s.kernel[2]}, {s.stride[1], s.stride[2]}, {s.padding[1], s.padding[2]},
                          {apart[1], apart[2]}, ceil_mode);
      },
      [&](const Tensor& x) {
        return max_pool2d(x, {s.kernel[0], 1}, {s.stride[0], 1}, {s.padding[0], 0}, {apart[0], 1}, ceil_mode);
      });
}

Tensor avg_pool1d(const Tensor& self, const Ints& kernel_size, const Ints& stride, const Ints& padding, bool ceil_mode,
                  bool count_include_pad) {
  check_dims(self, 1, "avg_pool1d");
  Slide s = slide(kernel_size, stride, padding, 1, "avg_pool1d");
  return squeeze(avg_pool2d(unsqueeze(self, -2), {1, s.kernel[0]}, {1, s.stride[0]}, {0, s.padding[0]}, ceil_mode,
                            count_include_pad),
                 -2);
}

Tensor avg_pool3d(const Tensor& self, const Ints& kernel_size, const Ints& stride, const Ints& padding, bool ceil_mode,
                  bool count_include_pad) {
  check_dims(self, 3, "avg_pool3d");
  Slide s = slide(kernel_size, stride, padding, 3, "avg_pool3d");
  return in_two_steps(
      self,
      [&](const Tensor& x) {
        return avg_pool2d(x, {s.kernel[1], s.kernel[2]}, {s.stride[1], s.stride[2]}, {s.padding[1], s.padding[2]},
                          ceil_mode, count_include_pad);
      },
      [&](const Tensor& x) {
        return avg_pool2d(x, {s.kernel[0], 1}, {s.stride[0], 1}, {s.padding[0], 0}, ceil_mode, count_include_pad);
      });
}

Tensor adaptive_avg_pool1d(const Tensor& self, const SymInts& output_size) {
  check_dims(self, 1, "adaptive_avg_pool1d");
  TENON_CHECK(output_size.size() == 1, "[adaptive_avg_pool1d] expected one size, got {}", output_size.size());
  return squeeze(adaptive_avg_pool2d(unsqueeze(self, -2), SymInts{1, output_size[0]}), -2);
}

Tensor adaptive_avg_pool3d(const Tensor& self, const SymInts& output_size) {
  check_dims(self, 3, "adaptive_avg_pool3d");
  TENON_CHECK(output_size.size() == 1 || output_size.size() == 3, "[adaptive_avg_pool3d] expected 1 or 3 sizes, got {}",
              output_size.size());
  SymInts sizes = output_size.size() == 3 ? output_size : SymInts(3, output_size[0]);
  return in_two_steps(
      self, [&](const Tensor& x) { return adaptive_avg_pool2d(x, SymInts{sizes[1], sizes[2]}); },
      [&](const Tensor& x) { return adaptive_avg_pool2d(x, SymInts{sizes[0], x.size(3)}); });
}

Tensor adaptive_max_pool1d(const Tensor& self, const SymInts& output_size) {
  check_dims(self, 1, "adaptive_max_pool1d");
  TENON_CHECK(output_size.size() == 1, "[adaptive_max_pool1d] expected one size, got {}", output_size.size());
  return squeeze(std::get<0>(adaptive_max_pool2d(unsqueeze(self, -2), SymInts{1, output_size[0]})), -2);
}

}  // namespace tenon

namespace tenon::nn {
namespace {

std::string tuple(const Ints& list) {
  return list.size() == 1 ? fmt::format("{}", list[0]) : fmt::format("({})", fmt::join(list, ", "));
}

template <typename Options>
Ints stride_of(const Options& o) {
  return o.stride ? detail::list_of(*o.stride) : Ints{};
}

template <typename Size, typename Options>
std::string details(Size kernel, const Options& o) {
  Ints size = detail::list_of(kernel);
  return fmt::format("kernel_size={}, stride={}, padding={}", tuple(size), tuple(o.stride ? stride_of(o) : size),
                     tuple(detail::list_of(o.padding)));
}

template <typename Size, typename Pool>
auto max_layer(Pool pool, Size kernel, const MaxPoolOptions<Size>& o) {
  return [=](const Tensor& x) {
    return pool(x, detail::list_of(kernel), stride_of(o), detail::list_of(o.padding), detail::list_of(o.dilation),
                o.ceil_mode);
  };
}

std::string wanted(const Ints& size) { return "output_size=" + tuple(size); }
SymInts symbolic(const Ints& list) { return SymInts(list.span()); }

}  // namespace

MaxPool1d::MaxPool1d(int64_t kernel, const MaxPool1dOptions& o)
    : FunctionLayer("MaxPool1d", details(kernel, o), max_layer(max_pool1d, kernel, o)) {}
MaxPool2d::MaxPool2d(Pair kernel, const MaxPool2dOptions& o)
    : FunctionLayer("MaxPool2d", details(kernel, o), max_layer(max_pool2d, kernel, o)) {}
MaxPool3d::MaxPool3d(Triple kernel, const MaxPool3dOptions& o)
    : FunctionLayer("MaxPool3d", details(kernel, o), max_layer(max_pool3d, kernel, o)) {}
AvgPool1d::AvgPool1d(int64_t kernel, const AvgPool1dOptions& o)
    : FunctionLayer("AvgPool1d", details(kernel, o), [=](const Tensor& x) {
        return avg_pool1d(x, {kernel}, stride_of(o), {o.padding}, o.ceil_mode, o.count_include_pad);
      }) {}
AvgPool2d::AvgPool2d(Pair kernel, const AvgPool2dOptions& o)
    : FunctionLayer("AvgPool2d", details(kernel, o), [=](const Tensor& x) {
        return avg_pool2d(x, detail::list_of(kernel), stride_of(o), detail::list_of(o.padding), o.ceil_mode,
                          o.count_include_pad);
      }) {}
AvgPool3d::AvgPool3d(Triple kernel, const AvgPool3dOptions& o)
    : FunctionLayer("AvgPool3d", details(kernel, o), [=](const Tensor& x) {
        return avg_pool3d(x, detail::list_of(kernel), stride_of(o), detail::list_of(o.padding), o.ceil_mode,
                          o.count_include_pad);
      }) {}
AdaptiveAvgPool1d::AdaptiveAvgPool1d(int64_t size)
    : FunctionLayer("AdaptiveAvgPool1d", wanted({size}),
                    [=](const Tensor& x) { return adaptive_avg_pool1d(x, SymInts{size}); }) {}
AdaptiveAvgPool2d::AdaptiveAvgPool2d(Pair size)
    : FunctionLayer("AdaptiveAvgPool2d", wanted(detail::list_of(size)),
                    [=](const Tensor& x) { return adaptive_avg_pool2d(x, symbolic(detail::list_of(size))); }) {}
AdaptiveAvgPool3d::AdaptiveAvgPool3d(Triple size)
    : FunctionLayer("AdaptiveAvgPool3d", wanted(detail::list_of(size)),
                    [=](const Tensor& x) { return adaptive_avg_pool3d(x, symbolic(detail::list_of(size))); }) {}
AdaptiveMaxPool1d::AdaptiveMaxPool1d(int64_t size)
    : FunctionLayer("AdaptiveMaxPool1d", wanted({size}),
                    [=](const Tensor& x) { return adaptive_max_pool1d(x, SymInts{size}); }) {}
AdaptiveMaxPool2d::AdaptiveMaxPool2d(Pair size)
    : FunctionLayer("AdaptiveMaxPool2d", wanted(detail::list_of(size)), [=](const Tensor& x) {
        return std::get<0>(adaptive_max_pool2d(x, symbolic(detail::list_of(size))));
      }) {}
AdaptiveMaxPool3d::AdaptiveMaxPool3d(Triple size)
    : FunctionLayer("AdaptiveMaxPool3d", wanted(detail::list_of(size)), [=](const Tensor& x) {
        return std::get<0>(adaptive_max_pool3d(x, symbolic(detail::list_of(size))));
      }) {}

}  // namespace tenon::nn
