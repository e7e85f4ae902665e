#include <tenon/kernels/index_put.h>
#include <tenon/support/parallel.h>

#include <algorithm>

#include "kernels/strided.h"

namespace tenon::kernels {
namespace {

int64_t product(const Ints& sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

// Strides of `tensor` over `sizes`, aligned at the right: 0 where it is repeated.
Ints broadcast_strides(const TensorBase& tensor, const Ints& sizes) {
  Ints strides;
  strides.resize(sizes.size(), 0);
  auto rank = static_cast<size_t>(tensor.dim());
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (dim + rank < sizes.size()) continue;
    size_t own = dim + rank - sizes.size();
    if (tensor.sizes()[own] != 1) strides[dim] = tensor.strides()[own];
  }
  return strides;
}

int64_t read_index(const TensorBase& index, int64_t at) {
  return index.dtype() == kInt32 ? index.data<int32_t>()[at] : index.data<int64_t>()[at];
}

// Where the elements go: `places` for the positions of the indices, and the dimensions that no index stands for.
struct Targets {
  Ints positions;                    // the shape of the indices, broadcast
  std::vector<int64_t> places;       // offset in `out` of each position, in row-major order
  Ints rest, rest_strides;           // in `out`
  Ints value_positions, value_rest;  // strides of the values
};

Targets targets_of(std::span<const TensorBase> indices, const TensorBase& values, const TensorBase& out) {
  Targets t;
  std::vector<size_t> picked;
  bool together = true;
  for (size_t dim = 0; dim < indices.size(); ++dim) {
    if (!indices[dim].defined()) continue;
    together &= picked.empty() || picked.back() + 1 == dim;
    picked.push_back(dim);
    std::span<const int64_t> sizes = indices[dim].sizes();
    while (t.positions.size() < sizes.size()) t.positions.insert(t.positions.begin(), 1);
    for (size_t d = 0; d < sizes.size(); ++d)
      if (sizes[d] != 1) t.positions[t.positions.size() - sizes.size() + d] = sizes[d];
  }
  Ints result;
  size_t first = together ? picked.front() : 0;
  for (size_t dim = 0; dim < static_cast<size_t>(out.dim()); ++dim) {
    if (dim == first)
      for (int64_t size : t.positions) result.push_back(size);
    if (std::find(picked.begin(), picked.end(), dim) != picked.end()) continue;
    result.push_back(out.sizes()[dim]);
    t.rest.push_back(out.sizes()[dim]);
    t.rest_strides.push_back(out.strides()[dim]);
  }
  Ints strides = broadcast_strides(values, result);
  for (size_t dim = 0; dim < result.size(); ++dim)
    (dim >= first && dim < first + t.positions.size() ? t.value_positions : t.value_rest).push_back(strides[dim]);

  t.places.assign(static_cast<size_t>(product(t.positions)), 0);
  for (size_t dim : picked) {
    const TensorBase& index = indices[dim];
    Ints index_strides = broadcast_strides(index, t.positions);
    int64_t size = out.sizes()[dim], stride = out.strides()[dim];
    for (size_t at = 0; at < t.places.size(); ++at) {
      int64_t raw = read_index(index, offset_of(static_cast<int64_t>(at), t.positions, index_strides));
      TENON_CHECK_INDEX(raw >= -size && raw < size, "[index_put] index {} is out of range for dimension {} of size {}",
                        raw, dim, size);
      t.places[at] += (raw < 0 ? raw + size : raw) * stride;
    }
  }
  return t;
}

// Of the dimensions that stay, the last is walked as it lies, row by row of the positions. Threads share the columns:
// each writes its own, in the order of the positions.
template <typename Value, typename Place>
void put_rows(const Targets& t, const Value* values, Place* out, bool accumulate) {
  constexpr int64_t kColumns = 16;  // of one thread, at least: a line of the cache
  const auto positions = static_cast<int64_t>(t.places.size());
  const size_t last = t.rest.size() - 1;
  const Ints rest = without(t.rest, last), rest_strides = without(t.rest_strides, last),
             value_rest = without(t.value_rest, last);
  const int64_t width = t.rest[last], blocks = (width + kColumns - 1) / kColumns;
  std::vector<int64_t> from_places(t.places.size());
  for (int64_t at = 0; at < positions; ++at)
    from_places[static_cast<size_t>(at)] = offset_of(at, t.positions, t.value_positions);
  const int64_t grain = std::max<int64_t>(1, kGrain / (positions * std::min(width, kColumns)));
  parallel_for(product(rest) * blocks, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t plane = begin / blocks, first = begin % blocks, until = std::min(blocks, first + end - begin);
      begin += until - first;
      const int64_t left = first * kColumns, columns = std::min(width, until * kColumns) - left;
      Place* plane_out = out + offset_of(plane, rest, rest_strides) + left;
      const Value* plane_from = values + offset_of(plane, rest, value_rest) + left;
      for (size_t at = 0; at < t.places.size(); ++at) {
        Place* to = plane_out + t.places[at];
        const Value* from = plane_from + from_places[at];
        for (int64_t column = 0; column < columns; ++column) {
          auto value = static_cast<Place>(widen(from[column]));
          if (accumulate)
            add_to(to[column], value);
          else
            to[column] = value;
        }
      }
    }
  });
}

template <typename Value, typename Place>
void put(const Targets& t, const Value* values, Place* out, bool accumulate) {
  auto positions = static_cast<int64_t>(t.places.size());
  if (positions == 0 || product(t.rest) == 0) return;
  if (!t.rest.empty() && t.rest_strides.back() == 1 && t.value_rest.back() == 1)
    return put_rows(t, values, out, accumulate);
  // Threads share the dimensions that stay: each writes its own columns, in the order of the positions.
  parallel_for(product(t.rest), std::max<int64_t>(1, kGrain / std::max<int64_t>(1, positions)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t column = begin; column < end; ++column) {
                   Place* to = out + offset_of(column, t.rest, t.rest_strides);
                   const Value* from = values + offset_of(column, t.rest, t.value_rest);
                   for (int64_t at = 0; at < positions; ++at) {
                     auto value = static_cast<Place>(widen(from[offset_of(at, t.positions, t.value_positions)]));
                     Place& place = to[t.places[static_cast<size_t>(at)]];
                     if (accumulate)
                       add_to(place, value);
                     else
                       place = value;
                   }
                 }
               });
}

}  // namespace

void index_put(const TensorBase& self, std::span<const TensorBase> indices, const TensorBase& values, bool accumulate,
               const TensorBase& out) {
  Targets targets = targets_of(indices, values, out);
  with_element_type(out.dtype(), [&]<typename T>() {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      TensorBase wide = core::allocate_base(out.sizes(), out.strides(), kFloat32, kCPU);
      copy_elements(self.data<T>(), Strided(self), wide.data<float>(), Strided(wide));
      put(targets, values.data<T>(), wide.data<float>(), accumulate);
      copy_elements(wide.data<float>(), Strided(wide), out.data<T>(), Strided(out));
    } else {
      if (self.raw_data() != out.raw_data()) copy_elements(self.data<T>(), Strided(self), out.data<T>(), Strided(out));
      put(targets, values.data<T>(), out.data<T>(), accumulate);
    }
  });
}

}  // namespace tenon::kernels
