#include <tenon/kernels/scatter.h>

#include <algorithm>

#include "kernels/strided.h"

namespace tenon::kernels {
namespace {

enum class Write { Add, Replace };

// Each line along `dim` is one thread's, so that writes to one place keep their order.
template <Write write, typename Index, typename Source, typename Sum>
void write_lines(const TensorBase& index, const TensorBase& src, Sum* out, const Strided& target, size_t dim) {
  Strided picks(index), source(src);
  const Index* pick = index.data<Index>();
  const Source* from = src.data<Source>();
  Ints sizes = without(picks.sizes, dim), pick_strides = without(picks.strides, dim),
       source_strides = without(source.strides, dim), target_strides = without(target.strides, dim);
  int64_t length = picks.sizes[dim], reach = target.sizes[dim];
  if (picks.count == 0) return;
  parallel_for(picks.count / length, std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const Index* line_pick = pick + offset_of(line, sizes, pick_strides);
      const Source* line_from = from + offset_of(line, sizes, source_strides);
      Sum* line_out = out + offset_of(line, sizes, target_strides);
      for (int64_t i = 0; i < length; ++i) {
        int64_t at = line_pick[i * picks.strides[dim]];
        TENON_CHECK(at >= 0 && at < reach, "[{}] index {} is out of range for dimension {} of size {}",
                    write == Write::Add ? "scatter_add" : "scatter", at, dim, reach);
        auto value = static_cast<Sum>(widen(line_from[i * source.strides[dim]]));
        Sum& place = line_out[at * target.strides[dim]];
        if constexpr (write == Write::Add)
          add_to(place, value);
        else
          place = value;
      }
    }
  });
}

template <Write write>
void write_all(const TensorBase& self, int64_t dim, const TensorBase& index, const TensorBase& src,
               const TensorBase& out) {
  Strided target(out);
  auto along = static_cast<size_t>(dim);
  TENON_ASSERT(along < target.sizes.size(), "dimension {} of {}", dim, out.description());
  with_element_type(out.dtype(), [&]<typename T>() {
    auto lines = [&](auto* sums, const Strided& place) {
      using Sum = std::remove_pointer_t<decltype(sums)>;
      if (index.dtype() == kInt32)
        write_lines<write, int32_t, T, Sum>(index, src, sums, place, along);
      else
        write_lines<write, int64_t, T, Sum>(index, src, sums, place, along);
    };
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      TensorBase wide = core::allocate_base(out.sizes(), core::contiguous_strides(out.sizes()), kFloat32, kCPU);
      Strided place(wide);
      copy_elements(self.data<T>(), Strided(self), wide.data<float>(), place);
      lines(wide.data<float>(), place);
      copy_elements(wide.data<float>(), place, out.data<T>(), target);
    } else {
      copy_elements(self.data<T>(), Strided(self), out.data<T>(), target);
      lines(out.data<T>(), target);
    }
  });
}

}  // namespace

void scatter_add(const TensorBase& self, int64_t dim, const TensorBase& index, const TensorBase& src,
                 const TensorBase& out) {
  write_all<Write::Add>(self, dim, index, src, out);
}

void scatter(const TensorBase& self, int64_t dim, const TensorBase& index, const TensorBase& src,
             const TensorBase& out) {
  write_all<Write::Replace>(self, dim, index, src, out);
}

}  // namespace tenon::kernels
