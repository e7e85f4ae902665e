// Gradients of matrices that Householder's reflections are applied to: I - tau v vᵀ one after the other, v being 1 at
// its own place, and the column of a matrix below.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon::ops {

struct ReflectionGradients {
  Tensor input, tau, matrix;
};
// Of Q B, where Q is the product of the reflections in the columns of `input`, or of Qᵀ B (`transposed`), for the
// gradient `by` of that product.
ReflectionGradients reflection_gradients(const Tensor& input, const Tensor& tau, const Tensor& matrix, bool transposed,
                                         const Tensor& by);

}  // namespace tenon::ops
