#include <tenon/kernels/search.h>

#include "kernels/wide_lines.h"

namespace tenon::kernels {
namespace {

// One sequence, in its own order or in that of a sorter.
struct Line {
  int64_t step, length;
  const int64_t* order = nullptr;
  int64_t order_step = 0;

  int64_t place(int64_t at) const {
    if (order == nullptr) return at * step;
    int64_t index = order[at * order_step];
    TENON_CHECK_INDEX(index >= 0 && index < length, "[searchsorted] the sorter has the index {}, of {} elements", index,
                      length);
    return index * step;
  }
};

template <typename Wide>
bool less(Wide a, Wide b) {
  return is_nan(a) ? false : is_nan(b) || a < b;
}

// Where `value` belongs in a sequence of T; of integers and real numbers the real ones decide.
template <typename T, typename Wide>
int64_t place_of(const void* elements, const Line& line, Wide wanted, bool right) {
  const auto* sequence = static_cast<const T*>(elements);
  int64_t low = 0, high = line.length;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    auto element = static_cast<Wide>(widen(sequence[line.place(middle)]));
    bool before = right ? !less(wanted, element) : less(element, wanted);
    (before ? low : high) = before ? middle + 1 : middle;
  }
  return low;
}

template <typename Wide>
void search(const TensorBase& sorted, const TensorBase& values, bool right, const TensorBase* sorter,
            const TensorBase& out) {
  const Strided source(values), target(out), lines(sorted), order(sorter != nullptr ? *sorter : sorted);
  const size_t last = lines.sizes.size() - 1;
  const bool single = lines.sizes.size() == 1;
  const Ints line_sizes = without(lines.sizes, last), line_strides = without(lines.strides, last),
             order_strides = without(order.strides, last);
  const int64_t width = source.sizes.back(), size = sorted.element_size();
  const auto* elements = static_cast<const std::byte*>(sorted.raw_data());
  const auto place = with_element_type(sorted.dtype(), []<typename T>() { return &place_of<T, Wide>; });
  parallel_for(target.count, kGrain, [&](int64_t begin, int64_t end) {
    Wide read[kStretch];
    int64_t places[kStretch];
    for_each_stretch(source.sizes, begin, end, [&](int64_t first, int64_t count) {
      const auto wanted =
          wide_elements({values, offset_of(first, source.sizes, source.strides), source.strides.back(), count}, read);
      const int64_t line = single ? 0 : first / width;
      Line sequence{lines.strides[last], lines.sizes[last]};
      if (sorter != nullptr) {
        sequence.order = sorter->data<int64_t>() + (single ? 0 : offset_of(line, line_sizes, order_strides));
        sequence.order_step = order.strides[last];
      }
      const std::byte* start = elements + (single ? 0 : offset_of(line, line_sizes, line_strides)) * size;
      for (int64_t at = 0; at < count; ++at) places[at] = place(start, sequence, wanted[at], right);
      write_line(places, {out, offset_of(first, target.sizes, target.strides), target.strides.back(), count});
    });
  });
}

}  // namespace

void search_sorted(const TensorBase& sorted, const TensorBase& values, bool right, const TensorBase* sorter,
                   const TensorBase& out) {
  const bool real = is_floating(sorted.dtype()) || is_floating(values.dtype());
  (real ? search<double> : search<int64_t>)(sorted, values, right, sorter, out);
}

}  // namespace tenon::kernels
