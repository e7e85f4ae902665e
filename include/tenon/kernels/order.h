// What runs along a dimension by order: the largest so far, the most frequent.
#pragma once

#include <tenon/core/tensor_fwd.h>

namespace tenon::kernels {

// The largest (or smallest) element up to each position along `dim`, and where it stands: the last of equal ones. A NaN
// is beyond everything.
void running_extremum(const TensorBase& self, int64_t dim, bool largest, const TensorBase& values,
                      const TensorBase& indices);

// The most frequent element along `dim`, the smallest of those, and where it stands last. `values` and `indices` have
// one element there.
void mode(const TensorBase& self, int64_t dim, const TensorBase& values, const TensorBase& indices);

// The greatest common divisor, or the least common multiple, of pairs of integers, which are broadcast to `out`.
void common_divisor(const TensorBase& a, const TensorBase& b, bool multiple, const TensorBase& out);

// x = mantissa · 2^exponent with a mantissa of [1/2, 1).
void split_exponent(const TensorBase& self, const TensorBase& mantissa, const TensorBase& exponent);

// int64[size]: how often each number from 0 on occurs in a list of integers that are not negative; or, in the dtype of
// `out`, the sum of its weights. `out` is large enough.
void count_numbers(const TensorBase& self, const TensorBase* weights, const TensorBase& out);

}  // namespace tenon::kernels
