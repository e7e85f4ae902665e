// What loops carry, and what memory their results have.
#pragma once

#include <tenon/core/tensor.h>

#include <span>
#include <vector>

namespace tenon::control::detail {

// An Error if a step changes the number, the sizes or the dtype of what is carried. `after` may have more tensors.
void check_carried(const char* loop, std::span<const Tensor> before, std::span<const Tensor> after);

// Tensors of which none has the memory of another, nor of those given; nor is one without memory for some elements.
void give_own_memory(std::vector<Tensor>& results, std::span<const Tensor> given);

}  // namespace tenon::control::detail
