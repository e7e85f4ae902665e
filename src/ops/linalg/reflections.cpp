#include "ops/linalg/reflections.h"

#include <tenon/generated/ops.h>

#include <algorithm>

namespace tenon::ops {

ReflectionGradients reflection_gradients(const Tensor& input, const Tensor& tau, const Tensor& matrix, bool transposed,
                                         const Tensor& by) {
  const TensorOptions options(input.dtype(), input.device());
  const auto count = static_cast<int64_t>(tau.size(-1));
  const SymInt rows = input.size(-2), columns = input.size(-1);
  Tensor vectors = tril(narrow(input, -1, 0, count), -1) + eye(rows, SymInt(count), options);
  auto vector = [&](int64_t which) { return narrow(vectors, -1, which, 1); };
  auto factor = [&](int64_t which) { return unsqueeze(narrow(tau, -1, which, 1), -1); };
  // The last reflection of Q is the first that B meets.
  std::vector<int64_t> order(static_cast<size_t>(count));
  for (int64_t at = 0; at < count; ++at) order[static_cast<size_t>(at)] = transposed ? at : count - 1 - at;
  std::vector<Tensor> before;
  Tensor state = matrix;
  for (int64_t which : order) {
    before.push_back(state);
    Tensor v = vector(which);
    state = state - factor(which) * matmul(v, matmul(transpose(v, -2, -1), state));
  }
  Tensor grad = by;
  std::vector<Tensor> of_vectors(order.size()), of_factors(order.size());
  for (size_t at = order.size(); at-- > 0;) {
    const int64_t which = order[at];
    Tensor v = vector(which), t = factor(which);
    Tensor along = matmul(transpose(v, -2, -1), before[at]), slope = matmul(transpose(v, -2, -1), grad);
    of_factors[static_cast<size_t>(which)] = -sum(along * slope, Ints{-2, -1});
    of_vectors[static_cast<size_t>(which)] =
        -t * (matmul(grad, transpose(along, -2, -1)) + matmul(before[at], transpose(slope, -2, -1)));
    grad = grad - t * matmul(v, slope);
  }
  ReflectionGradients all{zeros_like(input), zeros_like(tau), grad};
  if (count == 0) return all;
  all.tau = stack(of_factors, -1);
  all.input = tril(cat(of_vectors, -1), -1);
  // Columns beyond the reflections say nothing.
  all.input = constant_pad_nd(all.input, SymInts{0, columns - count});
  return all;
}

}  // namespace tenon::ops
