// Attention: by tiles where nothing is dropped, else written with softmax and products.
#include <tenon/kernels/attention.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <cmath>
#include <limits>

namespace tenon::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::string_view kName = "scaled_dot_product_attention";
constexpr std::string_view kTiled = "_scaled_dot_product_flash_attention_for_cpu";

Scalar scale_of(const std::optional<double>& scale, const Tensor& query) {
  return scale ? Scalar(*scale) : Scalar(1.0 / sqrt(SymFloat(query.size(-1))));
}
std::optional<double> scale_in(const dispatch::Value& scale) {
  return scale.is_none() ? std::nullopt : std::optional(scale.real());
}

void check_inputs(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask,
                  bool causal, std::string_view op_name) {
  TENON_CHECK(query.defined() && key.defined() && value.defined(), "[{}] expected a tensor, got an undefined one",
              op_name);
  TENON_CHECK(query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2 && query.dtype() == key.dtype() &&
                  query.dtype() == value.dtype() && is_floating(query.dtype()),
              "[{}] expected floating point tensors [..., length, features] of one dtype, got {}, {} and {}", op_name,
              query.description(), key.description(), value.description());
  TENON_CHECK(same_size(query.size(-1), key.size(-1)) && same_size(key.size(-2), value.size(-2)),
              "[{}] queries {}, keys {} and values {} do not fit: expected as many features of queries and keys, and "
              "as many keys as values",
              op_name, query.description(), key.description(), value.description());
  TENON_CHECK(!mask || mask->defined(), "[{}] expected a mask, got an undefined tensor", op_name);
  TENON_CHECK(!mask || mask->dtype() == kBool || mask->dtype() == query.dtype() || mask->dtype() == kFloat32,
              "[{}] expected a mask of bools or of {}, got {}", op_name, name(query.dtype()), mask->description());
  TENON_CHECK(!mask || !causal, "[{}] expected a mask or is_causal, not both", op_name);
}

// Each head of keys and values, as often as heads of queries share it.
Tensor for_each_query_head(const Tensor& heads, const SymInt& wanted) {
  if (heads.dim() < 4 || heads.size(-3).same(wanted)) return heads;
  SymInts sizes = heads.sym_sizes(), apart = sizes;
  size_t at = sizes.size() - 3;
  sizes[at] = wanted;
  SymInt each = wanted / heads.size(-3);
  apart.insert(apart.begin() + static_cast<ptrdiff_t>(at) + 1, each);
  return reshape(expand(unsqueeze(heads, static_cast<int64_t>(at) + 1), apart), sizes);
}
// Its gradient.
Tensor for_key_heads(const Tensor& grad, const SymInt& heads) {
  if (grad.size(1).same(heads)) return grad;
  SymInts sizes = grad.sym_sizes();
  return sum(reshape(grad, SymInts{sizes[0], heads, sizes[1] / heads, sizes[2], sizes[3]}), 2);
}

// Scores of keys by query, what each query makes of them, and where it sees none at all.
struct Weights {
  Tensor scores, weights, blind;

  Weights(const Tensor& query, const Tensor& key, const std::optional<Tensor>& mask, bool causal, const Scalar& scale) {
    scores = matmul(query * scale, transpose(key, -2, -1));
    if (causal) {
      Tensor seen = tril(ones(SymInts{scores.size(-2), scores.size(-1)}, TensorOptions(kBool, scores.device())));
      scores = masked_fill(scores, logical_not(seen), -kInfinity);
    }
    if (mask)
      scores = mask->dtype() == kBool ? masked_fill(scores, logical_not(*mask), -kInfinity)
                                      : scores + mask->to(scores.dtype());
    if (!mask) {
      weights = softmax(scores, -1);
      return;
    }
    // A query that sees nothing takes nothing, instead of 0 / 0.
    blind = all(scores == -kInfinity, OptionalInts(Ints{-1}), true);
    weights = masked_fill(softmax(masked_fill(scores, blind, 0), -1), blind, 0);
  }
};

Tensor by_products(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask,
                   double dropout_p, bool causal, const Scalar& scale) {
  bool heads = query.dim() >= 3;
  Tensor k = heads ? for_each_query_head(key, query.size(-3)) : key,
         v = heads ? for_each_query_head(value, query.size(-3)) : value;
  Tensor weights = Weights(query, k, mask, causal, scale).weights;
  if (dropout_p > 0) weights = dropout(weights, dropout_p, true);
  return matmul(weights, v);
}

// Whether tiles serve: [batch, heads, …] with one batch, and heads that those of keys divide.
bool is_tiled(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask) {
  if (query.dim() != 4 || key.dim() != 4 || value.dim() != 4 || !kernels::attention_supports(query.dtype()))
    return false;
  bool fits = decide_or(query.size(0) == key.size(0), false) && decide_or(query.size(0) == value.size(0), false) &&
              decide_or(key.size(1) == value.size(1), false) && decide_or(key.size(1) > 0, true) &&
              decide_or(query.size(1) % key.size(1) == 0, false);
  if (!fits || !mask) return fits;
  SymInts sizes = mask->sym_sizes(), scores{query.size(0), query.size(1), query.size(2), key.size(2)};
  fits = sizes.size() <= 4;
  for (size_t dim = 0; fits && dim < sizes.size(); ++dim) {
    const SymInt& whole = scores[4 - sizes.size() + dim];
    fits = is_one(sizes[dim]) || sizes[dim].same(whole) || decide_or(sizes[dim] == whole, false);
  }
  return fits;
}

// Heads stand between rows, as a projection behind wants to see them: [batch, queries, heads, …] in memory.
TensorMeta rows_apart(const SymInts& sizes, Dtype dtype, Device device) {
  SymInt rest = sizes.size() == 4 ? sizes[3] : SymInt(1);
  SymInts strides{sizes[1] * sizes[2] * rest, rest, sizes[1] * rest};
  if (sizes.size() == 4) strides.push_back(1);
  return {sizes, strides, dtype, device};
}
Tensor rows_apart(const Tensor& result) {
  return transpose(clone(transpose(result, 1, 2), MemoryFormat::Contiguous), 1, 2);
}
// Whether the heads of the queries lie one behind the other: then those of the result do, too.
bool heads_apart(const Tensor& query) { return decide_typically(query.sym_strides()[1] >= query.sym_strides()[2]); }

std::optional<Tensor> mask_in(const Arguments& arguments) {
  const dispatch::Value& mask = arguments["attn_mask"];
  return mask.is_none() ? std::nullopt : std::optional(mask.tensor());
}

void check_tiles(const Arguments& arguments, std::string_view op_name) {
  const Tensor &query = arguments.tensor("query"), &key = arguments.tensor("key"), &value = arguments.tensor("value");
  std::optional<Tensor> mask = mask_in(arguments);
  check_inputs(query, key, value, mask, arguments.boolean("is_causal"), op_name);
  TENON_CHECK(arguments["dropout_p"].real() == 0, "[{}] expected a dropout_p of 0, got {}", op_name,
              arguments["dropout_p"].real());
  TENON_CHECK(query.dim() == 4 && key.dim() == 4 && value.dim() == 4 && same_size(query.size(0), key.size(0)) &&
                  same_size(query.size(0), value.size(0)) && same_size(key.size(1), value.size(1)) &&
                  expect(key.size(1) > 0) && expect(query.size(1) % key.size(1) == 0),
              "[{}] expected tensors [batch, heads, length, features] of one batch, got {}, {} and {}", op_name,
              query.description(), key.description(), value.description());
  if (!mask) return;
  SymInts sizes = mask->sym_sizes(), scores{query.size(0), query.size(1), query.size(2), key.size(2)};
  bool fits = sizes.size() <= 4;
  for (size_t dim = 0; fits && dim < sizes.size(); ++dim)
    fits = broadcasts_to(sizes[dim], scores[4 - sizes.size() + dim]);
  TENON_CHECK(fits, "[{}] a mask {} cannot be broadcast to {}", op_name, mask->description(), str(scores));
}

bool takes_tiles(const Arguments& arguments) {
  const Tensor& query = arguments.tensor("query");
  std::optional<Tensor> mask = mask_in(arguments);
  return kernels::attention_supports(query.dtype()) &&
         (!mask || mask->dtype() == kBool || mask->dtype() == query.dtype());
}

kernels::AttentionRule rule_of(const Arguments& arguments) {
  const dispatch::Value &scale = arguments["scale"], &mask = arguments["attn_mask"];
  double features = static_cast<double>(arguments.tensor("query").sizes()[3]);
  return {scale.is_none() ? 1 / std::sqrt(features) : scale.real(), arguments.boolean("is_causal"),
          mask.is_none() ? nullptr : &mask.tensor()};
}

// The gradients of query, key, value and mask, in terms of operators that have gradients themselves.
std::vector<Tensor> composed_gradients(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                                       const std::optional<Tensor>& mask, bool causal, const Scalar& scale) {
  Tensor k = for_each_query_head(key, query.size(1)), v = for_each_query_head(value, query.size(1));
  Tensor weights = Weights(query, k, mask, causal, scale).weights;
  Tensor by_weight = matmul(grad, transpose(v, -2, -1));
  Tensor by_score = weights * (by_weight - sum(by_weight * weights, -1, true));
  Tensor of_key = matmul(transpose(by_score, -2, -1), query) * scale,
         of_value = matmul(transpose(weights, -2, -1), grad);
  return {matmul(by_score, k) * scale, for_key_heads(of_key, key.size(1)), for_key_heads(of_value, value.size(1)),
          by_score};
}

Tensor input_gradient(Grad& g, size_t which) {
  std::optional<Tensor> mask = g.has("attn_mask") ? std::optional(g.saved("attn_mask")) : std::nullopt;
  std::optional<double> scale = scale_in(g.argument("scale"));
  bool causal = g.argument("is_causal").boolean();
  return g.once([&]() -> std::vector<Tensor> {
    Tensor query = g.saved("query"), key = g.saved("key"), value = g.saved("value");
    if (g.is_recorded()) return composed_gradients(g.grad(), query, key, value, mask, causal, scale_of(scale, query));
    auto [of_query, of_key, of_value] = _scaled_dot_product_flash_attention_for_cpu_backward(
        g.grad(), query, key, value, g.saved("output"), g.saved("logsumexp"), 0.0, causal, mask, scale);
    return {of_query, of_key, of_value};
  })[which];
}

// Not by `once`: it needs the scores, which the others do not have.
Tensor mask_gradient(Grad& g) {
  Tensor query = g.saved("query"), mask = g.saved("attn_mask");
  Tensor by_score =
      composed_gradients(g.grad(), query, g.saved("key"), g.saved("value"), mask, g.argument("is_causal").boolean(),
                         scale_of(scale_in(g.argument("scale")), query))[3];
  return sum_to_size(by_score, g.sizes("attn_mask")).to(g.dtype("attn_mask"));
}

}  // namespace

OPS(attention) {
  op("scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
     "dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor")
      .decompose([](const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask,
                    double dropout_p, bool causal, const std::optional<double>& scale, bool shared_heads) -> Tensor {
        check_inputs(query, key, value, mask, causal, kName);
        TENON_CHECK(dropout_p >= 0 && dropout_p <= 1, "[{}] expected a dropout_p from 0 to 1, got {}", kName,
                    dropout_p);
        TENON_CHECK(shared_heads || query.dim() < 3 || key.dim() < 3 || is_one(query.size(-3)) ||
                        is_one(key.size(-3)) || same_size(query.size(-3), key.size(-3)),
                    "[{}] expected as many heads, got {} and {}; enable_gqa lets heads share keys", kName,
                    query.description(), key.description());
        if (query.dim() == 3 && key.dim() == 3 && value.dim() == 3) {
          std::optional<Tensor> wide = mask && mask->dim() == 3 ? std::optional(unsqueeze(*mask, 1)) : mask;
          return squeeze(scaled_dot_product_attention(unsqueeze(query, 1), unsqueeze(key, 1), unsqueeze(value, 1), wide,
                                                      dropout_p, causal, scale, false),
                         1);
        }
        if (dropout_p > 0 || !is_tiled(query, key, value, mask))
          return by_products(query, key, value, mask, dropout_p, causal, scale_of(scale, query));
        std::optional<Tensor> numbers = mask && mask->dtype() != kBool ? std::optional(mask->to(query.dtype())) : mask;
        return std::get<0>(_scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, causal, numbers, scale));
      });
  op("_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool "
     "is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)")
      .kernel(
          [](const Arguments& arguments, std::span<Tensor> outputs) {
            kernels::attention(arguments.tensor("query"), arguments.tensor("key"), arguments.tensor("value"),
                               rule_of(arguments), outputs[0], outputs[1]);
          },
          takes_tiles)
      .decompose([](const Tensor& query, const Tensor& key, const Tensor& value, double, bool causal,
                    const std::optional<Tensor>& mask,
                    const std::optional<double>& scale) -> std::tuple<Tensor, Tensor> {
        // Halves are computed in float32 and rounded once.
        Dtype wide = compute_dtype(query.dtype());
        Tensor k = for_each_query_head(key.to(wide), query.size(1)),
               v = for_each_query_head(value.to(wide), query.size(1));
        Weights w(query.to(wide), k, mask, causal, scale_of(scale, query));
        Tensor made = matmul(w.weights, v).to(query.dtype());
        return {heads_apart(query) ? contiguous(made) : rows_apart(made), rows_apart(logsumexp(w.scores, Ints{-1}))};
      })
      .shape([](const Arguments& arguments) {
        check_tiles(arguments, kTiled);
        const Tensor &query = arguments.tensor("query"), &value = arguments.tensor("value");
        SymInts sizes = query.sym_sizes(), rows{sizes[0], sizes[1], sizes[2]};
        sizes[3] = value.size(3);
        return std::vector{heads_apart(query) ? TensorMeta::contiguous(sizes, query.dtype(), query.device())
                                              : rows_apart(sizes, query.dtype(), query.device()),
                           rows_apart(rows, compute_dtype(query.dtype()), query.device())};
      })
      .grad("query", saves("query", "key", "value", "attn_mask", "output", "logsumexp"),
            [](Grad& g) { return input_gradient(g, 0); })
      .grad("key", saves("query", "key", "value", "attn_mask", "output", "logsumexp"),
            [](Grad& g) { return input_gradient(g, 1); })
      .grad("value", saves("query", "key", "value", "attn_mask", "output", "logsumexp"),
            [](Grad& g) { return input_gradient(g, 2); })
      .grad("attn_mask", saves("query", "key", "value", "attn_mask"), mask_gradient)
      .not_differentiable("logsumexp");
  op("_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, "
     "Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> "
     "(Tensor grad_query, Tensor grad_key, Tensor grad_value)")
      .kernel(
          [](const Arguments& arguments, std::span<Tensor> outputs) {
            kernels::attention_backward(arguments.tensor("grad_out"), arguments.tensor("query"),
                                        arguments.tensor("key"), arguments.tensor("value"), arguments.tensor("out"),
                                        arguments.tensor("logsumexp"), rule_of(arguments),
                                        {outputs[0], outputs[1], outputs[2]});
          },
          takes_tiles)
      .decompose([](const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor&,
                    const Tensor&, double, bool causal, const std::optional<Tensor>& mask,
                    const std::optional<double>& scale) -> std::tuple<Tensor, Tensor, Tensor> {
        Dtype wide = compute_dtype(query.dtype());
        std::vector<Tensor> all = composed_gradients(grad.to(wide), query.to(wide), key.to(wide), value.to(wide), mask,
                                                     causal, scale_of(scale, query));
        return {rows_apart(all[0].to(query.dtype())), rows_apart(all[1].to(query.dtype())),
                rows_apart(all[2].to(query.dtype()))};
      })
      .shape([](const Arguments& arguments) {
        check_tiles(arguments, arguments.op().brief_name());
        const Tensor &grad = arguments.tensor("grad_out"), &query = arguments.tensor("query"),
                     &value = arguments.tensor("value"), &out = arguments.tensor("out"),
                     &logsumexp = arguments.tensor("logsumexp");
        SymInts sizes = query.sym_sizes(), rows{sizes[0], sizes[1], sizes[2]};
        sizes[3] = value.size(3);
        auto has = [](const Tensor& tensor, const SymInts& wanted, Dtype dtype) {
          bool fits =
              tensor.defined() && tensor.dtype() == dtype && tensor.dim() == static_cast<int64_t>(wanted.size());
          for (size_t dim = 0; fits && dim < wanted.size(); ++dim)
            fits = same_size(tensor.size(static_cast<int64_t>(dim)), wanted[dim]);
          return fits;
        };
        TENON_CHECK(has(grad, sizes, query.dtype()) && has(out, sizes, query.dtype()) &&
                        has(logsumexp, rows, compute_dtype(query.dtype())),
                    "[{}] expected a gradient, a result and a logsumexp of {}, got {}, {} and {}",
                    arguments.op().brief_name(), str(sizes), grad.description(), out.description(),
                    logsumexp.description());
        std::vector<TensorMeta> metas;
        for (std::string_view name : {"query", "key", "value"})
          metas.push_back(rows_apart(arguments.tensor(name).sym_sizes(), query.dtype(), query.device()));
        return metas;
      });
}

}  // namespace tenon::ops
