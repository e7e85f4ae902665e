// The order of a tensor's dimensions in memory, and strides that are dense in such an order.
#pragma once

#include <tenon/core/tensor.h>

#include <vector>

namespace tenon::core {

// Outermost first, by the strides (of symbolic ones, their hints); equal ones as they come. Of a stride of 0 nothing
// tells where it lies, as in PyTorch.
std::vector<int64_t> memory_order(const Tensor& meta);
SymInts dense_strides(const SymInts& sizes, const std::vector<int64_t>& order);
// How a tensor would lie without gaps.
SymInts dense_strides_of(const Tensor& meta);
// Whether its elements lie one behind the other, in the order of its memory.
bool is_dense(const Tensor& meta);
// Whether several of its elements are one in memory, as far as strides of 0 tell.
bool is_expanded(const Tensor& meta);

}  // namespace tenon::core
