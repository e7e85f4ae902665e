#include <tenon/kernels/cumulative.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/wide_lines.h"

namespace tenon::kernels {
namespace {

// `step(total, element)` gives the next total.
template <typename Sum, typename Step>
void run_lines(const TensorBase& self, size_t dim, const TensorBase& out, Sum first, Step step) {
  const Strided source(self), target(out);
  if (source.count == 0) return;
  const Ints sizes = without(source.sizes, dim), from_strides = without(source.strides, dim),
             to_strides = without(target.strides, dim);
  const int64_t length = source.sizes[dim], from_step = source.strides[dim], to_step = target.strides[dim];
  const bool is_wide = out.dtype() == kDtypeOf<Sum>;
  parallel_for(source.count / length, std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
    Sum read[kStretch], totals[kStretch];
    for (int64_t line = begin; line < end; ++line) {
      const int64_t from = offset_of(line, sizes, from_strides), to = offset_of(line, sizes, to_strides);
      Sum total = first;
      for (int64_t done = 0, count; done < length; done += count) {
        count = std::min(length - done, kStretch);
        const auto elements = wide_elements({self, from + done * from_step, from_step, count}, read, out.dtype());
        const Stretch place{out, to + done * to_step, to_step, count};
        Sum* results = is_wide ? out.data<Sum>() + place.offset : totals;
        const int64_t result_step = is_wide ? to_step : 1;
        for (int64_t at = 0; at < count; ++at) {
          step(total, elements[at]);
          results[at * result_step] = total;
        }
        if (!is_wide) write_line(totals, place);
      }
    }
  });
}

// For a result of numbers of any dtype.
template <typename Step>
void run_numbers(const TensorBase& self, int64_t dim, const TensorBase& out, int first, Step step) {
  with_wide_type(out.dtype(), [&]<typename Sum>() {
    run_lines(self, static_cast<size_t>(dim), out, static_cast<Sum>(first), step);
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
  with_wide_type(self.dtype(), [&]<typename Sum>() {
    if constexpr (std::is_floating_point_v<Sum>)
      run_lines(self, static_cast<size_t>(dim), out, -std::numeric_limits<Sum>::infinity(),
                [](auto& total, auto element) { add_exponential(total, element); });
  });
}

}  // namespace tenon::kernels
