// Strided tensors in kernels: lines along a dimension, copies, additions that wrap.
#pragma once

#include <tenon/support/parallel.h>

#include <algorithm>
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

// Whether the elements fill a piece of memory, in whatever order.
inline bool is_dense(const Strided& tensor) {
  int64_t reach = 1;
  for (size_t dim = 0; dim < tensor.sizes.size(); ++dim) {
    if (tensor.sizes[dim] > 1 && tensor.strides[dim] < 1) return false;
    reach += (tensor.sizes[dim] - 1) * tensor.strides[dim];
  }
  return reach == tensor.count;
}

// Both have the same sizes.
template <typename From, typename To>
void copy_elements(const From* from, const Strided& source, To* to, const Strided& target) {
  if (target.count == 0) return;
  if constexpr (std::is_same_v<From, To>)
    if (is_dense(target) && std::ranges::equal(source.strides, target.strides))
      return parallel_for(target.count, kGrain,
                          [&](int64_t begin, int64_t end) { std::copy(from + begin, from + end, to + begin); });
  const size_t last = target.sizes.size() - 1;
  const int64_t length = target.sizes[last], step = target.strides[last], source_step = source.strides[last];
  const Ints sizes = without(target.sizes, last), strides = without(target.strides, last),
             source_strides = without(source.strides, last);
  parallel_for(target.count / length, std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      To* row_to = to + offset_of(row, sizes, strides);
      const From* row_from = from + offset_of(row, sizes, source_strides);
      for (int64_t at = 0; at < length; ++at) row_to[at * step] = narrow<To>(widen(row_from[at * source_step]));
    }
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
