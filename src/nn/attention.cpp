#include "uniform.h"

#include <tenon/generated/ops.h>
#include <tenon/nn/attention.h>

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace tenon {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Scores with -inf where nobody looks.
Tensor masked(const Tensor& scores, const AttentionOptions& options) {
  Tensor result = scores;
  if (options.mask)
    result = options.mask->dtype() == kBool ? masked_fill(result, logical_not(*options.mask), -kInfinity)
                                            : result + options.mask->to(result.dtype());
  if (options.is_causal) {
    Tensor seen = tril(ones({scores.size(-2), scores.size(-1)}, TensorOptions(kBool, scores.device())));
    result = masked_fill(result, logical_not(seen), -kInfinity);
  }
  return result;
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionOptions& options) {
  std::optional<Tensor> mask = options.mask;
  bool causal = options.is_causal;
  if (mask && causal) {
    Tensor seen = tril(ones({query.size(-2), key.size(-2)}, TensorOptions(kBool, query.device())));
    mask = mask->dtype() == kBool ? logical_and(*mask, seen)
                                  : *mask + masked_fill(zeros_like(seen, TensorOptions(mask->dtype(), mask->device())),
                                                        logical_not(seen), -kInfinity);
    causal = false;
  }
  return scaled_dot_product_attention(query, key, value, mask, options.dropout_p, causal, options.scale);
}

}  // namespace tenon

namespace tenon::nn {
namespace {

Tensor sublayer_dropout(const Tensor& x, double p, bool training) { return p > 0 ? dropout(x, p, training) : x; }

MultiheadAttentionOptions attention_options(const TransformerOptions& o) {
  return {.dropout = o.dropout, .batch_first = o.batch_first, .dtype = o.dtype};
}
LinearOptions linear_options(const TransformerOptions& o) { return {.dtype = o.dtype}; }
LayerNormOptions norm_options(const TransformerOptions& o) { return {.eps = o.layer_norm_eps, .dtype = o.dtype}; }

Tensor activated(const Tensor& x, const std::string& activation) { return activation == "gelu" ? gelu(x) : relu(x); }

void check(const char* kind, const TransformerOptions& o) {
  TENON_CHECK_VALUE(o.activation == "relu" || o.activation == "gelu",
                    "[{}] expected an activation of 'relu' or 'gelu', got '{}'", kind, o.activation);
}

// Where true is left out: -inf there. Numbers stay.
Tensor added(const Tensor& mask, Dtype dtype) {
  if (mask.dtype() != kBool) return mask.to(dtype);
  return masked_fill(zeros(mask.sym_sizes(), TensorOptions(dtype, mask.device())), mask, -kInfinity);
}

}  // namespace

MultiheadAttention::MultiheadAttention(int64_t embed_dim, int64_t num_heads, const MultiheadAttentionOptions& options)
    : out_proj(embed_dim > 0 ? embed_dim : 1, embed_dim > 0 ? embed_dim : 1,
               {.bias = options.bias, .dtype = options.dtype}),
      features_(embed_dim),
      heads_(num_heads),
      options_(options) {
  TENON_CHECK_VALUE(embed_dim > 0 && num_heads > 0 && embed_dim % num_heads == 0,
                    "[MultiheadAttention] expected features that {} heads divide, got {}", num_heads, embed_dim);
  // Glorot's rule, over inputs and outputs of the three maps together.
  double bound = std::sqrt(6.0 / static_cast<double>(4 * embed_dim));
  in_proj_weight = parameter("in_proj_weight", uniform({3 * embed_dim, embed_dim}, bound, options.dtype));
  in_proj_bias =
      parameter("in_proj_bias", options.bias ? zeros({3 * embed_dim}, TensorOptions(options.dtype)) : Tensor());
  submodule("out_proj", out_proj);
  describe("MultiheadAttention");
}

std::tuple<Tensor, Tensor> MultiheadAttention::operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                                          const AttentionMasks& masks, bool need_weights) const {
  std::vector<Tensor> results = run(std::vector<Tensor>{query, key, value}, [&](const std::vector<Tensor>& given) {
    return attend(given[0], given[1], given[2], masks, need_weights);
  });
  return {results[0], results[1]};
}

std::vector<Tensor> MultiheadAttention::attend(const Tensor& query, const Tensor& key, const Tensor& value,
                                               const AttentionMasks& masks, bool need_weights) const {
  for (const Tensor& each : {query, key, value})
    TENON_CHECK(each.defined() && (each.dim() == 2 || each.dim() == 3) && bool(each.size(-1) == features_),
                "[MultiheadAttention] expected tensors of {} features and 2 or 3 dimensions, got {}", features_,
                each.defined() ? each.description() : "an undefined one");
  const bool batched = query.dim() == 3;
  auto batch_first = [&](const Tensor& x) {
    return !batched ? unsqueeze(x, 0) : options_.batch_first ? x : transpose(x, 0, 1);
  };
  std::vector<Tensor> weights = chunk(in_proj_weight.get(), 3), offsets;
  if (std::optional<Tensor> bias = given(in_proj_bias)) offsets = chunk(*bias, 3);
  auto heads = [&](const Tensor& x, size_t which) {
    Tensor sequence = batch_first(x);
    Tensor mapped = linear(sequence, weights[which], offsets.empty() ? std::nullopt : std::optional(offsets[which]));
    SymInts sizes{sequence.size(0), sequence.size(1), SymInt(heads_), SymInt(features_ / heads_)};
    return transpose(view(mapped, sizes), 1, 2);  // [batch, heads, length, features]
  };
  Tensor q = heads(query, 0), k = heads(key, 1), v = heads(value, 2);
  AttentionOptions options{.dropout_p = is_training() ? options_.dropout : 0, .is_causal = masks.is_causal};
  if (masks.attention) {
    Tensor mask = added(*masks.attention, q.dtype());
    options.mask = mask.dim() == 3 ? view(mask, SymInts{q.size(0), SymInt(heads_), q.size(2), k.size(2)}) : mask;
  }
  if (masks.key_padding) {
    Tensor mask = added(*masks.key_padding, q.dtype());
    if (mask.dim() == 1) mask = unsqueeze(mask, 0);
    mask = unsqueeze(unsqueeze(mask, 1), 1);
    options.mask = options.mask ? *options.mask + mask : mask;
  }
  Tensor shares, mixed;
  if (need_weights) {
    Tensor scores = matmul(q * (1 / std::sqrt(static_cast<double>(features_ / heads_))), transpose(k, -2, -1));
    Tensor each = softmax(masked(scores, options), -1);
    if (options.dropout_p > 0) each = dropout(each, options.dropout_p, true);
    mixed = matmul(each, v);
    shares = mean(each, 1);
    if (!batched) shares = squeeze(shares, 0);
  } else {
    mixed = scaled_dot_product_attention(q, k, v, options);
  }
  Tensor joined = reshape(transpose(mixed, 1, 2), SymInts{q.size(0), q.size(2), SymInt(features_)});
  Tensor result = out_proj(joined);
  return {!batched ? squeeze(result, 0) : options_.batch_first ? result : transpose(result, 0, 1), shares};
}

TransformerEncoderLayer::TransformerEncoderLayer(int64_t d_model, int64_t nhead, const TransformerOptions& o)
    : self_attn(submodule("self_attn", MultiheadAttention(d_model, nhead, attention_options(o)))),
      linear1(submodule("linear1", Linear(d_model, o.dim_feedforward, linear_options(o)))),
      linear2(submodule("linear2", Linear(o.dim_feedforward, d_model, linear_options(o)))),
      norm1(submodule("norm1", LayerNorm(d_model, norm_options(o)))),
      norm2(submodule("norm2", LayerNorm(d_model, norm_options(o)))),
      options_(o) {
  check("TransformerEncoderLayer", o);
  describe("TransformerEncoderLayer");
}

Tensor TransformerEncoderLayer::feed_forward(const Tensor& x) const {
  Tensor inner = sublayer_dropout(activated(linear1(x), options_.activation), options_.dropout, is_training());
  return sublayer_dropout(linear2(inner), options_.dropout, is_training());
}

Tensor TransformerEncoderLayer::operator()(const Tensor& source, const AttentionMasks& masks) const {
  return run(source, [&](const Tensor& input) {
    auto attend = [&](const Tensor& x) {
      return sublayer_dropout(std::get<0>(self_attn(x, x, x, masks, false)), options_.dropout, is_training());
    };
    if (options_.norm_first) {
      Tensor x = input + attend(norm1(input));
      return x + feed_forward(norm2(x));
    }
    Tensor x = norm1(input + attend(input));
    return norm2(x + feed_forward(x));
  });
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t d_model, int64_t nhead, const TransformerOptions& o)
    : self_attn(submodule("self_attn", MultiheadAttention(d_model, nhead, attention_options(o)))),
      multihead_attn(submodule("multihead_attn", MultiheadAttention(d_model, nhead, attention_options(o)))),
      linear1(submodule("linear1", Linear(d_model, o.dim_feedforward, linear_options(o)))),
      linear2(submodule("linear2", Linear(o.dim_feedforward, d_model, linear_options(o)))),
      norm1(submodule("norm1", LayerNorm(d_model, norm_options(o)))),
      norm2(submodule("norm2", LayerNorm(d_model, norm_options(o)))),
      norm3(submodule("norm3", LayerNorm(d_model, norm_options(o)))),
      options_(o) {
  check("TransformerDecoderLayer", o);
  describe("TransformerDecoderLayer");
}

Tensor TransformerDecoderLayer::feed_forward(const Tensor& x) const {
  Tensor inner = sublayer_dropout(activated(linear1(x), options_.activation), options_.dropout, is_training());
  return sublayer_dropout(linear2(inner), options_.dropout, is_training());
}

Tensor TransformerDecoderLayer::operator()(const Tensor& target, const Tensor& memory,
                                           const AttentionMasks& target_masks,
                                           const AttentionMasks& memory_masks) const {
  return run(target, memory, [&](const Tensor& input, const Tensor& remembered) {
    auto attend = [&](const Tensor& x) {
      return sublayer_dropout(std::get<0>(self_attn(x, x, x, target_masks, false)), options_.dropout, is_training());
    };
    auto look = [&](const Tensor& x) {
      return sublayer_dropout(std::get<0>(multihead_attn(x, remembered, remembered, memory_masks, false)),
                              options_.dropout, is_training());
    };
    if (options_.norm_first) {
      Tensor x = input + attend(norm1(input));
      x = x + look(norm2(x));
      return x + feed_forward(norm3(x));
    }
    Tensor x = norm1(input + attend(input));
    x = norm2(x + look(x));
    return norm3(x + feed_forward(x));
  });
}

TransformerEncoder::TransformerEncoder(const TransformerEncoderLayer& layer, int64_t num_layers) {
  TENON_CHECK_VALUE(num_layers > 0, "[TransformerEncoder] expected at least one layer, got {}", num_layers);
  for (int64_t at = 0; at < num_layers; ++at) layers.push_back(clone(layer));
  submodule("layers", layers);
  describe("TransformerEncoder");
}
Tensor TransformerEncoder::operator()(const Tensor& source, const AttentionMasks& masks) const {
  return run(source, [&](const Tensor& input) {
    Tensor x = input;
    for (const TransformerEncoderLayer& layer : layers) x = layer(x, masks);
    return x;
  });
}

TransformerDecoder::TransformerDecoder(const TransformerDecoderLayer& layer, int64_t num_layers) {
  TENON_CHECK_VALUE(num_layers > 0, "[TransformerDecoder] expected at least one layer, got {}", num_layers);
  for (int64_t at = 0; at < num_layers; ++at) layers.push_back(clone(layer));
  submodule("layers", layers);
  describe("TransformerDecoder");
}
Tensor TransformerDecoder::operator()(const Tensor& target, const Tensor& memory, const AttentionMasks& target_masks,
                                      const AttentionMasks& memory_masks) const {
  return run(target, memory, [&](const Tensor& input, const Tensor& remembered) {
    Tensor x = input;
    for (const TransformerDecoderLayer& layer : layers) x = layer(x, remembered, target_masks, memory_masks);
    return x;
  });
}

}  // namespace tenon::nn
