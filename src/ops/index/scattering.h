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

// Said of a row: its kernel gives `self` but for some elements, refuses what it has to before it writes the first, and
// may be given the memory of `self` for its result.
struct BeginsAsSelf {
  explicit BeginsAsSelf(const char* op_name);
};
bool begins_as_self(const Row& row);

}  // namespace tenon::ops
