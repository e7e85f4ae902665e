#include <tenon/kernels/scatter.h>
#include <tenon/support/parallel.h>

#include <algorithm>

#include "kernels/elements.h"

namespace tenon::kernels {
namespace {

constexpr int64_t kGrain = 4096;  // elements that are worth a thread

// A tensor of at least one dimension; a number is a list of one.
struct Strided {
  Ints sizes, strides;
  int64_t count = 1;
  explicit Strided(const Tensor& tensor) : sizes(tensor.sizes()), strides(tensor.strides()) {
    if (sizes.empty()) {
      sizes.push_back(1);
      strides.push_back(0);
    }
    for (int64_t size : sizes) count *= size;
  }
  // The sizes without dimension `dim`: the lines along it.
  Ints lines(const Ints& of, size_t dim) const {
    Ints kept = of;
    kept.erase(kept.begin() + dim);
    return kept;
  }
};

template <typename From, typename To>
void copy_elements(const From* from, const Strided& source, To* to, const Strided& target) {
  parallel_for(target.count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at)
      to[offset_of(at, target.sizes, target.strides)] =
          narrow<To>(widen(from[offset_of(at, source.sizes, source.strides)]));
  });
}

template <typename T>
void add_to(T& place, T value) {
  if constexpr (std::is_same_v<T, bool>)
    place |= value;
  else if constexpr (std::is_integral_v<T>)  // wraps around
    place = static_cast<T>(static_cast<uint64_t>(place) + static_cast<uint64_t>(value));
  else
    place += value;
}

// Each line along `dim` is one thread's, so that additions to one place keep their order.
template <typename Index, typename Source, typename Sum>
void add_lines(const Tensor& index, const Tensor& src, Sum* out, const Strided& target, size_t dim) {
  Strided picks(index), source(src);
  const Index* pick = index.data<Index>();
  const Source* from = src.data<Source>();
  Ints sizes = picks.lines(picks.sizes, dim), pick_strides = picks.lines(picks.strides, dim),
       source_strides = picks.lines(source.strides, dim), target_strides = picks.lines(target.strides, dim);
  int64_t length = picks.sizes[dim], reach = target.sizes[dim];
  if (picks.count == 0) return;
  parallel_for(picks.count / length, std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const Index* line_pick = pick + offset_of(line, sizes, pick_strides);
      const Source* line_from = from + offset_of(line, sizes, source_strides);
      Sum* line_out = out + offset_of(line, sizes, target_strides);
      for (int64_t i = 0; i < length; ++i) {
        int64_t at = line_pick[i * picks.strides[dim]];
        TENON_CHECK(at >= 0 && at < reach, "[scatter_add] index {} is out of range for dimension {} of size {}", at, dim, reach);
        add_to<Sum>(line_out[at * target.strides[dim]], widen(line_from[i * source.strides[dim]]));
      }
    }
  });
}

}  // namespace

void scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, const Tensor& out) {
  Strided target(out);
  auto along = static_cast<size_t>(dim);
  TENON_ASSERT(along < target.sizes.size(), "dimension {} of {}", dim, out.description());
  with_element_type(out.dtype(), [&]<typename T>() {
    auto add = [&](auto* sums, const Strided& place) {
      using Sum = std::remove_pointer_t<decltype(sums)>;
      if (index.dtype() == kInt32)
        add_lines<int32_t, T, Sum>(index, src, sums, place, along);
      else
        add_lines<int64_t, T, Sum>(index, src, sums, place, along);
    };
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      Tensor wide = core::allocate(out.sizes(), core::contiguous_strides(out.sizes()), kFloat32, kCPU);
      Strided place(wide);
      copy_elements(self.data<T>(), Strided(self), wide.data<float>(), place);
      add(wide.data<float>(), place);
      copy_elements(wide.data<float>(), place, out.data<T>(), target);
    } else {
      copy_elements(self.data<T>(), Strided(self), out.data<T>(), target);
      add(out.data<T>(), target);
    }
  });
}

}  // namespace tenon::kernels
