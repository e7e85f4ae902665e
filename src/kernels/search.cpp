#include <tenon/kernels/search.h>

#include "kernels/strided.h"

namespace tenon::kernels {
namespace {

// One sequence, in its own order or in that of a sorter.
template <typename T>
struct Sequence {
  const T* elements;
  int64_t step, length;
  const int64_t* order = nullptr;
  int64_t order_step = 0;

  T at(int64_t place) const {
    if (order == nullptr) return elements[place * step];
    int64_t index = order[place * order_step];
    TENON_CHECK_INDEX(index >= 0 && index < length, "[searchsorted] the sorter has the index {}, of {} elements", index,
                      length);
    return elements[index * step];
  }
};

template <typename Wide>
bool less(Wide a, Wide b) {
  return is_nan(a) ? false : is_nan(b) || a < b;
}

template <typename T, typename V>
int64_t place_of(const Sequence<T>& sequence, V value, bool right) {
  // Of integers and real numbers the real ones decide.
  using A = decltype(widen(T()));
  using Wide = std::conditional_t<std::is_integral_v<A> && std::is_integral_v<V>, int64_t, double>;
  auto wanted = static_cast<Wide>(value);
  int64_t low = 0, high = sequence.length;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    auto element = static_cast<Wide>(widen(sequence.at(middle)));
    bool before = right ? !less(wanted, element) : less(element, wanted);
    (before ? low : high) = before ? middle + 1 : middle;
  }
  return low;
}

template <typename T, typename V>
void search(const TensorBase& sorted, const TensorBase& values, bool right, const TensorBase* sorter,
            const TensorBase& out) {
  Strided source(values), target(out), lines(sorted);
  size_t last = lines.sizes.size() - 1;
  bool single = lines.sizes.size() == 1;
  Ints line_sizes = without(lines.sizes, last), line_strides = without(lines.strides, last);
  Strided order(sorter != nullptr ? *sorter : sorted);
  Ints order_strides = without(order.strides, last);
  int64_t width = source.sizes.back();
  const V* from = values.data<V>();
  parallel_for(target.count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      int64_t line = single ? 0 : at / width;
      Sequence<T> sequence{sorted.data<T>() + (single ? 0 : offset_of(line, line_sizes, line_strides)),
                           lines.strides[last], lines.sizes[last]};
      if (sorter != nullptr) {
        sequence.order = sorter->data<int64_t>() + (single ? 0 : offset_of(line, line_sizes, order_strides));
        sequence.order_step = order.strides[last];
      }
      int64_t place = place_of(sequence, widen(from[offset_of(at, source.sizes, source.strides)]), right);
      int64_t where = offset_of(at, target.sizes, target.strides);
      if (out.dtype() == Dtype::Int32)
        out.data<int32_t>()[where] = static_cast<int32_t>(place);
      else
        out.data<int64_t>()[where] = place;
    }
  });
}

}  // namespace

void search_sorted(const TensorBase& sorted, const TensorBase& values, bool right, const TensorBase* sorter,
                   const TensorBase& out) {
  with_element_type(sorted.dtype(), [&]<typename T>() {
    with_element_type(values.dtype(), [&]<typename V>() { search<T, V>(sorted, values, right, sorter, out); });
  });
}

}  // namespace tenon::kernels
