#include "core/memory_order.h"

#include <algorithm>

namespace tenon::core {

std::vector<int64_t> memory_order(const Tensor& meta) {
  const SymInts strides = meta.sym_strides();
  std::vector<int64_t> order;  // innermost first
  auto hint = [&](int64_t dim) {
    const SymInt& stride = strides[static_cast<size_t>(dim)];
    return stride.is_symbolic() ? stride.env()->hint(stride.expr()).value_or(1) : stride.plain();
  };
  for (size_t dim = strides.size(); dim-- > 0;) {
    // It goes below those of larger strides, past those of which nothing tells where they lie.
    size_t place = order.size();
    order.push_back(static_cast<int64_t>(dim));
    for (size_t at = place; at-- > 0;) {
      const int64_t mine = hint(order[place]), other = hint(order[at]);
      if (mine == 0 || other == 0) continue;
      if (other <= mine) break;
      std::swap(order[place], order[at]);
      place = at;
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

SymInts dense_strides(const SymInts& sizes, const std::vector<int64_t>& order) {
  SymInts ordered, strides = sizes;
  for (int64_t dim : order) ordered.push_back(sizes[static_cast<size_t>(dim)]);
  const SymInts dense = contiguous_strides(ordered.span());
  for (size_t at = 0; at < order.size(); ++at) strides[static_cast<size_t>(order[at])] = dense[at];
  return strides;
}

SymInts dense_strides_of(const Tensor& meta) { return dense_strides(meta.sym_sizes(), memory_order(meta)); }

bool is_dense(const Tensor& meta) {
  const SymInts sizes = meta.sym_sizes(), strides = meta.sym_strides(), dense = dense_strides_of(meta);
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    if (!strides[dim].same(dense[dim]) && !sizes[dim].same(1)) return false;
  return true;
}

bool is_expanded(const Tensor& meta) {
  const SymInts sizes = meta.sym_sizes(), strides = meta.sym_strides();
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    if (strides[dim].same(0) && !sizes[dim].same(1)) return true;
  return false;
}

}  // namespace tenon::core
