// Additions and writes at positions that an index tensor gives.
#pragma once

#include <tenon/core/tensor_fwd.h>

namespace tenon::kernels {

// out = self, then out[…, index[i…], …] += src[i…] along `dim`, for every position of `index`, in row-major order: the
// result does not depend on the number of threads. Halves are added up in float32 and rounded once.
// `index` is int64 or int32, of the rank of the others and no larger than `src`; an index out of range is an Error.
void scatter_add(const TensorBase& self, int64_t dim, const TensorBase& index, const TensorBase& src,
                 const TensorBase& out);

// The same with = in place of +=: of several sources for one place the last stays.
void scatter(const TensorBase& self, int64_t dim, const TensorBase& index, const TensorBase& src,
             const TensorBase& out);

enum class Combine : uint8_t { Sum, Product, Mean, Largest, Smallest };

// out = self, then out[…, index[i…], …] and src[i…] are combined along `dim`, in row-major order. Without
// `include_self` what self has at a place that is written does not count. A mean is of all that counts, of integers
// rounded down; a NaN is larger and smaller than everything. Halves are combined in float32 and rounded once.
void scatter_reduce(const TensorBase& self, int64_t dim, const TensorBase& index, const TensorBase& src,
                    Combine combine, bool include_self, const TensorBase& out);

}  // namespace tenon::kernels
