#include <tenon/kernels/cumulative.h>

#include <algorithm>

#include "kernels/strided.h"

namespace tenon::kernels {
namespace {

template <typename T>
struct SumOf {
  using type = decltype(widen(T()));
};

template <typename From, typename To>
void sum_lines(const TensorBase& self, size_t dim, const TensorBase& out) {
  using Sum = typename SumOf<To>::type;
  Strided source(self), target(out);
  if (source.count == 0) return;
  Ints sizes = without(source.sizes, dim), from_strides = without(source.strides, dim),
       to_strides = without(target.strides, dim);
  int64_t length = source.sizes[dim], from_step = source.strides[dim], to_step = target.strides[dim];
  const From* from = self.data<From>();
  To* to = out.data<To>();
  parallel_for(source.count / length, std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const From* in = from + offset_of(line, sizes, from_strides);
      To* place = to + offset_of(line, sizes, to_strides);
      Sum total = 0;
      for (int64_t i = 0; i < length; ++i) {
        add_to(total, static_cast<Sum>(widen(in[i * from_step])));
        place[i * to_step] = narrow<To>(total);
      }
    }
  });
}

}  // namespace

void cumulative_sum(const TensorBase& self, int64_t dim, const TensorBase& out) {
  with_element_type(self.dtype(), [&]<typename From>() {
    with_element_type(out.dtype(), [&]<typename To>() {
      if constexpr (!std::is_same_v<To, bool>) sum_lines<From, To>(self, static_cast<size_t>(dim), out);
    });
  });
}

}  // namespace tenon::kernels
