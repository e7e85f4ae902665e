#include <tenon/kernels/order.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/strided.h"

namespace tenon::kernels {
namespace {

// Both tensors' lines along `dim`, each by its first element and its step.
template <typename Work>
void for_each_line(const TensorBase& self, int64_t dim, const TensorBase& values, const TensorBase& indices,
                   Work&& work) {
  const Strided from(self), to(values), places(indices);
  const auto at = static_cast<size_t>(dim);
  const int64_t length = from.sizes[at];
  if (from.count == 0 || length == 0) return;
  const Ints sizes = without(from.sizes, at), from_strides = without(from.strides, at),
             to_strides = without(to.strides, at), place_strides = without(places.strides, at);
  parallel_for(from.count / length, std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line)
      work(offset_of(line, sizes, from_strides), offset_of(line, sizes, to_strides),
           offset_of(line, sizes, place_strides), length, from.strides[at], to.strides[at], places.strides[at]);
  });
}

}  // namespace

void running_extremum(const TensorBase& self, int64_t dim, bool largest, const TensorBase& values,
                      const TensorBase& indices) {
  with_element_type(self.dtype(), [&]<typename T>() {
    for_each_line(self, dim, values, indices,
                  [&](int64_t from, int64_t to, int64_t place, int64_t length, int64_t step, int64_t to_step,
                      int64_t place_step) {
                    const T* source = self.data<T>() + from;
                    T* value = values.data<T>() + to;
                    auto* index = indices.data<int64_t>() + place;
                    int64_t best = 0;
                    for (int64_t at = 0; at < length; ++at) {
                      const auto held = widen(source[best * step]), here = widen(source[at * step]);
                      if (is_nan(here) || (!is_nan(held) && (largest ? here >= held : here <= held))) best = at;
                      value[at * to_step] = source[best * step];
                      index[at * place_step] = best;
                    }
                  });
  });
}

void mode(const TensorBase& self, int64_t dim, const TensorBase& values, const TensorBase& indices) {
  with_element_type(self.dtype(), [&]<typename T>() {
    for_each_line(self, dim, values, indices,
                  [&](int64_t from, int64_t to, int64_t place, int64_t length, int64_t step, int64_t, int64_t) {
                    const T* source = self.data<T>() + from;
                    std::vector<int64_t> order(static_cast<size_t>(length));
                    std::iota(order.begin(), order.end(), int64_t{0});
                    auto less = [&](int64_t a, int64_t b) {
                      const auto x = widen(source[a * step]), y = widen(source[b * step]);
                      return is_nan(y) ? !is_nan(x) : x < y;
                    };
                    std::stable_sort(order.begin(), order.end(), less);
                    size_t most = 0, best = 0;
                    for (size_t begin = 0, end; begin < order.size(); begin = end) {
                      for (end = begin + 1; end < order.size() && !less(order[begin], order[end]);) ++end;
                      if (end - begin > most) most = end - begin, best = end - 1;
                    }
                    values.data<T>()[to] = source[order[best] * step];
                    indices.data<int64_t>()[place] = order[best];
                  });
  });
}

void common_divisor(const TensorBase& a, const TensorBase& b, bool multiple, const TensorBase& out) {
  const Strided first(a), second(b), to(out);
  auto step_of = [&](const Strided& of, size_t dim) {
    const size_t missing = to.sizes.size() - of.sizes.size();
    return dim < missing || of.sizes[dim - missing] == 1 ? 0 : of.strides[dim - missing];
  };
  Ints first_strides, second_strides;
  for (size_t dim = 0; dim < to.sizes.size(); ++dim) {
    first_strides.push_back(step_of(first, dim));
    second_strides.push_back(step_of(second, dim));
  }
  with_element_type(out.dtype(), [&]<typename T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      parallel_for(to.count, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; ++at) {
          auto magnitude = [](T value) {  // the smallest number has no opposite of its own dtype
            const auto wide = static_cast<uint64_t>(static_cast<int64_t>(value));
            return static_cast<int64_t>(value) < 0 ? ~wide + 1 : wide;
          };
          const uint64_t x = magnitude(a.data<T>()[offset_of(at, to.sizes, first_strides)]),
                         y = magnitude(b.data<T>()[offset_of(at, to.sizes, second_strides)]);
          const uint64_t divisor = std::gcd(x, y);
          const uint64_t result = !multiple ? divisor : divisor == 0 ? 0 : x / divisor * y;
          out.data<T>()[offset_of(at, to.sizes, to.strides)] = static_cast<T>(result);
        }
      });
  });
}

void split_exponent(const TensorBase& self, const TensorBase& mantissa, const TensorBase& exponent) {
  const Strided from(self), to(mantissa), powers(exponent);
  with_element_type(self.dtype(), [&]<typename T>() {
    parallel_for(from.count, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        int power = 0;
        const double rest =
            std::frexp(static_cast<double>(widen(self.data<T>()[offset_of(at, from.sizes, from.strides)])), &power);
        mantissa.data<T>()[offset_of(at, to.sizes, to.strides)] = narrow<T>(static_cast<decltype(widen(T()))>(rest));
        exponent.data<int32_t>()[offset_of(at, powers.sizes, powers.strides)] = power;
      }
    });
  });
}

void count_numbers(const TensorBase& self, const TensorBase* weights, const TensorBase& out) {
  const Strided from(self);
  const int64_t step = from.strides[0], weight_step = weights ? Strided(*weights).strides[0] : 0,
                out_step = Strided(out).strides[0];
  with_element_type(self.dtype(), [&]<typename T>() {
    if constexpr (std::is_integral_v<T>)
      for (int64_t at = 0; at < from.count; ++at) {
        const int64_t place = static_cast<int64_t>(self.data<T>()[at * step]) * out_step;
        if (!weights)
          ++out.data<int64_t>()[place];
        else if (out.dtype() == kFloat32)
          out.data<float>()[place] += weights->data<float>()[at * weight_step];
        else
          out.data<double>()[place] += weights->data<double>()[at * weight_step];
      }
  });
}

}  // namespace tenon::kernels
