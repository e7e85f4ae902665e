#include <tenon/kernels/selection.h>

#include <algorithm>
#include <cmath>
#include <memory>
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
  // By columns: the coordinates in one dimension lie beside each other.
  const int64_t sizes[] = {count, self.dim()}, strides[] = {1, std::max<int64_t>(1, count)};
  TensorBase result = core::allocate_base(sizes, strides, kInt64, kCPU);
  for (int64_t at = 0; at < count; ++at)
    for (size_t dim = 0; dim < rank; ++dim)
      result.data<int64_t>()[at + static_cast<int64_t>(dim) * count] = found[static_cast<size_t>(at) * rank + dim];
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

namespace {

// Rows of `width` elements each, one after another.
template <typename Wide>
struct Rows {
  std::unique_ptr<Wide[]> elements;
  int64_t count, width;

  bool same(int64_t a, int64_t b) const {
    return std::equal(elements.get() + a * width, elements.get() + (a + 1) * width, elements.get() + b * width);
  }
  bool before(int64_t a, int64_t b) const {
    const Wide *first = elements.get() + a * width, *second = elements.get() + b * width;
    for (int64_t at = 0; at < width; ++at) {
      if (kernels::before(first[at], second[at])) return true;
      if (kernels::before(second[at], first[at])) return false;
    }
    return false;
  }
};

// Where runs of equal rows begin, of rows in the order of `order`; each row's run goes to `inverse`.
template <typename Wide>
std::vector<int64_t> starts_of_runs(const Rows<Wide>& rows, const std::vector<int64_t>& order, int64_t* inverse) {
  std::vector<int64_t> starts;
  for (size_t at = 0; at < order.size(); ++at) {
    if (at == 0 || !rows.same(order[at - 1], order[at])) starts.push_back(static_cast<int64_t>(at));
    if (inverse) inverse[order[at]] = static_cast<int64_t>(starts.size()) - 1;
  }
  return starts;
}

void write_counts(const std::vector<int64_t>& starts, int64_t all, int64_t* counts) {
  for (size_t at = 0; at < starts.size(); ++at)
    counts[at] = (at + 1 < starts.size() ? starts[at + 1] : all) - starts[at];
}

}  // namespace

Distinct unique_slices(const TensorBase& self, int64_t dim, bool consecutive) {
  // The dimension comes first; results are laid out so, too.
  auto along = static_cast<size_t>(dim);
  Ints sizes{self.sizes()[along]}, strides{self.strides()[along]};
  int64_t width = 1;
  for (size_t each = 0; each < self.sizes().size(); ++each) {
    if (each == along) continue;
    sizes.push_back(self.sizes()[each]);
    strides.push_back(self.strides()[each]);
    width *= self.sizes()[each];
  }
  const int64_t all = sizes[0];
  Distinct distinct;
  distinct.inverse = make(Ints{all}, kInt64);
  with_element_type(self.dtype(), [&]<typename T>() {
    const T* data = self.data<T>();
    Rows<decltype(widen(*data))> rows{std::make_unique<decltype(widen(*data))[]>(static_cast<size_t>(all * width)), all,
                                      width};
    for (int64_t at = 0; at < all * width; ++at)
      rows.elements[static_cast<size_t>(at)] = widen(data[offset_of(at, sizes, strides)]);
    std::vector<int64_t> order(static_cast<size_t>(all));
    std::iota(order.begin(), order.end(), 0);
    if (!consecutive)
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return rows.before(a, b); });
    std::vector<int64_t> starts = starts_of_runs(rows, order, distinct.inverse.data<int64_t>());
    distinct.counts = make(Ints{static_cast<int64_t>(starts.size())}, kInt64);
    write_counts(starts, all, distinct.counts.data<int64_t>());
    Ints moved_sizes(self.sizes()), moved_strides = strides;
    sizes[0] = moved_sizes[along] = static_cast<int64_t>(starts.size());
    Ints dense = core::contiguous_strides(sizes.span());
    for (size_t each = 0, next = 1; each < moved_sizes.size(); ++each)
      moved_strides[each] = each == along ? dense[0] : dense[next++];
    distinct.values = core::allocate_base(moved_sizes.span(), moved_strides.span(), self.dtype(), kCPU);
    T* out = distinct.values.data<T>();
    for (int64_t start : starts)
      for (int64_t at = 0; at < width; ++at)
        *out++ = narrow<T>(rows.elements[static_cast<size_t>(order[static_cast<size_t>(start)] * width + at)]);
  });
  return distinct;
}

Distinct unique_consecutive(const TensorBase& self, bool return_inverse, bool return_counts) {
  Distinct distinct;
  distinct.inverse = make(return_inverse ? Ints(self.sizes()) : Ints{0}, kInt64);
  with_element_type(self.dtype(), [&]<typename T>() {
    const int64_t all = Strided(self).count;
    auto elements = flat_elements<T>(self);
    Rows<std::remove_reference_t<decltype(elements[0])>> rows{std::move(elements), all, 1};
    std::vector<int64_t> order(static_cast<size_t>(all));
    std::iota(order.begin(), order.end(), 0);
    std::vector<int64_t> starts =
        starts_of_runs(rows, order, return_inverse ? distinct.inverse.data<int64_t>() : nullptr);
    auto count = static_cast<int64_t>(starts.size());
    distinct.values = make(Ints{count}, self.dtype());
    distinct.counts = make(Ints{return_counts ? count : 0}, kInt64);
    if (return_counts) write_counts(starts, all, distinct.counts.data<int64_t>());
    for (size_t at = 0; at < starts.size(); ++at)
      distinct.values.data<T>()[at] = narrow<T>(rows.elements[static_cast<size_t>(starts[at])]);
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
