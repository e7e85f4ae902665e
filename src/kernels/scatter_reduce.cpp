#include <tenon/kernels/scatter.h>

#include <limits>

#include "kernels/strided.h"

namespace tenon::kernels {
namespace {

template <typename T>
T multiplied(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a && b;
  else if constexpr (std::is_integral_v<T>)  // wraps around
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

template <typename T>
void combine_with(T& place, T value, Combine combine) {
  switch (combine) {
    case Combine::Sum:
    case Combine::Mean: return add_to(place, value);
    case Combine::Product: place = multiplied(place, value); return;
    case Combine::Largest:
      if (value > place || is_nan(value)) place = value;
      return;
    case Combine::Smallest:
      if (value < place || is_nan(value)) place = value;
      return;
  }
}

// What changes nothing that it is combined with.
template <typename T>
T neutral(Combine combine) {
  using Limits = std::numeric_limits<T>;
  switch (combine) {
    case Combine::Sum:
    case Combine::Mean: return T(0);
    case Combine::Product: return T(1);
    case Combine::Largest: return Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
    case Combine::Smallest: return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  return T(0);
}

template <typename T>
T divided(T total, int64_t count) {
  if constexpr (std::is_floating_point_v<T>) return total / static_cast<T>(count);
  const auto wide = static_cast<int64_t>(total);
  const int64_t quotient = wide / count;
  return static_cast<T>(wide % count < 0 ? quotient - 1 : quotient);
}

// One line of the target, of `reach` elements, and of what is written to it.
template <typename T, typename Index, typename Source>
struct Line {
  T* out;
  int64_t out_step, reach;
  const Index* pick;
  int64_t pick_step;
  const Source* from;
  int64_t from_step, length;

  int64_t at(int64_t i) const {
    int64_t place = pick[i * pick_step];
    TENON_CHECK(place >= 0 && place < reach, "[scatter_reduce] index {} is out of range for a dimension of size {}",
                place, reach);
    return place;
  }
  void write(Combine combine, bool include_self, std::vector<int64_t>& counts) const {
    if (!include_self)
      for (int64_t i = 0; i < length; ++i) out[at(i) * out_step] = neutral<T>(combine);
    if (combine == Combine::Mean) counts.assign(static_cast<size_t>(reach), include_self ? 1 : 0);
    for (int64_t i = 0; i < length; ++i) {
      int64_t place = at(i);
      combine_with(out[place * out_step], static_cast<T>(widen(from[i * from_step])), combine);
      if (combine == Combine::Mean) ++counts[static_cast<size_t>(place)];
    }
    if (combine != Combine::Mean) return;
    for (int64_t place = 0; place < reach; ++place)
      if (int64_t count = counts[static_cast<size_t>(place)]; count > 1)
        out[place * out_step] = divided(out[place * out_step], count);
  }
};

// Each line along `dim` is one thread's.
template <typename T, typename Index, typename Source>
void write_lines(const TensorBase& index, const TensorBase& src, T* out, const Strided& target, size_t dim,
                 Combine combine, bool include_self) {
  Strided picks(index), source(src);
  if (picks.count == 0) return;
  const Index* pick = index.data<Index>();
  const Source* from = src.data<Source>();
  const Ints sizes = without(picks.sizes, dim), pick_strides = without(picks.strides, dim),
             source_strides = without(source.strides, dim), target_strides = without(target.strides, dim);
  const int64_t length = picks.sizes[dim];
  parallel_for(picks.count / length, std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
    std::vector<int64_t> counts;
    for (int64_t line = begin; line < end; ++line)
      Line<T, Index, Source>{out + offset_of(line, sizes, target_strides),
                             target.strides[dim],
                             target.sizes[dim],
                             pick + offset_of(line, sizes, pick_strides),
                             picks.strides[dim],
                             from + offset_of(line, sizes, source_strides),
                             source.strides[dim],
                             length}
          .write(combine, include_self, counts);
  });
}

}  // namespace

void scatter_reduce(const TensorBase& self, int64_t dim, const TensorBase& index, const TensorBase& src,
                    Combine combine, bool include_self, const TensorBase& out) {
  Strided target(out);
  auto along = static_cast<size_t>(dim);
  with_element_type(out.dtype(), [&]<typename T>() {
    auto lines = [&](auto* places, const Strided& where) {
      using Wide = std::remove_pointer_t<decltype(places)>;
      if (index.dtype() == kInt32)
        write_lines<Wide, int32_t, T>(index, src, places, where, along, combine, include_self);
      else
        write_lines<Wide, int64_t, T>(index, src, places, where, along, combine, include_self);
    };
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      TensorBase wide = core::allocate_base(out.sizes(), core::contiguous_strides(out.sizes()), kFloat32, kCPU);
      Strided place(wide);
      copy_elements(self.data<T>(), Strided(self), wide.data<float>(), place);
      lines(wide.data<float>(), place);
      copy_elements(wide.data<float>(), place, out.data<T>(), target);
    } else {
      copy_elements(self.data<T>(), Strided(self), out.data<T>(), target);
      lines(out.data<T>(), target);
    }
  });
}

}  // namespace tenon::kernels
