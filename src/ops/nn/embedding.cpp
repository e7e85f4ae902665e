// Rows of a table by their numbers.
#include <tenon/ops/table.h>

namespace tenon::ops {

OPS(embedding) {
  // Elements of each row of a table. The row `padding_idx` gets no gradient.
  op("embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool "
     "sparse=False) -> Tensor")
      .decompose([](const Tensor& weight, const Tensor& indices, const SymInt&, bool, bool sparse) {
        TENON_CHECK(weight.defined() && indices.defined(), "[embedding] expected a tensor, got an undefined one");
        TENON_CHECK(weight.dim() == 2, "[embedding] expected a table of two dimensions, got {}", weight.description());
        TENON_CHECK(indices.dtype() == kInt64 || indices.dtype() == kInt32,
                    "[embedding] expected indices of int64 or int32, got {}", indices.description());
        TENON_CHECK_IMPLEMENTED(!sparse, "[embedding] sparse gradients are not supported");
        SymInts sizes = indices.sym_sizes();
        sizes.push_back(weight.size(1));
        return view(index_select(weight, 0, reshape(indices, {-1})), sizes);
      })
      .grad("weight", saves("indices"), [](Grad& g) {
        SymInts sizes = g.sizes("weight");
        Tensor flat = reshape(g.saved("indices"), {-1});
        Tensor grad = reshape(g.grad(), SymInts{flat.numel(), sizes[1]});
        if (g.argument("scale_grad_by_freq").boolean()) {
          const TensorOptions like(grad.dtype(), grad.device());
          Tensor counts = index_add(zeros(SymInts{sizes[0]}, like), 0, flat, ones(SymInts{flat.numel()}, like));
          grad = grad / unsqueeze(index_select(counts, 0, flat), 1);
        }
        SymInt padding = g.argument("padding_idx").sym_int();
        if (bool(padding >= 0)) grad = masked_fill(grad, unsqueeze(flat == Scalar(padding), 1), 0);
        return index_add(zeros(sizes, TensorOptions(g.dtype("weight"), grad.device())), 0, flat, grad);
      });
}

}  // namespace tenon::ops
