#include <tenon/kernels/selection.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "kernels/wide_lines.h"

namespace tenon::kernels {
namespace {

TensorBase make(const Ints& sizes, Dtype dtype) {
  return core::allocate_base(sizes.span(), core::contiguous_strides(sizes.span()).span(), dtype, kCPU);
}

// Ascending, NaNs last.
template <typename T>
bool before(T a, T b) {
  return is_nan(b) ? !is_nan(a) : a < b;
}

// The elements in row-major order of these sizes and strides.
template <typename Wide>
std::unique_ptr<Wide[]> flat_elements(const TensorBase& self, const Ints& sizes, const Ints& strides, int64_t count) {
  auto elements = std::make_unique<Wide[]>(static_cast<size_t>(count));
  for_each_stretch(sizes, 0, count, [&](int64_t first, int64_t length) {
    read_line({self, offset_of(first, sizes, strides), strides.back(), length}, elements.get() + first);
  });
  return elements;
}

template <typename Wide>
std::unique_ptr<Wide[]> flat_elements(const TensorBase& self) {
  const Strided source(self);
  return flat_elements<Wide>(self, source.sizes, source.strides, source.count);
}

}  // namespace

TensorBase nonzero(const TensorBase& self) {
  const auto rank = static_cast<size_t>(self.dim());
  const Strided source(self);
  std::vector<int64_t> found;
  double elements[kStretch];
  // What is not 0 is not 0 as float64.
  for_each_stretch(source.sizes, 0, source.count, [&](int64_t first, int64_t length) {
    read_line({self, offset_of(first, source.sizes, source.strides), source.strides.back(), length}, elements);
    Ints index;
    index.resize(source.sizes.size(), 0);
    int64_t position = first;
    for (size_t dim = index.size(); dim-- > 0; position /= source.sizes[dim]) index[dim] = position % source.sizes[dim];
    for (int64_t at = 0; at < length; ++at, ++index.back())
      if (elements[at] != 0) found.insert(found.end(), index.begin(), index.end());
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
  with_wide_type(self.dtype(), [&]<typename Wide>() {
    const auto elements = flat_elements<Wide>(self);
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
    const auto values = std::make_unique<Wide[]>(starts.size());
    for (size_t at = 0; at < starts.size(); ++at) {
      values[at] = elements[static_cast<size_t>(order[static_cast<size_t>(starts[at])])];
      int64_t end = at + 1 < starts.size() ? starts[at + 1] : source.count;
      if (return_counts) distinct.counts.data<int64_t>()[at] = end - starts[at];
    }
    write_line(values.get(), {distinct.values, 0, 1, count});
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
  with_wide_type(self.dtype(), [&]<typename Wide>() {
    const Rows<Wide> rows{flat_elements<Wide>(self, sizes, strides, all * width), all, width};
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
    for (size_t at = 0; at < starts.size(); ++at)
      write_line(rows.elements.get() + order[static_cast<size_t>(starts[at])] * width,
                 {distinct.values, static_cast<int64_t>(at) * width, 1, width});
  });
  return distinct;
}

Distinct unique_consecutive(const TensorBase& self, bool return_inverse, bool return_counts) {
  Distinct distinct;
  distinct.inverse = make(return_inverse ? Ints(self.sizes()) : Ints{0}, kInt64);
  with_wide_type(self.dtype(), [&]<typename Wide>() {
    const int64_t all = Strided(self).count;
    const Rows<Wide> rows{flat_elements<Wide>(self), all, 1};
    std::vector<int64_t> order(static_cast<size_t>(all));
    std::iota(order.begin(), order.end(), 0);
    std::vector<int64_t> starts =
        starts_of_runs(rows, order, return_inverse ? distinct.inverse.data<int64_t>() : nullptr);
    auto count = static_cast<int64_t>(starts.size());
    distinct.values = make(Ints{count}, self.dtype());
    distinct.counts = make(Ints{return_counts ? count : 0}, kInt64);
    if (return_counts) write_counts(starts, all, distinct.counts.data<int64_t>());
    const auto values = std::make_unique<Wide[]>(starts.size());
    for (size_t at = 0; at < starts.size(); ++at) values[at] = rows.elements[static_cast<size_t>(starts[at])];
    write_line(values.get(), {distinct.values, 0, 1, count});
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
