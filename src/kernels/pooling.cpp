#include <tenon/kernels/pooling.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/wide_lines.h"
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

// The elements of one plane after another in the wide type: the tensor's own where it holds such, else those of a room.
template <typename Wide>
class WidePlane {
 public:
  WidePlane(const TensorBase& tensor, const Planes& planes)
      : tensor_(tensor), planes_(planes), own_(tensor.dtype() == kDtypeOf<Wide>) {
    if (!own_) room_.resize(static_cast<size_t>(checked::element_count(planes.inner.span())));
    strides = own_ ? planes.inner_strides : core::contiguous_strides(planes.inner.span());
  }

  Ints strides;

  Wide* read(int64_t plane) {
    if (own_) return place(plane);
    each_line(plane, [&](Wide* line, const Stretch& stretch) { read_line(stretch, line); });
    return room_.data();
  }
  // To be written to; `write` when it has been.
  Wide* place(int64_t plane) { return own_ ? tensor_.data<Wide>() + planes_.start(plane) : room_.data(); }
  void write(int64_t plane) {
    if (!own_) each_line(plane, [&](Wide* line, const Stretch& stretch) { write_line(line, stretch); });
  }

 private:
  template <typename Body>
  void each_line(int64_t plane, const Body& body) {
    const int64_t length = planes_.inner.back(), start = planes_.start(plane);
    for (int64_t first = 0; first < static_cast<int64_t>(room_.size()); first += length)
      body(room_.data() + first, Stretch{tensor_, start + offset_of(first, planes_.inner, planes_.inner_strides),
                                         planes_.inner_strides.back(), length});
  }

  const TensorBase& tensor_;
  const Planes& planes_;
  const bool own_;
  std::vector<Wide> room_;
};

int64_t product(const Ints& sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

// Calls visit(offset, position) for every element of the windows chosen by `at`; up to three dimensions.
template <typename Visit>
void each_in_window(const Windows& windows, const Ints& at, const Ints& sizes, const Ints& strides, Visit&& visit) {
  static constexpr Window kWhole{0, 1, 1, 1};
  Window w[3] = {kWhole, kWhole, kWhole};
  int64_t stride[3] = {0, 0, 0}, size[3] = {1, 1, 1};
  size_t lead = 3 - windows.size();
  for (size_t dim = 0; dim < windows.size(); ++dim) {
    w[lead + dim] = windows[dim][static_cast<size_t>(at[dim])];
    stride[lead + dim] = strides[dim];
    size[lead + dim] = sizes[dim];
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

int64_t offset_in(const Ints& strides, const Ints& at) {
  int64_t offset = 0;
  for (size_t dim = 0; dim < at.size(); ++dim) offset += at[dim] * strides[dim];
  return offset;
}

// Calls work(first plane, end), planes of so much work each shared among threads.
template <typename Work>
void each_plane(const Planes& planes, int64_t each, Work&& work) {
  parallel_for(planes.count, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, each)), work);
}

// Calls visit(coordinates, offset) for the positions of a plane.
template <typename Visit>
void each_position(const Ints& sizes, const Ints& strides, Visit&& visit) {
  const int64_t positions = product(sizes);
  Ints at;
  at.resize(sizes.size(), 0);
  for (int64_t position = 0; position < positions; ++position) {
    visit(at, offset_in(strides, at));
    for (size_t dim = at.size(); dim-- > 0;) {
      if (++at[dim] < sizes[dim]) break;
      at[dim] = 0;
    }
  }
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
  with_wide_type(self.dtype(), [&]<typename Wide>() {
    if constexpr (!std::is_floating_point_v<Wide>) fail("[fractional_max_pool] of {}", self.description());
    auto* place = indices.data<int64_t>();
    parallel_for(target.count, 1, [&](int64_t begin, int64_t end) {
      std::vector<std::vector<int64_t>> starts(dims);
      for (size_t dim = 0; dim < dims; ++dim) starts[dim].resize(static_cast<size_t>(target.inner[dim]));
      WidePlane<Wide> elements(self, source), results(out, target);
      for (int64_t plane = begin; plane < end; ++plane) {
        const int64_t of_plane = plane / channels * samples.strides()[0] + plane % channels * samples.strides()[1];
        for (size_t dim = 0; dim < dims; ++dim) {
          // What is no number of [0, 1) would lead outside.
          const auto which = static_cast<int64_t>(dims == 2 ? 1 - dim : dim);
          double number = 0;
          read_line({samples, of_plane + which * samples.strides()[2], 1, 1}, &number);
          TENON_CHECK(number >= 0 && number <= 1, "[fractional_max_pool] expected samples of [0, 1), got {}", number);
          fractional_starts(static_cast<Wide>(number), source.inner[dim], kernel[dim], starts[dim]);
        }
        const Wide* in = elements.read(plane);
        Wide* to = results.place(plane);
        int64_t* to_place = place + target.start(plane);
        // The elements of a window, the last dimension the fastest.
        const auto each_element = [&](const int64_t* first, auto&& visit) {
          for (int64_t i = 0; i < (dims == 3 ? kernel[0] : 1); ++i)
            for (int64_t j = 0; j < kernel[dims - 2]; ++j)
              for (int64_t k = 0; k < kernel[dims - 1]; ++k) {
                const int64_t at[3] = {first[0] + i, first[1] + j, first[2] + k};
                int64_t where = 0, position = 0;
                for (size_t dim = 0; dim < dims; ++dim) {
                  const int64_t one = at[3 - dims + dim];
                  where += one * elements.strides[dim];
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
                const Wide value = in[where];
                if (!(value > largest) && !is_nan(value)) return;
                largest = value;
                best = position;
              });
              // `out` and `indices` are contiguous.
              *to++ = largest;
              *to_place++ = best;
            }
        results.write(plane);
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
  const Planes source(self, windows.size()), target(out, windows.size());
  with_wide_type(self.dtype(), [&]<typename Wide>() {
    each_plane(target, product(source.inner), [&](int64_t begin, int64_t end) {
      WidePlane<Wide> elements(self, source), results(out, target);
      for (int64_t plane = begin; plane < end; ++plane) {
        const Wide* in = elements.read(plane);
        Wide* to = results.place(plane);
        // `out` and `indices` have the same strides.
        int64_t* place = indices.data<int64_t>() + target.start(plane);
        each_position(target.inner, target.inner_strides, [&](const Ints& at, int64_t offset) {
          int64_t best = -1;
          Wide largest{};
          each_in_window(windows, at, source.inner, elements.strides, [&](int64_t where, int64_t position) {
            const Wide value = in[where];
            if (best >= 0 && !(value > largest) && !(is_nan(value) && !is_nan(largest))) return;
            best = position;
            largest = value;
          });
          to[offset_in(results.strides, at)] = largest;
          place[offset] = std::max<int64_t>(best, 0);
        });
        results.write(plane);
      }
    });
  });
}

void max_pool_backward(const TensorBase& grad, const TensorBase& indices, size_t dims, const TensorBase& out) {
  const Planes source(out, dims), target(grad, dims), places(indices, dims);
  const int64_t extent = product(source.inner), taken = product(target.inner);
  with_wide_type(grad.dtype(), [&]<typename Wide>() {
    each_plane(source, extent, [&](int64_t begin, int64_t end) {
      WidePlane<Wide> elements(grad, target), results(out, source);
      for (int64_t plane = begin; plane < end; ++plane) {
        const Wide* from = elements.read(plane);
        Wide* sums = results.place(plane);
        const auto* place = indices.data<int64_t>() + places.start(plane);
        for (int64_t at = 0; at < extent; ++at) sums[offset_of(at, source.inner, results.strides)] = Wide{};
        for (int64_t at = 0; at < taken; ++at) {
          const int64_t where = place[offset_of(at, places.inner, places.inner_strides)];
          TENON_CHECK_INDEX(where >= 0 && where < extent,
                            "[max_pool] index {} is out of range for a plane of {} elements", where, extent);
          add_to(sums[offset_of(where, source.inner, results.strides)],
                 from[offset_of(at, target.inner, elements.strides)]);
        }
        results.write(plane);
      }
    });
  });
}

void average_pool(const TensorBase& self, const Windows& windows, int64_t divisor, const TensorBase& out) {
  const Planes source(self, windows.size()), target(out, windows.size());
  with_wide_type(self.dtype(), [&]<typename Wide>() {
    each_plane(target, product(source.inner), [&](int64_t begin, int64_t end) {
      WidePlane<Wide> elements(self, source), results(out, target);
      for (int64_t plane = begin; plane < end; ++plane) {
        const Wide* in = elements.read(plane);
        Wide* to = results.place(plane);
        each_position(target.inner, results.strides, [&](const Ints& at, int64_t offset) {
          Wide total{};
          each_in_window(windows, at, source.inner, elements.strides,
                         [&](int64_t where, int64_t) { add_to(total, in[where]); });
          to[offset] = total / static_cast<Wide>(divisor_of(windows, at, divisor));
        });
        results.write(plane);
      }
    });
  });
}

void average_pool_backward(const TensorBase& grad, const Windows& windows, int64_t divisor, const TensorBase& out) {
  const Planes source(out, windows.size()), target(grad, windows.size());
  with_wide_type(grad.dtype(), [&]<typename Wide>() {
    each_plane(target, product(source.inner), [&](int64_t begin, int64_t end) {
      WidePlane<Wide> elements(grad, target), results(out, source);
      for (int64_t plane = begin; plane < end; ++plane) {
        const Wide* from = elements.read(plane);
        Wide* place = results.place(plane);
        const int64_t extent = product(source.inner);
        for (int64_t at = 0; at < extent; ++at) place[offset_of(at, source.inner, results.strides)] = Wide{};
        each_position(target.inner, elements.strides, [&](const Ints& at, int64_t offset) {
          const auto share = from[offset] / static_cast<Wide>(divisor_of(windows, at, divisor));
          each_in_window(windows, at, source.inner, results.strides,
                         [&](int64_t where, int64_t) { add_to(place[where], share); });
        });
        results.write(plane);
      }
    });
  });
}

}  // namespace tenon::kernels
