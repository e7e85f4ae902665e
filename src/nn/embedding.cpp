#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>
#include <tenon/nn/embedding.h>

#include <fmt/format.h>

namespace tenon::nn {
namespace {

Tensor table(const char* kind, int64_t rows, int64_t columns, Dtype dtype) {
  NoGrad off;
  TENON_CHECK_VALUE(rows > 0 && columns > 0, "[{}] expected at least one row and column, got {} and {}", kind, rows,
                    columns);
  TENON_CHECK(is_floating(dtype), "[{}] expected a floating point dtype, got {}", kind, name(dtype));
  return randn({rows, columns}, TensorOptions(dtype));
}

}  // namespace

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options)
    : padding_(options.padding_idx.value_or(-1)) {
  Tensor rows = table("Embedding", num_embeddings, embedding_dim, options.dtype);
  std::string details = fmt::format("{}, {}", num_embeddings, embedding_dim);
  if (options.padding_idx) {
    NoGrad off;
    padding_ += padding_ < 0 ? num_embeddings : 0;
    TENON_CHECK_VALUE(padding_ >= 0 && padding_ < num_embeddings,
                      "[Embedding] expected a padding_idx within {} rows, got {}", num_embeddings,
                      *options.padding_idx);
    rows[padding_].zero_();
    details += fmt::format(", padding_idx={}", padding_);
  }
  weight = parameter("weight", rows);
  describe("Embedding", details);
}

Tensor Embedding::operator()(const Tensor& indices) const {
  return run(indices, [&](const Tensor& x) { return embedding(weight.get(), x, padding_); });
}

EmbeddingBag::EmbeddingBag(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingBagOptions& options)
    : mode_(options.mode) {
  weight = parameter("weight", table("EmbeddingBag", num_embeddings, embedding_dim, options.dtype));
  constexpr const char* names[] = {"sum", "mean", "max"};
  describe("EmbeddingBag",
           fmt::format("{}, {}, mode='{}'", num_embeddings, embedding_dim, names[static_cast<size_t>(mode_)]));
}

Tensor EmbeddingBag::operator()(const Tensor& indices, const std::optional<Tensor>& offsets) const {
  return run(indices, [&](const Tensor& x) {
    TENON_CHECK(x.defined() && x.dim() == (offsets ? 1 : 2),
                "[EmbeddingBag] expected indices [B, n], or [n] and offsets, got {}",
                x.defined() ? x.description() : "an undefined tensor");
    Tensor rows = embedding(weight.get(), x);
    if (!offsets) {
      if (mode_ == BagMode::Max) return std::get<0>(max(rows, 1));
      return mode_ == BagMode::Sum ? sum(rows, 1) : mean(rows, 1);
    }
    TENON_CHECK(offsets->defined() && offsets->dim() == 1, "[EmbeddingBag] expected offsets of one dimension, got {}",
                offsets->defined() ? offsets->description() : "an undefined tensor");
    TENON_CHECK_IMPLEMENTED(mode_ != BagMode::Max, "[EmbeddingBag] the maximum takes indices [B, n], not offsets");
    // The bag of each index: how many bags have begun by then, less one.
    Tensor places = arange(Scalar(x.size(0)), TensorOptions(offsets->dtype()));
    Tensor bags = sum((unsqueeze(places, 1) >= unsqueeze(*offsets, 0)).to(kInt64), 1) - 1;
    SymInts sizes{offsets->size(0), rows.size(1)};
    Tensor total = index_add(zeros(sizes, TensorOptions(rows.dtype())), 0, bags, rows);
    if (mode_ == BagMode::Sum) return total;
    Tensor counts = index_add(zeros({offsets->size(0)}, TensorOptions(rows.dtype())), 0, bags,
                              ones({x.size(0)}, TensorOptions(rows.dtype())));
    return total / unsqueeze(clamp_min(counts, 1), 1);
  });
}

}  // namespace tenon::nn
