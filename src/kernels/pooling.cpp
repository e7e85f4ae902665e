#include <tenon/kernels/pooling.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/strided.h"
#include "support/checked.h"

namespace tenon::kernels {
namespace {

// A tensor as planes of the last `pooled` dimensions.
struct Planes {
  Ints outer, outer_strides, inner, inner_strides;
  int64_t count = 1;
  Planes(const TensorBase& tensor, size_t pooled) {
    auto rank = static_cast<size_t>(tensor.dim());
    for (size_t dim = 0; dim < rank; ++dim) {
      bool in = dim + pooled >= rank;
      (in ? inner : outer).push_back(tensor.sizes()[dim]);
      (in ? inner_strides : outer_strides).push_back(tensor.strides()[dim]);
      if (!in) count *= tensor.sizes()[dim];
    }
  }
  int64_t start(int64_t plane) const { return offset_of(plane, outer, outer_strides); }
};

// Integers wrap, as everywhere in tensors; C++ leaves that open for signed ones.
template <typename T>
T sum_of(T left, T right) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return static_cast<T>(static_cast<uint64_t>(left) + static_cast<uint64_t>(right));
  else
    return static_cast<T>(left + right);
}

int64_t product(const Ints& sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

// Calls visit(offset, position) for every element of the windows chosen by `at`; up to three dimensions.
template <typename Visit>
void each_in_window(const Windows& windows, const Ints& at, const Planes& planes, Visit&& visit) {
  static constexpr Window kWhole{0, 1, 1, 1};
  Window w[3] = {kWhole, kWhole, kWhole};
  int64_t stride[3] = {0, 0, 0}, size[3] = {1, 1, 1};
  size_t lead = 3 - windows.size();
  for (size_t dim = 0; dim < windows.size(); ++dim) {
    w[lead + dim] = windows[dim][static_cast<size_t>(at[dim])];
    stride[lead + dim] = planes.inner_strides[dim];
    size[lead + dim] = planes.inner[dim];
  }
  for (int64_t i = w[0].start; i < w[0].end; i += w[0].step)
    for (int64_t j = w[1].start; j < w[1].end; j += w[1].step)
      for (int64_t k = w[2].start; k < w[2].end; k += w[2].step)
        visit(i * stride[0] + j * stride[1] + k * stride[2], (i * size[1] + j) * size[2] + k);
}

double divisor_of(const Windows& windows, const Ints& at, int64_t divisor) {
  if (divisor != 0) return static_cast<double>(divisor);
  double count = 1;
  for (size_t dim = 0; dim < windows.size(); ++dim)
    count *= static_cast<double>(windows[dim][static_cast<size_t>(at[dim])].divisor);
  return count;
}

// Calls visit(plane, coordinates of an output position, its offset in that plane of `out`), planes shared among
// threads.
template <typename Visit>
void each_output(const Planes& out, int64_t work, Visit&& visit) {
  int64_t positions = product(out.inner);
  parallel_for(out.count, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work)), [&](int64_t begin, int64_t end) {
    Ints at;
    at.resize(out.inner.size(), 0);
    for (int64_t plane = begin; plane < end; ++plane) {
      std::fill(at.begin(), at.end(), 0);
      for (int64_t position = 0; position < positions; ++position) {
        int64_t offset = out.start(plane);
        for (size_t dim = 0; dim < at.size(); ++dim) offset += at[dim] * out.inner_strides[dim];
        visit(plane, at, offset);
        for (size_t dim = at.size(); dim-- > 0;) {
          if (++at[dim] < out.inner[dim]) break;
          at[dim] = 0;
        }
      }
    }
  });
}

// Steps of one length on average, from 0 to where the last window ends with the input.
template <typename Real>
void fractional_starts(Real sample, int64_t size, int64_t kernel, std::vector<int64_t>& starts) {
  const size_t last = starts.size() - 1;
  if (last > 0) {
    const Real step = static_cast<Real>(size - kernel) / static_cast<Real>(last);
    const auto first = static_cast<int64_t>(sample * step);
    for (size_t at = 0; at < last; ++at)
      starts[at] =
          std::clamp<int64_t>(static_cast<int64_t>((static_cast<Real>(at) + sample) * step) - first, 0, size - kernel);
  }
  starts[last] = size - kernel;
}

}  // namespace

void fractional_max_pool(const TensorBase& self, const Ints& kernel, const TensorBase& samples, const TensorBase& out,
                         const TensorBase& indices) {
  const size_t dims = kernel.size();
  Planes source(self, dims), target(out, dims);
  const int64_t channels = self.sizes()[static_cast<size_t>(self.dim()) - dims - 1];
  with_element_type(self.dtype(), [&]<typename T>() {
    using Wide = decltype(widen(T()));
    if constexpr (!std::is_floating_point_v<Wide>) fail("[fractional_max_pool] of {}", self.description());
    const T *from = self.data<T>(), *sample = samples.data<T>();
    T* to = out.data<T>();
    auto* place = indices.data<int64_t>();
    parallel_for(target.count, 1, [&](int64_t begin, int64_t end) {
      std::vector<std::vector<int64_t>> starts(dims);
      for (size_t dim = 0; dim < dims; ++dim) starts[dim].resize(static_cast<size_t>(target.inner[dim]));
      for (int64_t plane = begin; plane < end; ++plane) {
        const T* of_plane = sample + plane / channels * samples.strides()[0] + plane % channels * samples.strides()[1];
        for (size_t dim = 0; dim < dims; ++dim) {
          // What is no number of [0, 1) would lead outside.
          const auto which = static_cast<int64_t>(dims == 2 ? 1 - dim : dim);
          auto number = static_cast<double>(widen(of_plane[which * samples.strides()[2]]));
          TENON_CHECK(number >= 0 && number <= 1, "[fractional_max_pool] expected samples of [0, 1), got {}", number);
          fractional_starts(static_cast<Wide>(number), source.inner[dim], kernel[dim], starts[dim]);
        }
        const T* in = from + source.start(plane);
        int64_t offset = target.start(plane);
        // The elements of a window, the last dimension the fastest.
        const auto each_element = [&](const int64_t* first, auto&& visit) {
          for (int64_t i = 0; i < (dims == 3 ? kernel[0] : 1); ++i)
            for (int64_t j = 0; j < kernel[dims - 2]; ++j)
              for (int64_t k = 0; k < kernel[dims - 1]; ++k) {
                const int64_t at[3] = {first[0] + i, first[1] + j, first[2] + k};
                int64_t where = 0, position = 0;
                for (size_t dim = 0; dim < dims; ++dim) {
                  const int64_t one = at[3 - dims + dim];
                  where += one * source.inner_strides[dim];
                  position = position * source.inner[dim] + one;
                }
                visit(where, position);
              }
        };
        const std::vector<int64_t> none = {0};
        for (int64_t depth : dims == 3 ? starts[0] : none)
          for (int64_t row : starts[dims - 2])
            for (int64_t column : starts[dims - 1]) {
              const int64_t first[3] = {depth, row, column};
              int64_t best = -1;
              Wide largest = -std::numeric_limits<Wide>::infinity();
              each_element(first, [&](int64_t where, int64_t position) {
                if (best < 0) best = position;
                Wide value = widen(in[where]);
                if (!(value > largest) && !is_nan(value)) return;
                largest = value;
                best = position;
              });
              // `out` and `indices` are contiguous.
              to[offset] = narrow<T>(largest);
              place[offset++] = best;
            }
      }
    });
  });
}

std::vector<Window> sliding_windows(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                                    int64_t count) {
  std::vector<Window> windows;
  // One element has no distance to the next, however large it is said to be.
  if (kernel == 1) dilation = 1;
  for (int64_t at = 0; at < count; ++at) {
    int64_t start = checked::multiply(at, stride) - padding;
    int64_t end = std::min(checked::add(start, (kernel - 1) * dilation + 1), size + padding);
    Window w{start, std::min(end, size), dilation, end - start};
    if (w.start < 0) w.start += (-w.start - 1) / dilation * dilation + dilation;
    windows.push_back(w);
  }
  return windows;
}

std::vector<Window> even_windows(int64_t size, int64_t count) {
  std::vector<Window> windows;
  for (int64_t at = 0; at < count; ++at) {
    int64_t start = checked::multiply(at, size) / count, reach = checked::multiply(at + 1, size);
    int64_t end = reach / count + (reach % count != 0 ? 1 : 0);
    windows.push_back({start, end, 1, end - start});
  }
  return windows;
}

void max_pool(const TensorBase& self, const Windows& windows, const TensorBase& out, const TensorBase& indices) {
  Planes source(self, windows.size()), target(out, windows.size());
  with_element_type(self.dtype(), [&]<typename T>() {
    using Wide = decltype(widen(T()));
    const T* from = self.data<T>();
    T* to = out.data<T>();
    auto* place = indices.data<int64_t>();
    each_output(target, product(source.inner), [&](int64_t plane, const Ints& at, int64_t offset) {
      const T* in = from + source.start(plane);
      int64_t best = -1;
      Wide largest{};
      each_in_window(windows, at, source, [&](int64_t where, int64_t position) {
        Wide value = widen(in[where]);
        if (best >= 0 && !(value > largest) && !(is_nan(value) && !is_nan(largest))) return;
        best = position;
        largest = value;
      });
      // `out` and `indices` have the same strides.
      to[offset] = narrow<T>(largest);
      place[offset] = std::max<int64_t>(best, 0);
    });
  });
}

void max_pool_backward(const TensorBase& grad, const TensorBase& indices, size_t dims, const TensorBase& out) {
  Planes source(out, dims), target(grad, dims), places(indices, dims);
  const int64_t extent = product(source.inner), taken = product(target.inner);
  with_element_type(grad.dtype(), [&]<typename T>() {
    using Wide = decltype(widen(T()));
    const T* from = grad.data<T>();
    const auto* place = indices.data<int64_t>();
    T* to = out.data<T>();
    parallel_for(
        source.count, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, extent)), [&](int64_t begin, int64_t end) {
          std::vector<Wide> sums(static_cast<size_t>(extent));
          for (int64_t plane = begin; plane < end; ++plane) {
            std::fill(sums.begin(), sums.end(), Wide{});
            for (int64_t at = 0; at < taken; ++at) {
              int64_t where = place[places.start(plane) + offset_of(at, places.inner, places.inner_strides)];
              TENON_CHECK_INDEX(where >= 0 && where < extent,
                                "[max_pool] index {} is out of range for a plane of {} elements", where, extent);
              Wide value = widen(from[target.start(plane) + offset_of(at, target.inner, target.inner_strides)]);
              sums[static_cast<size_t>(where)] = sum_of<Wide>(sums[static_cast<size_t>(where)], value);
            }
            for (int64_t at = 0; at < extent; ++at)
              to[source.start(plane) + offset_of(at, source.inner, source.inner_strides)] =
                  narrow<T>(static_cast<Wide>(sums[static_cast<size_t>(at)]));
          }
        });
  });
}

void average_pool(const TensorBase& self, const Windows& windows, int64_t divisor, const TensorBase& out) {
  Planes source(self, windows.size()), target(out, windows.size());
  with_element_type(self.dtype(), [&]<typename T>() {
    using Wide = decltype(widen(T()));
    const T* from = self.data<T>();
    T* to = out.data<T>();
    each_output(target, product(source.inner), [&](int64_t plane, const Ints& at, int64_t offset) {
      const T* in = from + source.start(plane);
      Wide total{};
      each_in_window(windows, at, source,
                     [&](int64_t where, int64_t) { total = sum_of<Wide>(total, widen(in[where])); });
      to[offset] = narrow<T>(static_cast<Wide>(total / static_cast<Wide>(divisor_of(windows, at, divisor))));
    });
  });
}

void average_pool_backward(const TensorBase& grad, const Windows& windows, int64_t divisor, const TensorBase& out) {
  Planes source(out, windows.size()), target(grad, windows.size());
  with_element_type(grad.dtype(), [&]<typename T>() {
    using Wide = decltype(widen(T()));
    // Halves are added up in float32 and rounded once.
    TensorBase wide = std::is_same_v<T, Wide> ? out : core::allocate_base(out.sizes(), out.strides(), kFloat32, kCPU);
    const T* from = grad.data<T>();
    Wide* to = wide.data<Wide>();
    Strided all(wide);
    parallel_for(all.count, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) to[offset_of(at, all.sizes, all.strides)] = Wide{};
    });
    each_output(target, product(source.inner), [&](int64_t plane, const Ints& at, int64_t offset) {
      Wide* place = to + source.start(plane);
      auto share = static_cast<Wide>(widen(from[offset]) / static_cast<Wide>(divisor_of(windows, at, divisor)));
      each_in_window(windows, at, source, [&](int64_t where, int64_t) { place[where] = sum_of(place[where], share); });
    });
    if constexpr (!std::is_same_v<T, Wide>)
      copy_elements(wide.data<Wide>(), Strided(wide), out.data<T>(), Strided(out));
  });
}

}  // namespace tenon::kernels
