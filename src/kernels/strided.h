// Strided tensors in kernels: lines along a dimension, copies, additions that wrap.
#pragma once

#include <tenon/support/parallel.h>

#include <cmath>

#include "kernels/elements.h"

namespace tenon::kernels {

constexpr int64_t kGrain = 4096;  // elements that are worth a thread

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

// A tensor of at least one dimension; a number is a list of one.
struct Strided {
  Ints sizes, strides;
  int64_t count = 1;
  explicit Strided(const TensorBase& tensor) : sizes(tensor.sizes()), strides(tensor.strides()) {
    if (sizes.empty()) {
      sizes.push_back(1);
      strides.push_back(0);
    }
    for (int64_t size : sizes) count *= size;
  }
};

// The list without position `dim`: what is left to walk over lines along it.
inline Ints without(const Ints& list, size_t dim) {
  Ints kept = list;
  kept.erase(kept.begin() + dim);
  return kept;
}

template <typename From, typename To>
void copy_elements(const From* from, const Strided& source, To* to, const Strided& target) {
  parallel_for(target.count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at)
      to[offset_of(at, target.sizes, target.strides)] =
          narrow<To>(widen(from[offset_of(at, source.sizes, source.strides)]));
  });
}

template <typename T>
void add_to(T& place, T value) {
  if constexpr (std::is_same_v<T, bool>)
    place |= value;
  else if constexpr (std::is_integral_v<T>)  // wraps around
    place = static_cast<T>(static_cast<uint64_t>(place) + static_cast<uint64_t>(value));
  else
    place += value;
}

}  // namespace tenon::kernels
