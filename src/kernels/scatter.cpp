#include <tenon/kernels/scatter.h>

#include <algorithm>

#include "kernels/strided.h"

namespace tenon::kernels {
namespace {

enum class Write { Add, Replace };

template <Write write, typename Sum>
void write_one(Sum& place, Sum value) {
  if constexpr (write == Write::Add)
    add_to(place, value);
  else
    place = value;
}

template <Write write>
void check_index(int64_t at, size_t dim, int64_t reach) {
  TENON_CHECK(at >= 0 && at < reach, "[{}] index {} is out of range for dimension {} of size {}",
              write == Write::Add ? "scatter_add" : "scatter", at, dim, reach);
}

// The dimension along which source and target lie one behind the other, if it is not the one that is written along;
// `dim` if there is none.
size_t row_dimension(const Strided& source, const Strided& target, const Ints& sizes, size_t dim) {
  for (size_t each = 0; each < sizes.size(); ++each)
    if (each != dim && sizes[each] > 1 && source.strides[each] == 1 && target.strides[each] == 1) return each;
  return dim;
}

// Row by row, as the elements lie: threads share the columns, so that writes to one place keep their order.
template <Write write, typename Index, typename Source, typename Sum>
void write_rows(const TensorBase& index, const TensorBase& src, Sum* out, const Strided& target, size_t dim,
                size_t row) {
  constexpr int64_t kColumns = 16;  // of one thread, at least: a line of the cache
  Strided picks(index), source(src);
  const Index* pick = index.data<Index>();
  const Source* from = src.data<Source>();
  auto outside = [&](const Ints& list) { return without(without(list, std::max(dim, row)), std::min(dim, row)); };
  const Ints sizes = outside(picks.sizes), pick_strides = outside(picks.strides),
             source_strides = outside(source.strides), target_strides = outside(target.strides);
  const int64_t length = picks.sizes[dim], width = picks.sizes[row], reach = target.sizes[dim];
  const int64_t pick_step = picks.strides[row], blocks = (width + kColumns - 1) / kColumns;
  const int64_t grain = std::max<int64_t>(1, kGrain / (length * std::min(width, kColumns)));
  parallel_for(picks.count / (length * width) * blocks, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t plane = begin / blocks, first = begin % blocks, last = std::min(blocks, first + end - begin);
      begin += last - first;
      const int64_t left = first * kColumns, columns = std::min(width, last * kColumns) - left;
      const Index* plane_pick = pick + offset_of(plane, sizes, pick_strides) + left * pick_step;
      const Source* plane_from = from + offset_of(plane, sizes, source_strides) + left;
      Sum* plane_out = out + offset_of(plane, sizes, target_strides) + left;
      for (int64_t i = 0; i < length; ++i) {
        const Index* row_pick = plane_pick + i * picks.strides[dim];
        const Source* row_from = plane_from + i * source.strides[dim];
        if (pick_step == 0) {
          check_index<write>(*row_pick, dim, reach);
          Sum* row_out = plane_out + *row_pick * target.strides[dim];
          for (int64_t at = 0; at < columns; ++at) write_one<write>(row_out[at], static_cast<Sum>(widen(row_from[at])));
          continue;
        }
        for (int64_t at = 0; at < columns; ++at) {
          const int64_t place = row_pick[at * pick_step];
          check_index<write>(place, dim, reach);
          write_one<write>(plane_out[place * target.strides[dim] + at], static_cast<Sum>(widen(row_from[at])));
        }
      }
    }
  });
}

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
  if (size_t row = row_dimension(source, target, picks.sizes, dim); row != dim)
    return write_rows<write, Index, Source>(index, src, out, target, dim, row);
  parallel_for(picks.count / length, std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const Index* line_pick = pick + offset_of(line, sizes, pick_strides);
      const Source* line_from = from + offset_of(line, sizes, source_strides);
      Sum* line_out = out + offset_of(line, sizes, target_strides);
      for (int64_t i = 0; i < length; ++i) {
        int64_t at = line_pick[i * picks.strides[dim]];
        check_index<write>(at, dim, reach);
        write_one<write>(line_out[at * target.strides[dim]],
                         static_cast<Sum>(widen(line_from[i * source.strides[dim]])));
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
