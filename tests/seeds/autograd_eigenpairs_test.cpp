// The autograd suite: eigenpairs, whose derivatives need all eigenvectors.
#include "autograd.h"

#include <tenon/autograd/gradcheck.h>
#include <tenon/numerics/lobpcg.h>

namespace tenon {
namespace {

using namespace testing;
using autograd::gradcheck;
using autograd::gradgradcheck;
using Tensors = std::vector<Tensor>;

// Each vector with the sign that makes its largest element positive.
Tensors pairs_of(const Tensor& matrix, int64_t k, bool largest) {
  Ints sizes(matrix.sizes());
  sizes.back() = k;
  Tensor start = eye(matrix.size(-1), k, kFloat64).expand(SymInts(sizes.span())).clone();
  auto [values, vectors] = numerics::lobpcg(matrix, {.k = k, .largest = largest, .start = start});
  Tensor place = vectors.detach().abs().argmax(-2, true);
  return {values, vectors * vectors.detach().gather(-2, place).sign()};
}

void check_pairs(int64_t k, const Ints& sizes, bool largest) {
  Tensor spread = rand(SymInts(sizes.span()), kFloat64);
  Tensor matrix = (matmul(spread, spread.transpose(-2, -1)) / 10).set_requires_grad();
  auto function = [&](const Tensor& at) { return pairs_of(at, k, largest); };
  const bool batched = sizes.size() > 2;  // whole matrices of derivatives take long there
  EXPECT_TRUE(gradcheck(function, {matrix}, {.fast_mode = batched}));
  Ints of_values(sizes.span().first(sizes.size() - 1)), of_vectors(sizes);
  of_values.back() = of_vectors.back() = k;
  Tensor first = (rand(SymInts(of_values.span()), kFloat64) / 100).set_requires_grad();
  Tensor second = (rand(SymInts(of_vectors.span()), kFloat64) / 100).set_requires_grad();
  EXPECT_TRUE(gradgradcheck(function, {matrix}, {.atol = 1e-4, .fast_mode = batched}, {first, second}));

  // They are the outermost eigenpairs, in order.
  Tensors pairs = function(matrix);
  Tensor values = pairs[0].detach(), vectors = pairs[1].detach(), all = std::get<0>(linalg_eigh(matrix.detach()));
  Tensor expected = largest ? all.narrow(-1, sizes.back() - k, k).flip({-1}) : all.narrow(-1, 0, k);
  EXPECT_TRUE(values.allclose(expected, 1e-9, 1e-12));
  EXPECT_TRUE(matmul(matrix.detach(), vectors).allclose(vectors * values.unsqueeze(-2), 1e-7, 1e-9));

  (pairs[0].sum() + pairs[1].sum()).backward();
  expect_near(matrix.grad(), matrix.grad().transpose(-2, -1), 1e-9);
}

TEST_P(TestAutograd, lobpcg) {
  for (bool largest : {true, false})
    for (int64_t k : {1, 2, 3}) {
      int64_t n = k == 3 ? 9 : 6;
      check_pairs(k, {n, n}, largest);
      check_pairs(k, {2, n, n}, largest);
      check_pairs(k, {2, 2, n, n}, largest);
    }
}

}  // namespace
}  // namespace tenon
