// Decompositions of matrices.
#include <tenon/kernels/eigen.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

bool reads_upper(const Arguments& arguments) {
  std::string_view triangle = arguments["UPLO"].string();
  TENON_CHECK(triangle == "L" || triangle == "U" || triangle == "l" || triangle == "u",
              "[linalg_eigh] expected UPLO to be 'L' or 'U', got '{}'", triangle);
  return triangle == "U" || triangle == "u";
}

std::vector<TensorMeta> eigen_shape(const Arguments& arguments) {
  const Tensor& self = arguments.tensor("self");
  TENON_CHECK(self.defined(), "[linalg_eigh] expected a tensor, got an undefined one");
  (void)reads_upper(arguments);
  SymInts sizes = self.sym_sizes();
  TENON_CHECK(sizes.size() >= 2 && same_size(sizes[sizes.size() - 1], sizes[sizes.size() - 2]),
              "[linalg_eigh] expected square matrices, or batches of them, got {}", self.description());
  TENON_CHECK_IMPLEMENTED(self.dtype() == kFloat32 || self.dtype() == kFloat64,
                          "[linalg_eigh] expected numbers of float32 or float64, got {}", self.description());
  SymInts values(sizes), strides = core::contiguous_strides(sizes.span());
  values.erase(values.end() - 1);
  std::swap(strides[sizes.size() - 1], strides[sizes.size() - 2]);  // a vector is a column, and dense
  return {TensorMeta::contiguous(values, self.dtype(), self.device()),
          TensorMeta{sizes, strides, self.dtype(), self.device()}};
}

// How a symmetric matrix moves its eigenvalues and turns its eigenvectors: among themselves, the more the closer the
// eigenvalues are. As in PyTorch it is a gradient among symmetric matrices, whichever triangle was read.
Tensor eigen_gradient(Grad& g) {
  Tensor values = g.saved("eigenvalues"), vectors = g.saved("eigenvectors");
  Tensor turned = transpose(vectors, -2, -1),
         one = eye(vectors.size(-1), TensorOptions(values.dtype(), values.device()));
  Tensor apart = unsqueeze(values, -2) - unsqueeze(values, -1) + one;
  Tensor inner = matmul(turned, g.grad(1)) / apart * (1 - one) + unsqueeze(g.grad(0), -1) * one;
  return matmul(matmul(vectors, inner), turned);
}

}  // namespace

OPS(linalg) {
  // Eigenvalues, ascending, and eigenvectors, as columns, of symmetric matrices. (The sign of an eigenvector means
  // nothing: here its largest element is positive.)
  // Example: linalg_eigh(matmul(x, x.t()));
  op("linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        kernels::symmetric_eigen(arguments.tensor("self"), reads_upper(arguments), outputs[0], outputs[1]);
      })
      .shape(eigen_shape)
      .grad("self", saves("eigenvalues", "eigenvectors"), eigen_gradient);
}

}  // namespace tenon::ops
