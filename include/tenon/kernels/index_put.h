// Elements put at positions that index tensors give.
#pragma once

#include <tenon/core/tensor_fwd.h>

namespace tenon::kernels {

// out = self, then out[indices] = values (or += with `accumulate`), with NumPy's meaning of indices; an undefined one
// stands for a whole dimension. Positions are taken in row-major order, so that of several values for one place the
// last stays, and sums do not depend on the number of threads. Halves are added up in float32 and rounded once. An
// index out of range is an Error, before anything is written. Shapes and dtypes are checked by the caller (the row).
// `out` is `self`, element by element, or shares no memory with the rest.
void index_put(const TensorBase& self, std::span<const TensorBase> indices, const TensorBase& values, bool accumulate,
               const TensorBase& out);

}  // namespace tenon::kernels
