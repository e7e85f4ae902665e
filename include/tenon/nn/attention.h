// Attention, and the layers of transformers. Parameters have PyTorch's names.
#pragma once

#include <tenon/nn/containers.h>
#include <tenon/nn/dropout.h>
#include <tenon/nn/linear.h>
#include <tenon/nn/normalization.h>

#include <tuple>

namespace tenon {

//   AttentionOptions options{.is_causal = true};
//   Tensor q = ones({1, 2, 4, 8});                                          // [batch, heads, length, features]
//   Tensor result = scaled_dot_product_attention(q, q, q, options);
struct AttentionOptions {
  std::optional<Tensor> mask = {};  // bools: true takes part; numbers: added to the scores
  double dropout_p = 0;
  bool is_causal = false;  // nobody looks ahead
  std::optional<double> scale = {};
};
// softmax(q · kᵀ / √features) · v, the operator with its options by name. A mask and `is_causal` are both heeded.
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionOptions& options);

}  // namespace tenon

namespace tenon::nn {

//   nn::MultiheadAttentionOptions options{.dropout = 0.1, .batch_first = true};
struct MultiheadAttentionOptions {
  double dropout = 0;
  bool bias = true;
  bool batch_first = false;  // [batch, length, features] instead of [length, batch, features]
  Dtype dtype = kFloat32;
};

// Masks as PyTorch's modules have them: bools where true is left out, or numbers that are added.
struct AttentionMasks {
  std::optional<Tensor> key_padding = {};  // [batch, keys]
  std::optional<Tensor> attention = {};    // [queries, keys] or [batch · heads, queries, keys]
  bool is_causal = false;
};

//   nn::MultiheadAttention layer(8, 2, {.batch_first = true});
//   Tensor q = ones({3, 5, 8});
//   auto [result, weights] = layer(q, q, q);                               // [3, 5, 8], and [3, 5, 5]
//   auto [masked, same] = layer(q, q, q, nn::AttentionMasks{.is_causal = true});
class MultiheadAttention : public Module {
 public:
  MultiheadAttention(int64_t embed_dim, int64_t num_heads, const MultiheadAttentionOptions& options = {});
  // The result, and the weights as the mean of all heads; they are undefined unless they are needed.
  std::tuple<Tensor, Tensor> operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                        const AttentionMasks& masks = {}, bool need_weights = true) const;

  Cell<Tensor> in_proj_weight, in_proj_bias;
  Linear out_proj;

 private:
  std::vector<Tensor> attend(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionMasks& masks,
                             bool need_weights) const;
  int64_t features_, heads_;
  MultiheadAttentionOptions options_;
};

//   nn::TransformerOptions options{.dim_feedforward = 64, .dropout = 0, .activation = "gelu", .norm_first = true};
struct TransformerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::string activation = "relu";  // or "gelu"
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;  // normalises before attention and feed-forward instead of after
  Dtype dtype = kFloat32;
};

//   nn::TransformerEncoderLayer layer(8, 2, {.dim_feedforward = 16, .batch_first = true});
//   Tensor result = layer(ones({3, 5, 8}));
//   Tensor causal = layer(ones({3, 5, 8}), nn::AttentionMasks{.is_causal = true});
class TransformerEncoderLayer : public Module {
 public:
  TransformerEncoderLayer(int64_t d_model, int64_t nhead, const TransformerOptions& options = {});
  Tensor operator()(const Tensor& source, const AttentionMasks& masks = {}) const;

  MultiheadAttention self_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2;

 private:
  Tensor feed_forward(const Tensor& x) const;
  TransformerOptions options_;
};

//   nn::TransformerDecoderLayer layer(8, 2, {.dim_feedforward = 16, .batch_first = true});
//   Tensor result = layer(ones({3, 5, 8}), ones({3, 7, 8}));
class TransformerDecoderLayer : public Module {
 public:
  TransformerDecoderLayer(int64_t d_model, int64_t nhead, const TransformerOptions& options = {});
  Tensor operator()(const Tensor& target, const Tensor& memory, const AttentionMasks& target_masks = {},
                    const AttentionMasks& memory_masks = {}) const;

  MultiheadAttention self_attn, multihead_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2, norm3;

 private:
  Tensor feed_forward(const Tensor& x) const;
  TransformerOptions options_;
};

// Several layers, each with parameters of its own that begin as the given one's.
//
//   nn::TransformerEncoderLayer layer(8, 2, {.dim_feedforward = 16});
//   Tensor result = nn::TransformerEncoder(layer, 2)(ones({5, 3, 8}));
//   nn::TransformerDecoderLayer other(8, 2, {.dim_feedforward = 16});
//   Tensor decoded = nn::TransformerDecoder(other, 2)(ones({5, 3, 8}), result);
class TransformerEncoder : public Module {
 public:
  TransformerEncoder(const TransformerEncoderLayer& layer, int64_t num_layers);
  Tensor operator()(const Tensor& source, const AttentionMasks& masks = {}) const;

  ModuleList<TransformerEncoderLayer> layers;
};
class TransformerDecoder : public Module {
 public:
  TransformerDecoder(const TransformerDecoderLayer& layer, int64_t num_layers);
  Tensor operator()(const Tensor& target, const Tensor& memory, const AttentionMasks& target_masks = {},
                    const AttentionMasks& memory_masks = {}) const;

  ModuleList<TransformerDecoderLayer> layers;
};

}  // namespace tenon::nn
