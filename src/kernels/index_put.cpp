#include <tenon/kernels/index_put.h>
#include <tenon/support/parallel.h>

#include <algorithm>

#include "kernels/element_writes.h"

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
void put(const Targets& t, const TensorBase& values, const TensorBase& out, const ElementWrites& writes) {
  constexpr int64_t kColumns = 16;  // of one thread, at least: a line of the cache
  const auto positions = static_cast<int64_t>(t.places.size());
  if (positions == 0 || product(t.rest) == 0) return;
  const bool none_stay = t.rest.empty();
  const size_t last = none_stay ? 0 : t.rest.size() - 1;
  auto outer = [&](const Ints& list) { return none_stay ? list : without(list, last); };
  const Ints rest = outer(t.rest), rest_strides = outer(t.rest_strides), value_rest = outer(t.value_rest);
  const int64_t width = none_stay ? 1 : t.rest[last], blocks = (width + kColumns - 1) / kColumns;
  const int64_t to_step = none_stay ? 0 : t.rest_strides[last], from_step = none_stay ? 0 : t.value_rest[last];
  std::vector<int64_t> from_places(t.places.size());
  for (int64_t at = 0; at < positions; ++at)
    from_places[static_cast<size_t>(at)] = offset_of(at, t.positions, t.value_positions);
  const int64_t grain = std::max<int64_t>(1, kGrain / (positions * std::min(width, kColumns)));
  const int64_t size = out.element_size();
  const auto* from = static_cast<const std::byte*>(values.raw_data());
  auto* to = static_cast<std::byte*>(out.raw_data());
  parallel_for(product(rest) * blocks, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t plane = begin / blocks, first = begin % blocks, until = std::min(blocks, first + end - begin);
      begin += until - first;
      const int64_t left = first * kColumns, columns = std::min(width, until * kColumns) - left;
      std::byte* plane_to = to + (offset_of(plane, rest, rest_strides) + left * to_step) * size;
      const std::byte* plane_from = from + (offset_of(plane, rest, value_rest) + left * from_step) * size;
      if (width == 1) {
        writes.places(plane_from, from_places.data(), plane_to, t.places.data(), positions);
        continue;
      }
      for (size_t at = 0; at < t.places.size(); ++at)
        writes.row(plane_from + from_places[at] * size, from_step, plane_to + t.places[at] * size, to_step, columns);
    }
  });
}

}  // namespace

void index_put(const TensorBase& self, std::span<const TensorBase> indices, const TensorBase& values, bool accumulate,
               const TensorBase& out) {
  write_into(self, values, accumulate, out, [&](const TensorBase& to, const TensorBase& from) {
    put(targets_of(indices, from, to), from, to, accumulate ? adding_writes(to.dtype()) : replacing_writes(to.dtype()));
  });
}

}  // namespace tenon::kernels
