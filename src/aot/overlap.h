#pragma once

#include <tenon/core/tensor.h>

namespace tenon::aot {

// Whether two elements may lie at one place, as far as sizes and strides tell for all values of their symbols.
bool may_overlap(const Tensor& meta);

}  // namespace tenon::aot
