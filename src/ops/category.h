// What promotion looks at first.
#pragma once

#include <tenon/core/dtype.h>

namespace tenon::ops {

// Of bool 0, of integers 1, of floats 2. A number or a 0-d tensor decides a result's dtype only where its category is
// the higher one, and a result cannot be written to a tensor of a lower one.
inline int category(Dtype dtype) { return dtype == Dtype::Bool ? 0 : is_floating(dtype) ? 2 : 1; }

}  // namespace tenon::ops
