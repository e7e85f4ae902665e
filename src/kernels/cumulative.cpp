#include <tenon/kernels/cumulative.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/strided.h"

namespace tenon::kernels {
namespace {

template <typename T>
struct SumOf {
  using type = decltype(widen(T()));
};

// `step(total, element)` gives the next total.
template <typename From, typename To, typename Step>
void run_lines(const TensorBase& self, size_t dim, const TensorBase& out, typename SumOf<To>::type first, Step step) {
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
      Sum total = first;
      for (int64_t i = 0; i < length; ++i) {
        step(total, static_cast<Sum>(widen(in[i * from_step])));
        place[i * to_step] = narrow<To>(total);
      }
    }
  });
}

// The same for any two dtypes, of which the second has numbers.
template <typename Step>
void run_numbers(const TensorBase& self, int64_t dim, const TensorBase& out, int first, Step step) {
  with_element_type(self.dtype(), [&]<typename From>() {
    with_element_type(out.dtype(), [&]<typename To>() {
      if constexpr (!std::is_same_v<To, bool>)
        run_lines<From, To>(self, static_cast<size_t>(dim), out, static_cast<typename SumOf<To>::type>(first), step);
    });
  });
}

// Integers wrap.
template <typename T>
void multiply_by(T& total, T element) {
  if constexpr (std::is_integral_v<T>)
    total = static_cast<T>(static_cast<uint64_t>(total) * static_cast<uint64_t>(element));
  else
    total *= element;
}

// total = log(exp(total) + exp(element)), without an exponential that overflows.
template <typename T>
void add_exponential(T& total, T element) {
  T larger = std::max(total, element), smaller = std::min(total, element);
  if (std::isnan(total) || std::isnan(element))
    total = std::numeric_limits<T>::quiet_NaN();
  else if (std::isfinite(larger) && std::isfinite(smaller))
    total = larger + std::log1p(std::exp(smaller - larger));
  else
    total = larger;
}

}  // namespace

void cumulative_sum(const TensorBase& self, int64_t dim, const TensorBase& out) {
  run_numbers(self, dim, out, 0, [](auto& total, auto element) { add_to(total, element); });
}

void cumulative_product(const TensorBase& self, int64_t dim, const TensorBase& out) {
  run_numbers(self, dim, out, 1, [](auto& total, auto element) { multiply_by(total, element); });
}

void cumulative_log_sum_exp(const TensorBase& self, int64_t dim, const TensorBase& out) {
  with_element_type(self.dtype(), [&]<typename T>() {
    using Sum = typename SumOf<T>::type;
    if constexpr (std::is_floating_point_v<Sum>)
      run_lines<T, T>(self, static_cast<size_t>(dim), out, -std::numeric_limits<Sum>::infinity(),
                      [](auto& total, auto element) { add_exponential(total, element); });
  });
}

}  // namespace tenon::kernels
