#include "core/memory_order.h"

#include <algorithm>

namespace tenon::core {

std::vector<int64_t> memory_order(const Tensor& meta) {
  const SymInts strides = meta.sym_strides();
  std::vector<int64_t> order(strides.size());
  for (size_t dim = 0; dim < order.size(); ++dim) order[dim] = static_cast<int64_t>(dim);
  auto hint = [&](int64_t dim) {
    const SymInt& stride = strides[static_cast<size_t>(dim)];
    return stride.is_symbolic() ? stride.env()->hint(stride.expr()).value_or(1) : stride.plain();
  };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return hint(a) > hint(b); });
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
