// Searching in sorted sequences.
#pragma once

#include <tenon/core/tensor_fwd.h>

namespace tenon::kernels {

// By element of `values`: how many elements of its sequence are smaller, or with `right` not larger. `sorted` is one
// sequence for all, or one for each line along the last dimension. `sorter` says in which order its elements are
// sorted; an index of it that is out of range is an Error. A NaN is larger than every number. `out` is int64 or int32.
void search_sorted(const TensorBase& sorted, const TensorBase& values, bool right, const TensorBase* sorter,
                   const TensorBase& out);

}  // namespace tenon::kernels
