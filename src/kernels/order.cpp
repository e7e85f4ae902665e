#include <tenon/kernels/order.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/wide_lines.h"

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
  with_wide_type(self.dtype(), [&]<typename Wide>() {
    for_each_line(self, dim, values, indices,
                  [&](int64_t from, int64_t to, int64_t place, int64_t length, int64_t step, int64_t to_step,
                      int64_t place_step) {
                    Wide room[kStretch], extrema[kStretch], held{};
                    auto* index = indices.data<int64_t>() + place;
                    int64_t best = 0;
                    for (int64_t done = 0, count; done < length; done += count) {
                      count = std::min(length - done, kStretch);
                      const auto elements = wide_elements({self, from + done * step, step, count}, room);
                      if (done == 0) held = elements[0];
                      for (int64_t at = 0; at < count; ++at) {
                        const Wide here = elements[at];
                        if (is_nan(here) || (!is_nan(held) && (largest ? here >= held : here <= held)))
                          best = done + at, held = here;
                        extrema[at] = held;
                        index[(done + at) * place_step] = best;
                      }
                      write_line(extrema, {values, to + done * to_step, to_step, count});
                    }
                  });
  });
}

void mode(const TensorBase& self, int64_t dim, const TensorBase& values, const TensorBase& indices) {
  with_wide_type(self.dtype(), [&]<typename Wide>() {
    for_each_line(self, dim, values, indices,
                  [&](int64_t from, int64_t to, int64_t place, int64_t length, int64_t step, int64_t, int64_t) {
                    const auto elements = std::make_unique<Wide[]>(static_cast<size_t>(length));
                    read_line({self, from, step, length}, elements.get());
                    std::vector<int64_t> order(static_cast<size_t>(length));
                    std::iota(order.begin(), order.end(), int64_t{0});
                    auto less = [&](int64_t a, int64_t b) {
                      const Wide x = elements[static_cast<size_t>(a)], y = elements[static_cast<size_t>(b)];
                      return is_nan(y) ? !is_nan(x) : x < y;
                    };
                    std::stable_sort(order.begin(), order.end(), less);
                    size_t most = 0, best = 0;
                    for (size_t begin = 0, end; begin < order.size(); begin = end) {
                      for (end = begin + 1; end < order.size() && !less(order[begin], order[end]);) ++end;
                      if (end - begin > most) most = end - begin, best = end - 1;
                    }
                    write_line(&elements[static_cast<size_t>(order[best])], {values, to, 1, 1});
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
  parallel_for(to.count, kGrain, [&](int64_t begin, int64_t end) {
    int64_t left[kStretch], right[kStretch];
    auto magnitude = [](int64_t value) {  // the smallest number has no opposite of its own dtype
      const auto wide = static_cast<uint64_t>(value);
      return value < 0 ? ~wide + 1 : wide;
    };
    for_each_stretch(to.sizes, begin, end, [&](int64_t at, int64_t count) {
      const auto xs = wide_elements({a, offset_of(at, to.sizes, first_strides), first_strides.back(), count}, left),
                 ys = wide_elements({b, offset_of(at, to.sizes, second_strides), second_strides.back(), count}, right);
      for (int64_t each = 0; each < count; ++each) {
        const uint64_t x = magnitude(xs[each]), y = magnitude(ys[each]), divisor = std::gcd(x, y);
        left[each] = static_cast<int64_t>(!multiple ? divisor : divisor == 0 ? 0 : x / divisor * y);
      }
      write_line(left, {out, offset_of(at, to.sizes, to.strides), to.strides.back(), count});
    });
  });
}

void split_exponent(const TensorBase& self, const TensorBase& mantissa, const TensorBase& exponent) {
  const Strided from(self), to(mantissa), powers(exponent);
  parallel_for(from.count, kGrain, [&](int64_t begin, int64_t end) {
    double numbers[kStretch];
    for_each_stretch(from.sizes, begin, end, [&](int64_t at, int64_t count) {
      read_line({self, offset_of(at, from.sizes, from.strides), from.strides.back(), count}, numbers);
      int32_t* power = exponent.data<int32_t>() + offset_of(at, powers.sizes, powers.strides);
      for (int64_t each = 0; each < count; ++each) {
        int whole = 0;
        numbers[each] = std::frexp(numbers[each], &whole);
        power[each * powers.strides.back()] = whole;
      }
      write_line(numbers, {mantissa, offset_of(at, to.sizes, to.strides), to.strides.back(), count});
    });
  });
}

void count_numbers(const TensorBase& self, const TensorBase* weights, const TensorBase& out) {
  const Strided from(self);
  const int64_t step = from.strides[0], weight_step = weights ? Strided(*weights).strides[0] : 0,
                out_step = Strided(out).strides[0];
  int64_t room[kStretch];
  for_each_stretch(from.sizes, 0, from.count, [&](int64_t first, int64_t count) {
    const auto numbers = wide_elements({self, first * step, step, count}, room);
    for (int64_t each = 0; each < count; ++each) {
      const int64_t place = numbers[each] * out_step, at = first + each;
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
