// What operators that write at the places of an index have in common.
#pragma once

#include <tenon/ops/row.h>

namespace tenon::ops {

// Of the arguments self, dim, index and src: an Error unless the index is of integers and fits both.
std::vector<TensorMeta> scatter_shape(const Arguments& arguments);

// What the index picked, as a gradient of `src`: elements beyond the index were not used.
Tensor as_source(Grad& g, Tensor picked);
// The gradient of a scatter's source: what the index picks.
Tensor source_grad(Grad& g);

}  // namespace tenon::ops
