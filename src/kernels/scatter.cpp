#include <tenon/kernels/scatter.h>

#include <algorithm>

#include "kernels/element_writes.h"

namespace tenon::kernels {
namespace {

// The dimension along which source and target lie one behind the other, if it is not the one that is written along;
// `dim` if there is none.
size_t row_dimension(const Strided& source, const Strided& target, const Ints& sizes, size_t dim) {
  for (size_t each = 0; each < sizes.size(); ++each)
    if (each != dim && sizes[each] > 1 && source.strides[each] == 1 && target.strides[each] == 1) return each;
  return dim;
}

// Row by row, as the elements lie: threads share the columns, so that writes to one place keep their order.
void write_rows(const Picks& picks, const TensorBase& src, const TensorBase& out, const ElementWrites& writes,
                size_t row) {
  constexpr int64_t kColumns = 16;  // of one thread, at least: a line of the cache
  const Strided index(picks.index), source(src), target(out);
  const size_t dim = picks.dim;
  auto outside = [&](const Ints& list) { return without(without(list, std::max(dim, row)), std::min(dim, row)); };
  const Ints sizes = outside(index.sizes), pick_strides = outside(index.strides),
             source_strides = outside(source.strides), target_strides = outside(target.strides);
  const int64_t length = index.sizes[dim], width = index.sizes[row], element = out.element_size();
  const int64_t pick_step = index.strides[row], blocks = (width + kColumns - 1) / kColumns;
  const int64_t grain = std::max<int64_t>(1, kGrain / (length * std::min(width, kColumns)));
  const auto* from = static_cast<const std::byte*>(src.raw_data());
  auto* to = static_cast<std::byte*>(out.raw_data());
  parallel_for(index.count / (length * width) * blocks, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t plane = begin / blocks, first = begin % blocks, last = std::min(blocks, first + end - begin);
      begin += last - first;
      const int64_t left = first * kColumns, columns = std::min(width, last * kColumns) - left;
      const int64_t plane_pick = offset_of(plane, sizes, pick_strides) + left * pick_step;
      const std::byte* plane_from = from + (offset_of(plane, sizes, source_strides) + left) * element;
      std::byte* plane_to = to + (offset_of(plane, sizes, target_strides) + left) * element;
      for (int64_t i = 0; i < length; ++i) {
        const int64_t row_pick = plane_pick + i * index.strides[dim];
        const std::byte* row_from = plane_from + i * source.strides[dim] * element;
        if (pick_step == 0) {
          writes.row(row_from, 1, plane_to + picks.at(row_pick) * picks.stride * element, 1, columns);
          continue;
        }
        picks.write(writes, row_pick, pick_step, columns, row_from, 1, plane_to, 1);
      }
    }
  });
}

// Each line along `dim` is one thread's, so that writes to one place keep their order.
void write_lines(const Picks& picks, const TensorBase& src, const TensorBase& out, const ElementWrites& writes) {
  const Strided index(picks.index), source(src), target(out);
  const size_t dim = picks.dim;
  if (index.count == 0) return;
  if (size_t row = row_dimension(source, target, index.sizes, dim); row != dim)
    return write_rows(picks, src, out, writes, row);
  const Ints sizes = without(index.sizes, dim), pick_strides = without(index.strides, dim),
             source_strides = without(source.strides, dim), target_strides = without(target.strides, dim);
  const int64_t length = index.sizes[dim], pick_step = index.strides[dim], from_step = source.strides[dim],
                element = out.element_size();
  const auto* from = static_cast<const std::byte*>(src.raw_data());
  auto* to = static_cast<std::byte*>(out.raw_data());
  parallel_for(index.count / length, std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t line_pick = offset_of(line, sizes, pick_strides);
      const std::byte* line_from = from + offset_of(line, sizes, source_strides) * element;
      std::byte* line_to = to + offset_of(line, sizes, target_strides) * element;
      picks.write(writes, line_pick, pick_step, length, line_from, from_step, line_to, 0);
    }
  });
}

void write_all(const TensorBase& self, int64_t dim, const TensorBase& index, const TensorBase& src, bool adds,
               const TensorBase& out) {
  auto along = static_cast<size_t>(dim);
  TENON_ASSERT(along < Strided(out).sizes.size(), "dimension {} of {}", dim, out.description());
  write_into(self, src, adds, out, [&](const TensorBase& to, const TensorBase& from) {
    const Picks picks(index, Strided(to), along, adds ? "scatter_add" : "scatter");
    write_lines(picks, from, to, adds ? adding_writes(to.dtype()) : replacing_writes(to.dtype()));
  });
}

}  // namespace

void scatter_add(const TensorBase& self, int64_t dim, const TensorBase& index, const TensorBase& src,
                 const TensorBase& out) {
  write_all(self, dim, index, src, true, out);
}

void scatter(const TensorBase& self, int64_t dim, const TensorBase& index, const TensorBase& src,
             const TensorBase& out) {
  write_all(self, dim, index, src, false, out);
}

}  // namespace tenon::kernels
