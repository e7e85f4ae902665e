#include <tenon/kernels/selection.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/strided.h"

namespace tenon::kernels {
namespace {

TensorBase make(const Ints& sizes, Dtype dtype) {
  return core::allocate_base(sizes.span(), core::contiguous_strides(sizes.span()).span(), dtype, kCPU);
}

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

// Ascending, NaNs last.
template <typename T>
bool before(T a, T b) {
  return is_nan(b) ? !is_nan(a) : a < b;
}

// The elements in row-major order, halves widened.
template <typename T>
auto flat_elements(const TensorBase& self) {
  Strided source(self);
  const T* data = self.data<T>();
  using Wide = decltype(widen(*data));
  // Not a vector: that of bools has no elements to point at.
  auto elements = std::make_unique<Wide[]>(static_cast<size_t>(source.count));
  for (int64_t at = 0; at < source.count; ++at)
    elements[static_cast<size_t>(at)] = widen(data[offset_of(at, source.sizes, source.strides)]);
  return elements;
}

}  // namespace

TensorBase nonzero(const TensorBase& self) {
  auto rank = static_cast<size_t>(self.dim());
  std::vector<int64_t> found;
  with_element_type(self.dtype(), [&]<typename T>() {
    const T* data = self.data<T>();
    int64_t elements = 1;
    for (int64_t size : self.sizes()) elements *= size;
    std::vector<int64_t> index(rank);
    int64_t place = 0;
    for (int64_t at = 0; at < elements; ++at) {
      if (widen(data[place]) != 0) found.insert(found.end(), index.begin(), index.end());
      if (rank == 0) found.resize(widen(data[place]) != 0 ? 1 : 0);
      for (size_t dim = rank; dim-- > 0;) {
        place += self.strides()[dim];
        if (++index[dim] < self.sizes()[dim]) break;
        place -= index[dim] * self.strides()[dim];
        index[dim] = 0;
      }
    }
  });
  auto count = static_cast<int64_t>(rank == 0 ? found.size() : found.size() / rank);
  TensorBase result = make(Ints{count, self.dim()}, kInt64);
  if (rank > 0) std::copy(found.begin(), found.end(), result.data<int64_t>());
  return result;
}

Distinct unique(const TensorBase& self, bool return_inverse, bool return_counts) {
  Distinct distinct;
  Strided source(self);
  distinct.inverse = make(return_inverse ? Ints(self.sizes()) : Ints{0}, kInt64);
  with_element_type(self.dtype(), [&]<typename T>() {
    auto elements = flat_elements<T>(self);
    std::vector<int64_t> order(static_cast<size_t>(source.count)), starts;
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return before(elements[a], elements[b]); });
    for (size_t at = 0; at < order.size(); ++at) {
      bool fresh = at == 0 || !(elements[order[at]] == elements[order[at - 1]]);
      if (fresh) starts.push_back(static_cast<int64_t>(at));
      if (return_inverse) distinct.inverse.data<int64_t>()[order[at]] = static_cast<int64_t>(starts.size()) - 1;
    }
    auto count = static_cast<int64_t>(starts.size());
    distinct.values = make(Ints{count}, self.dtype());
    distinct.counts = make(Ints{return_counts ? count : 0}, kInt64);
    for (size_t at = 0; at < starts.size(); ++at) {
      distinct.values.data<T>()[at] = narrow<T>(elements[order[static_cast<size_t>(starts[at])]]);
      int64_t end = at + 1 < starts.size() ? starts[at + 1] : source.count;
      if (return_counts) distinct.counts.data<int64_t>()[at] = end - starts[at];
    }
  });
  return distinct;
}

TensorBase repeated_positions(const TensorBase& repeats) {
  int64_t length = repeats.sizes()[0], stride = repeats.strides()[0], total = 0;
  auto times = [&](int64_t at) {
    return repeats.dtype() == kInt32 ? int64_t{repeats.data<int32_t>()[at * stride]}
                                     : repeats.data<int64_t>()[at * stride];
  };
  for (int64_t at = 0; at < length; ++at) {
    TENON_CHECK(times(at) >= 0, "[repeat_interleave] expected repeats of at least 0, got {}", times(at));
    total += times(at);
  }
  TensorBase result = make(Ints{total}, kInt64);
  int64_t* out = result.data<int64_t>();
  for (int64_t at = 0; at < length; ++at) out = std::fill_n(out, times(at), at);
  return result;
}

}  // namespace tenon::kernels
