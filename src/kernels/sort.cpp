#include <tenon/kernels/sort.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/wide_lines.h"

namespace tenon::kernels {
namespace {

// Whether `a` stands before `b`; equal ones by their places, so that any method gives the stable order.
template <typename T>
struct Before {
  const T* elements;
  bool descending;
  bool operator()(int64_t a, int64_t b) const {
    T x = elements[a], y = elements[b];
    bool x_nan = is_nan(x), y_nan = is_nan(y);
    if (x_nan != y_nan) return descending ? x_nan : y_nan;
    if (!x_nan && x != y) return descending ? y < x : x < y;
    return a < b;
  }
};

template <typename Wide>
void sort_lines(const TensorBase& self, size_t dim, bool descending, const TensorBase& values,
                const TensorBase& indices) {
  Strided source(self), target(values), places(indices);
  int64_t length = source.sizes[dim], kept = target.sizes[dim];
  if (target.count == 0) return;
  Ints sizes = without(source.sizes, dim), from_strides = without(source.strides, dim),
       to_strides = without(target.strides, dim), place_strides = without(places.strides, dim);
  auto* place = indices.data<int64_t>();
  parallel_for(source.count / length, std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
    const auto elements = std::make_unique<Wide[]>(static_cast<size_t>(length)),
               sorted = std::make_unique<Wide[]>(static_cast<size_t>(kept));
    std::vector<int64_t> order(static_cast<size_t>(length));
    Before<Wide> before{elements.get(), descending};
    for (int64_t line = begin; line < end; ++line) {
      read_line({self, offset_of(line, sizes, from_strides), source.strides[dim], length}, elements.get());
      std::iota(order.begin(), order.end(), 0);
      if (kept < length)
        std::partial_sort(order.begin(), order.begin() + kept, order.end(), before);
      else
        std::sort(order.begin(), order.end(), before);
      int64_t* out_place = place + offset_of(line, sizes, place_strides);
      for (int64_t i = 0; i < kept; ++i) {
        out_place[i * places.strides[dim]] = order[static_cast<size_t>(i)];
        sorted[static_cast<size_t>(i)] = elements[static_cast<size_t>(order[static_cast<size_t>(i)])];
      }
      write_line(sorted.get(), {values, offset_of(line, sizes, to_strides), target.strides[dim], kept});
    }
  });
}

}  // namespace

void sort(const TensorBase& self, int64_t dim, bool descending, const TensorBase& values, const TensorBase& indices) {
  with_wide_type(self.dtype(), [&]<typename Wide>() {
    sort_lines<Wide>(self, static_cast<size_t>(dim), descending, values, indices);
  });
}

}  // namespace tenon::kernels
