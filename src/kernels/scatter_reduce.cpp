#include <tenon/kernels/scatter.h>

#include <limits>

#include "kernels/element_writes.h"

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

// What is written along one line of the target, whose elements are numbered by `places`.
template <typename T>
struct Line {
  T* out;
  const T* from;
  int64_t from_step;

  void combine(Combine how, const int64_t* places, int64_t count) const {
    for (int64_t at = 0; at < count; ++at) combine_with(out[places[at]], from[at * from_step], how);
  }
  void forget(Combine how, const int64_t* places, int64_t count) const {
    for (int64_t at = 0; at < count; ++at) out[places[at]] = neutral<T>(how);
  }
  void divide(const std::vector<int64_t>& counts, int64_t step) const {
    for (size_t place = 0; place < counts.size(); ++place) {
      T& total = out[static_cast<int64_t>(place) * step];
      if (counts[place] > 1) total = divided(total, counts[place]);
    }
  }
};

// Each line along the dimension is one thread's.
template <typename T>
void write_lines(const Picks& picks, const TensorBase& src, Combine how, bool include_self, const TensorBase& out) {
  const Strided index(picks.index), source(src), target(out);
  if (index.count == 0) return;
  const size_t dim = picks.dim;
  const Ints sizes = without(index.sizes, dim), pick_strides = without(index.strides, dim),
             source_strides = without(source.strides, dim), target_strides = without(target.strides, dim);
  const int64_t length = index.sizes[dim];
  parallel_for(index.count / length, std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
    std::vector<int64_t> counts, places(static_cast<size_t>(length));
    for (int64_t line = begin; line < end; ++line) {
      const Line<T> one{out.data<T>() + offset_of(line, sizes, target_strides),
                        src.data<T>() + offset_of(line, sizes, source_strides), source.strides[dim]};
      const int64_t first = offset_of(line, sizes, pick_strides);
      for (int64_t at = 0; at < length; ++at)
        places[static_cast<size_t>(at)] = picks.at(first + at * index.strides[dim]) * picks.stride;
      if (!include_self) one.forget(how, places.data(), length);
      one.combine(how, places.data(), length);
      if (how != Combine::Mean) continue;
      counts.assign(static_cast<size_t>(picks.reach), include_self ? 1 : 0);
      for (int64_t place : places) ++counts[static_cast<size_t>(picks.stride == 0 ? 0 : place / picks.stride)];
      one.divide(counts, picks.stride);
    }
  });
}

}  // namespace

void scatter_reduce(const TensorBase& self, int64_t dim, const TensorBase& index, const TensorBase& src,
                    Combine combine, bool include_self, const TensorBase& out) {
  auto along = static_cast<size_t>(dim);
  write_into(self, src, true, out, [&](const TensorBase& to, const TensorBase& from) {
    const Picks picks(index, Strided(to), along, "scatter_reduce");
    with_element_type(to.dtype(), [&]<typename T>() {
      if constexpr (std::is_arithmetic_v<T>) write_lines<T>(picks, from, combine, include_self, to);
    });
  });
}

}  // namespace tenon::kernels
