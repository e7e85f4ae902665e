// Views whose elements are copied, as graphs without aliases have them, and the gradients of views.
#include <tenon/ops/table.h>

namespace tenon::ops {
namespace {

Tensor copied(const Tensor& view) { return clone(view, MemoryFormat::Contiguous); }

Tensor zeros_of(const SymInts& sizes, const Tensor& like) {
  return zeros(sizes, TensorOptions(like.dtype(), like.device()));
}

}  // namespace

OPS(view_copies) {
  op("view_copy(Tensor self, SymInt[] size) -> Tensor").decompose([](const Tensor& self, const SymInts& size) {
    return copied(view(self, size));
  });
  // A view that promises to be looked at alone.
  op("_unsafe_view(Tensor self, SymInt[] size) -> Tensor").decompose([](const Tensor& self, const SymInts& size) {
    return copied(view(self, size));
  });
  op("expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor")
      .decompose(
          [](const Tensor& self, const SymInts& size, bool implicit) { return copied(expand(self, size, implicit)); });
  op("permute_copy(Tensor self, int[] dims) -> Tensor").decompose([](const Tensor& self, const Ints& dims) {
    return copied(permute(self, dims));
  });
  op("transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim0, int64_t dim1) { return copied(transpose(self, dim0, dim1)); });
  op("t_copy(Tensor self) -> Tensor").decompose([](const Tensor& self) { return copied(t(self)); });
  op("squeeze_copy(Tensor self) -> Tensor").decompose([](const Tensor& self) { return copied(squeeze(self)); });
  op("squeeze_copy.dim(Tensor self, int dim) -> Tensor").decompose([](const Tensor& self, int64_t dim) {
    return copied(squeeze(self, dim));
  });
  op("unsqueeze_copy(Tensor self, int dim) -> Tensor").decompose([](const Tensor& self, int64_t dim) {
    return copied(unsqueeze(self, dim));
  });
  op("slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, const std::optional<SymInt>& start,
                    const std::optional<SymInt>& end,
                    const SymInt& step) { return copied(slice(self, dim, start, end, step)); });
  op("select_copy.int(Tensor self, int dim, SymInt index) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, const SymInt& index) { return copied(select(self, dim, index)); });
  op("narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, const SymInt& start, const SymInt& length) {
        return copied(narrow(self, dim, start, length));
      });
  op("diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor")
      .decompose([](const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
        return copied(diagonal(self, offset, dim1, dim2));
      });
  op("unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor")
      .decompose([](const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
        return copied(unfold(self, dimension, size, step));
      });
  op("as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& size, const SymInts& stride,
                    const std::optional<SymInt>& offset) { return copied(as_strided(self, size, stride, offset)); });
  op("detach_copy(Tensor self) -> Tensor").decompose([](const Tensor& self) { return copied(detach(self)); });
  op("alias_copy(Tensor self) -> Tensor").decompose([](const Tensor& self) { return copied(self); });
}

OPS(view_backward) {
  op("slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) -> "
     "Tensor")
      .decompose([](const Tensor& grad, const SymInts& sizes, int64_t dim, const SymInt& start, const SymInt& end,
                    const SymInt& step) { return slice_scatter(zeros_of(sizes, grad), grad, dim, start, end, step); });
  op("select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor")
      .decompose([](const Tensor& grad, const SymInts& sizes, int64_t dim, const SymInt& index) {
        return select_scatter(zeros_of(sizes, grad), grad, dim, index);
      });
  op("diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor")
      .decompose([](const Tensor& grad, const SymInts& sizes, int64_t offset, int64_t dim1, int64_t dim2) {
        return diagonal_scatter(zeros_of(sizes, grad), grad, offset, dim1, dim2);
      });
}

}  // namespace tenon::ops
