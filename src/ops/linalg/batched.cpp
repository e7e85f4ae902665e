// Products of batches of matrices, added to what is there.
#include <tenon/kernels/matmul.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

// Of baddbmm: the product's sizes, to which self can be broadcast.
TensorMeta product_shape(const Arguments& arguments) {
  const Tensor &self = arguments.tensor("self"), &a = arguments.tensor("batch1"), &b = arguments.tensor("batch2");
  TENON_CHECK(self.defined() && a.defined() && b.defined(), "[baddbmm] expected a tensor, got an undefined one");
  bool fits = a.dim() == 3 && b.dim() == 3 && a.dtype() == b.dtype() && same_size(a.size(0), b.size(0)) &&
              same_size(a.size(2), b.size(1));
  TENON_CHECK(fits, "[baddbmm] {} and {} cannot be multiplied: expected two batches of matrices, as many, of one dtype",
              a.description(), b.description());
  TENON_CHECK_IMPLEMENTED(a.dtype() != kBool, "[baddbmm] expected tensors of numbers, got {} and {}", a.description(),
                          b.description());
  TENON_CHECK(self.dtype() == a.dtype(), "[baddbmm] expected self of {}, got {}", name(a.dtype()), self.description());
  SymInts sizes = self.sym_sizes(), result{a.size(0), a.size(1), b.size(2)};
  fits = sizes.size() <= 3;
  for (size_t dim = 0; fits && dim < sizes.size(); ++dim)
    fits = broadcasts_to(sizes[dim], result[3 - sizes.size() + dim]);
  TENON_CHECK(fits, "[baddbmm] self {} cannot be broadcast to {}", self.description(), str(result));
  return TensorMeta::contiguous(result, a.dtype(), a.device());
}

// A row for each product is added by the library on the way; other sums are loops, and fused with what follows.
bool adds_rows_by_library(const Arguments& arguments) {
  const Tensor& self = arguments.tensor("self");
  return kernels::matmul_supports(self.dtype()) && self.dim() == 3 && self.size(1).maybe_constant() == 1;
}

Tensor times(const Tensor& tensor, const Scalar& factor) {
  return !factor.is_symbolic() && factor.to_double() == 1 ? tensor : tensor * factor;
}

}  // namespace

OPS(batched) {
  op("baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .role(Role::AddedProduct)
      .kernel(
          [](const Arguments& arguments, std::span<Tensor> outputs) {
            kernels::MatmulEpilogue epilogue;
            epilogue.bias = &arguments.tensor("self");
            epilogue.alpha = arguments["alpha"].scalar().to_double();
            epilogue.beta = arguments["beta"].scalar().to_double();
            kernels::matmul(arguments.tensor("batch1"), arguments.tensor("batch2"), outputs[0], epilogue);
          },
          adds_rows_by_library)
      .decompose(
          [](const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha) {
            Tensor product = times(bmm(batch1, batch2), alpha);
            // A beta of 0 ignores self, NaNs in it included.
            if (!beta.is_symbolic() && beta.to_double() == 0) return product;
            return product + times(expand(self, product.sym_sizes()), beta);
          })
      .shape([](const Arguments& arguments) { return std::vector{product_shape(arguments)}; })
      .grad("self", saves(),
            [](Grad& g) { return times(sum_to_size(g.grad(), g.sizes("self")), g.argument("beta").scalar()); })
      .grad("batch1", saves("batch2"),
            [](Grad& g) {
              return times(bmm(g.grad(), transpose(g.saved("batch2"), 1, 2)), g.argument("alpha").scalar());
            })
      .grad("batch2", saves("batch1"),
            [](Grad& g) {
              return times(bmm(transpose(g.saved("batch1"), 1, 2), g.grad()), g.argument("alpha").scalar());
            })
      .with_inplace();
}

}  // namespace tenon::ops
