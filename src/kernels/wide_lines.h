// Lines of elements in a wide type, so that a kernel is written for three types and not for ten, or for the hundred
// pairs of them: elements of any dtype are read as int64_t, float or double, a stretch at a time, worked on, and
// written back, by one small routine for each dtype and wide type. Where the memory holds the wide type already,
// nothing is copied.
//
// Conversions are those of compiled kernels: reals become integers towards zero, at the ends of int32 (of int64 for
// int64) at most, integers wrap, what is not 0 is true. Float64 becomes a half in one rounding.
#pragma once

#include "kernels/strided.h"

namespace tenon::kernels {

// Calls `body.template operator()<Wide>()` with the type that elements of `dtype` are worked on in: float64 and float32
// in themselves, halves in float32, bools and integers in int64_t, whose sums and products wrap to the same bits.
template <typename Body>
decltype(auto) with_wide_type(Dtype dtype, Body&& body) {
  if (dtype == Dtype::Float64) return body.template operator()<double>();
  if (is_floating(dtype)) return body.template operator()<float>();
  return body.template operator()<int64_t>();
}

template <typename Wide>
constexpr Dtype kDtypeOf = std::is_same_v<Wide, double>  ? Dtype::Float64
                           : std::is_same_v<Wide, float> ? Dtype::Float32
                                                         : Dtype::Int64;

// `count` elements that lie `step` apart, the first at `offset`; all in elements of the tensor.
struct Stretch {
  const TensorBase& tensor;
  int64_t offset, step, count;
};

// For int64_t, float and double. Of reals as int64_t it is said what they become once they are written to `target`.
template <typename Wide>
void read_line(const Stretch& from, Wide* to, Dtype target = kDtypeOf<Wide>);
template <typename Wide>
void write_line(const Wide* from, const Stretch& to);

constexpr int64_t kStretch = 256;  // elements that are read at once: two or three such lie in the fastest cache

// Elements of the wide type to be read: the tensor's own, or copies of them in `room`.
template <typename Wide>
struct WideElements {
  const Wide* first;
  int64_t step;
  const Wide& operator[](int64_t at) const { return first[at * step]; }
};

template <typename Wide>
WideElements<Wide> wide_elements(const Stretch& from, Wide* room, Dtype target = kDtypeOf<Wide>) {
  if (from.tensor.dtype() == kDtypeOf<Wide>) return {from.tensor.data<Wide>() + from.offset, from.step};
  read_line(from, room, target);
  return {room, 1};
}

// Calls visit(position of the first, count) for the stretches of [begin, end), row-major positions of a tensor of
// `sizes`, that lie in one line of its last dimension.
template <typename Visit>
void for_each_stretch(const Ints& sizes, int64_t begin, int64_t end, Visit&& visit) {
  const int64_t length = sizes.back();
  for (int64_t count; begin < end; begin += count) {
    count = std::min({end - begin, length - begin % length, kStretch});
    visit(begin, count);
  }
}

// Both have the same sizes; every element is converted.
void copy_elements(const TensorBase& from, const TensorBase& to);

}  // namespace tenon::kernels
