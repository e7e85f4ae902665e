// Rows of a table summed by bags, and positions repeated by counts.
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

enum Mode : int64_t { kSum = 0, kMean = 1 };

using Bags = std::tuple<Tensor, Tensor, Tensor, Tensor>;

Bags embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq,
                   int64_t mode, bool sparse, const std::optional<Tensor>& per_sample_weights, bool include_last_offset,
                   int64_t padding_idx) {
  const char* op_name = "_embedding_bag";
  TENON_CHECK(weight.defined() && indices.defined() && offsets.defined(),
              "[{}] expected a tensor, got an undefined one", op_name);
  TENON_CHECK(weight.dim() == 2 && is_floating(weight.dtype()), "[{}] expected a floating point matrix, got {}",
              op_name, weight.description());
  for (const Tensor& list : {indices, offsets})
    TENON_CHECK(list.dim() == 1 && (list.dtype() == kInt64 || list.dtype() == kInt32),
                "[{}] expected lists of int64 or int32, got {}", op_name, list.description());
  TENON_CHECK_IMPLEMENTED((mode == kSum || mode == kMean) && !scale_grad_by_freq && !sparse && padding_idx < 0,
                          "[{}] expected the mode 0 (sum) or 1 (mean) without padding, sparse or scaled gradients, got "
                          "the mode {}",
                          op_name, mode);
  TENON_CHECK(!per_sample_weights || mode == kSum, "[{}] weights of samples are for the mode 0 (sum), got {}", op_name,
              mode);
  Tensor starts = include_last_offset ? slice(offsets, 0, std::nullopt, -1) : offsets;
  const SymInt count = indices.size(0), bags = starts.size(0);
  TensorOptions numbers(indices.dtype(), indices.device());
  // The bag of a position is the last that starts at or before it.
  Tensor places = arange(Scalar(count), numbers), bag_of = searchsorted(starts, places, false, true) - 1;
  // Halves are rounded once, when their bag is full.
  const Dtype wide = compute_dtype(weight.dtype());
  Tensor rows = index_select(weight, 0, indices).to(wide);
  if (per_sample_weights) rows = rows * unsqueeze(per_sample_weights->to(wide), 1);
  Tensor sums = index_add(zeros(SymInts{bags, weight.size(1)}, TensorOptions(wide, weight.device())), 0, bag_of, rows);
  Tensor nothing = zeros(SymInts{bags}, numbers);
  if (mode == kSum) return {sums.to(weight.dtype()), zeros(SymInts{0}, numbers), nothing, nothing.clone()};
  Tensor sizes = index_add(nothing, 0, bag_of, ones_like(indices));
  return {(sums / unsqueeze(clamp_min(sizes, 1), 1).to(wide)).to(weight.dtype()), bag_of.to(indices.dtype()), sizes,
          sizes.clone()};
}

}  // namespace

OPS(bags) {
  op("_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool "
     "sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, "
     "Tensor, Tensor, Tensor)")
      .decompose(embedding_bag);
  op("_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int "
     "mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) "
     "-> (Tensor, Tensor, Tensor, Tensor)")
      .decompose(embedding_bag);
  op("repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor")
      .decompose([](const Tensor& repeats, const std::optional<SymInt>& output_size) {
        TENON_CHECK(repeats.defined(), "[repeat_interleave] expected a tensor, got an undefined one");
        return _repeated_positions(repeats, output_size);
      });
}

}  // namespace tenon::ops
