// Borders by the names of their modes, and their gradients as operators.
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

// Every element of `grad` to the one that it repeats, along one dimension.
Tensor unfolded_border(const Tensor& grad, int64_t dim, const SymInt& size, const SymInt& before) {
  Tensor at = arange(Scalar(grad.size(dim)), TensorOptions(kInt64, grad.device())) - Scalar(before);
  SymInts sizes = grad.sym_sizes();
  sizes[static_cast<size_t>(dim)] = size;
  Tensor folded = Scalar(size - 1) - abs(Scalar(size - 1) - abs(at));
  return index_add(zeros(sizes, TensorOptions(grad.dtype(), grad.device())), dim, folded, grad);
}

}  // namespace

OPS(padding_forms) {
  op("reflection_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor")
      .decompose([](const Tensor& grad_output, const Tensor& self, const SymInts& padding) {
        TENON_CHECK(self.defined() && grad_output.defined() && (self.dim() == 3 || self.dim() == 4),
                    "[reflection_pad2d_backward] expected a tensor of 3 or 4 dimensions");
        TENON_CHECK(padding.size() == 4, "[reflection_pad2d_backward] expected a padding of 4 numbers, got {}",
                    str(padding));
        TENON_CHECK(is_floating(self.dtype()) && grad_output.dtype() == self.dtype(),
                    "[reflection_pad2d_backward] expected floating point tensors of one dtype, got {} and {}",
                    grad_output.description(), self.description());
        bool fits = grad_output.dim() == self.dim();
        for (int64_t dim = 0; fits && dim < self.dim(); ++dim) {
          SymInt size = self.size(dim);
          if (int64_t from_end = self.dim() - 1 - dim; from_end < 2) {
            const SymInt &before = padding[static_cast<size_t>(2 * from_end)],
                         &after = padding[static_cast<size_t>(2 * from_end + 1)];
            TENON_CHECK(expect(before < size) && expect(after < size),
                        "[reflection_pad2d_backward] padding of {} and {} is more than {} elements have beside one",
                        before.str(), after.str(), size.str());
            size = size + before + after;
          }
          fits = same_size(grad_output.size(dim), size);
        }
        TENON_CHECK(fits, "[reflection_pad2d_backward] {} is no gradient for {} padded by {}",
                    grad_output.description(), self.description(), str(padding));
        // Halves are added up in float32 and rounded once.
        Tensor grad = grad_output.to(compute_dtype(self.dtype()));
        grad = unfolded_border(grad, -1 + grad.dim(), self.size(-1), padding[0]);
        grad = unfolded_border(grad, -2 + grad.dim(), self.size(-2), padding[2]);
        return grad.to(self.dtype());
      });
  op("reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& padding) { return pad(self, padding, "reflect"); });
  op("reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& padding) { return pad(self, padding, "reflect"); });
  op("reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& padding) { return pad(self, padding, "reflect"); });
  op("replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& padding) { return pad(self, padding, "replicate"); });
  op("replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& padding) { return pad(self, padding, "replicate"); });
  op("replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& padding) { return pad(self, padding, "replicate"); });
}

}  // namespace tenon::ops
