// Rows of a table summed by bags.
#include "ops/by_name.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <limits>

namespace tenon::ops {
namespace {

enum Mode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

using Bags = std::tuple<Tensor, Tensor, Tensor, Tensor>;

// The largest of each column in each bag, and the row of the table that had it first; zeros for an empty bag.
std::pair<Tensor, Tensor> largest(const Tensor& rows, const Tensor& bag_of, const Tensor& counts, const Tensor& indices,
                                  const SymInt& bags) {
  const SymInts sizes{bags, rows.size(1)};
  Tensor place = expand(unsqueeze(bag_of, 1), rows.sym_sizes()), column = unsqueeze(counts, 1);
  const double nothing = -std::numeric_limits<double>::infinity();
  Tensor values = where(column, rows, full_like(rows, nothing));
  auto reduce = [&](const Tensor& into, const Tensor& from, std::string_view how) {
    return call_in_order("aten::scatter_reduce.two", {into, int64_t{0}, place, from, how, true});
  };
  Tensor most = reduce(full(sizes, nothing, TensorOptions(rows.dtype(), rows.device())), values, "amax");
  const TensorOptions numbers(kInt64, rows.device());
  Tensor positions = unsqueeze(arange(Scalar(rows.size(0)), numbers), 1);
  Tensor none = full(SymInts{}, Scalar(rows.size(0)), numbers);
  Tensor hit = logical_and(column, values == index_select(most, 0, bag_of));
  Tensor first = reduce(expand(none, sizes), where(hit, positions, none), "amin");
  Tensor found = first < none;
  // One more than there are, for bags that have none.
  Tensor list = cat({indices.to(kInt64), zeros(SymInts{1}, numbers)}, 0);
  Tensor rows_of = reshape(index_select(list, 0, reshape(first, {-1})), sizes);
  return {where(found, most, zeros_like(most)), rows_of};
}

// `of_backward`: what backward would need is as large as there are bags, else as offsets.
Bags embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, int64_t mode,
                   const std::optional<Tensor>& per_sample_weights, bool include_last_offset, int64_t padding_idx,
                   bool of_backward) {
  const char* op_name = "_embedding_bag";
  TENON_CHECK(weight.defined() && indices.defined() && offsets.defined(),
              "[{}] expected a tensor, got an undefined one", op_name);
  TENON_CHECK(weight.dim() == 2 && is_floating(weight.dtype()), "[{}] expected a floating point matrix, got {}",
              op_name, weight.description());
  for (const Tensor& list : {indices, offsets})
    TENON_CHECK(list.dim() == 1 && (list.dtype() == kInt64 || list.dtype() == kInt32),
                "[{}] expected lists of int64 or int32, got {}", op_name, list.description());
  TENON_CHECK(mode == kSum || mode == kMean || mode == kMax,
              "[{}] expected the mode 0 (sum), 1 (mean) or 2 (max), got {}", op_name, mode);
  TENON_CHECK(!per_sample_weights || mode == kSum, "[{}] weights of samples are for the mode 0 (sum), got {}", op_name,
              mode);
  Tensor starts = include_last_offset ? slice(offsets, 0, std::nullopt, -1) : offsets;
  const SymInt count = indices.size(0), bags = starts.size(0);
  TensorOptions numbers(indices.dtype(), indices.device());
  // The bag of a position is the last that starts at or before it.
  Tensor places = arange(Scalar(count), numbers), bag_of = searchsorted(starts, places, false, true) - 1;
  Tensor counts = indices != padding_idx;
  // Halves are rounded once, when their bag is full.
  const Dtype wide = compute_dtype(weight.dtype());
  Tensor rows = index_select(weight, 0, indices).to(wide);
  Tensor nothing = zeros(SymInts{bags}, numbers);
  Tensor sizes = index_add(nothing, 0, bag_of, counts.to(indices.dtype()));
  Tensor bag_numbers = bag_of.to(indices.dtype());
  if (mode == kMax) {
    auto [most, from] = largest(rows, bag_of, counts, indices, bags);
    return {most.to(weight.dtype()), bag_numbers, sizes, from.to(indices.dtype())};
  }
  if (per_sample_weights) rows = rows * unsqueeze(per_sample_weights->to(wide), 1);
  if (padding_idx >= 0) rows = where(unsqueeze(counts, 1), rows, zeros_like(rows));
  Tensor sums = index_add(zeros(SymInts{bags, weight.size(1)}, TensorOptions(wide, weight.device())), 0, bag_of, rows);
  if (mode == kMean)
    return {(sums / unsqueeze(clamp_min(sizes, 1), 1).to(wide)).to(weight.dtype()), bag_numbers, sizes, sizes.clone()};
  Tensor unused = of_backward ? nothing : zeros(offsets.sym_sizes(), numbers);
  // As in PyTorch, whose sums of these have a way of their own, which needs no numbers of bags.
  const bool quick = padding_idx < 0 && weight.dtype() != kFloat64;
  return {sums.to(weight.dtype()), quick ? zeros(SymInts{0}, numbers) : bag_numbers, unused, unused.clone()};
}

}  // namespace

OPS(bags) {
  op("_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool "
     "sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, "
     "Tensor, Tensor, Tensor)")
      .decompose([](const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool, int64_t mode, bool,
                    const std::optional<Tensor>& per_sample, bool include_last, int64_t padding) {
        return embedding_bag(weight, indices, offsets, mode, per_sample, include_last, padding, true);
      });
  op("_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int "
     "mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) "
     "-> (Tensor, Tensor, Tensor, Tensor)")
      .decompose([](const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool, int64_t mode, bool,
                    const std::optional<Tensor>& per_sample, bool include_last, int64_t padding) {
        return embedding_bag(weight, indices, offsets, mode, per_sample, include_last, padding, false);
      });
  op("embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool "
     "sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, "
     "Tensor)")
      .decompose([](const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool, int64_t mode, bool,
                    const std::optional<Tensor>& per_sample, bool include_last, std::optional<int64_t> padding) {
        return embedding_bag(weight, indices, offsets, mode, per_sample, include_last, padding.value_or(-1), true);
      });
  // Rows that are named and longer than that are shortened.
  op("embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& indices, double max_norm, double norm_type) {
        TENON_CHECK(self.defined() && self.dim() == 2 && is_floating(self.dtype()),
                    "[embedding_renorm] expected a table [rows, columns] of floating point numbers, got {}",
                    self.defined() ? self.description() : "an undefined tensor");
        TENON_CHECK(indices.defined() && (indices.dtype() == kInt64 || indices.dtype() == kInt32),
                    "[embedding_renorm] expected indices of int64 or int32, got {}",
                    indices.defined() ? indices.description() : "an undefined tensor");
        const TensorOptions flags(kInt64, self.device());
        Tensor named =
            index_put(zeros(SymInts{self.size(0)}, flags), {reshape(indices, {-1})}, ones(SymInts{}, flags)) != 0;
        Tensor wide = self.to(compute_dtype(self.dtype()));
        Tensor length = linalg_vector_norm(wide, norm_type, OptionalInts(Ints{1}), true);
        Tensor factor =
            where(logical_and(unsqueeze(named, 1), length > max_norm), max_norm / (length + 1e-7), ones_like(length));
        return (wide * factor).to(self.dtype());
      })
      .with_inplace();
}

}  // namespace tenon::ops
