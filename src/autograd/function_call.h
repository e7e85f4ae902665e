// What a `Function` checks, in a graph and outside of one.
#pragma once

#include <tenon/core/tensor.h>

#include <span>

namespace tenon::autograd::detail {

// An Error if forward changed an argument in place and does not return it.
void check_dirty_is_returned(const Tensor& dirty, std::span<const Tensor> results, const std::string& name);

// Whether autograd knows it as one.
bool is_view(const Tensor& tensor);

}  // namespace tenon::autograd::detail
