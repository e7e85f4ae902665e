// Tables of vectors.
#pragma once

#include <tenon/nn/layer.h>

namespace tenon::nn {

//   nn::EmbeddingOptions options{.padding_idx = 0};
struct EmbeddingOptions {
  std::optional<int64_t> padding_idx = {};  // this row is zeros and gets no gradient
  Dtype dtype = kFloat32;
};

// Row `n` for each number n, with weight [num_embeddings, embedding_dim] normal.
//
//   nn::Embedding layer(10, 4);
//   Tensor rows = layer(zeros({2, 3}, kInt64));  // [2, 3, 4]
class Embedding : public Module {
 public:
  Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options = {});
  Tensor operator()(const Tensor& indices) const;

  Cell<Tensor> weight;

 private:
  int64_t padding_;
};

enum class BagMode : uint8_t { Sum, Mean, Max };

//   nn::EmbeddingBagOptions options{.mode = nn::BagMode::Sum};
struct EmbeddingBagOptions {
  BagMode mode = BagMode::Mean;
  Dtype dtype = kFloat32;
};

// The sum, mean or maximum of several rows: of each row of indices [B, n], or of the parts of indices [n] that begin at
// `offsets` [B] (not the maximum).
//
//   nn::EmbeddingBag layer(10, 4);
//   Tensor bags = layer(zeros({2, 3}, kInt64));                                          // [2, 4]
//   Tensor parts = layer(zeros({5}, kInt64), tensor({0, 3}));                            // [2, 4]
class EmbeddingBag : public Module {
 public:
  EmbeddingBag(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingBagOptions& options = {});
  Tensor operator()(const Tensor& indices, const std::optional<Tensor>& offsets = {}) const;

  Cell<Tensor> weight;

 private:
  BagMode mode_;
};

}  // namespace tenon::nn
