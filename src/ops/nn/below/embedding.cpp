// The gradient of the rows of a table as an operator.
#include <tenon/ops/table.h>

namespace tenon::ops {

OPS(embedding_backward) {
  op("embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool "
     "scale_grad_by_freq) -> Tensor")
      .decompose([](const Tensor& grad_output, const Tensor& indices, const SymInt& num_weights,
                    const SymInt& padding_idx, bool scale_grad_by_freq) {
        TENON_CHECK(grad_output.dim() == indices.dim() + 1,
                    "[embedding_dense_backward] expected a row for each of the indices {}, got {}",
                    indices.description(), grad_output.description());
        Tensor flat = reshape(indices, {-1}), rows = reshape(grad_output, SymInts{flat.numel(), grad_output.size(-1)});
        TensorOptions like(rows.dtype(), rows.device());
        if (scale_grad_by_freq) {
          Tensor counts = index_add(zeros({num_weights}, like), 0, flat, ones({flat.numel()}, like));
          rows = rows / unsqueeze(index_select(counts, 0, flat), 1);
        }
        if (bool(padding_idx >= 0)) rows = masked_fill(rows, unsqueeze(flat == Scalar(padding_idx), 1), 0);
        return index_add(zeros({num_weights, rows.size(1)}, like), 0, flat, rows);
      });
}

}  // namespace tenon::ops
