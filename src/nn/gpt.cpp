#include <tenon/nn/gpt.h>

#include <tenon/generated/ops.h>
#include <tenon/nn/init.h>
#include <tenon/nn/initialize.h>

#include <fmt/format.h>

#include <cmath>

namespace tenon::nn {
namespace {

constexpr double kDeviation = 0.02;

const GPTOptions& checked(int64_t vocabulary, int64_t width, const GPTOptions& options) {
  TENON_CHECK_VALUE(vocabulary > 0 && width > 0, "[GPT] expected a vocabulary and a width above 0, got {} and {}",
                    vocabulary, width);
  TENON_CHECK_VALUE(options.heads > 0 && width % options.heads == 0,
                    "[GPT] expected a width that {} heads divide, got {}", options.heads, width);
  TENON_CHECK_VALUE(options.layers > 0, "[GPT] expected at least one layer, got {}", options.layers);
  return options;
}

TransformerEncoderLayer block(int64_t width, const GPTOptions& options) {
  return {width,
          options.heads,
          {.dim_feedforward = 4 * width,
           .dropout = options.dropout,
           .activation = "gelu",
           .batch_first = true,
           .norm_first = true,
           .dtype = options.dtype}};
}

}  // namespace

PositionEmbedding::PositionEmbedding(int64_t context, int64_t features, Dtype dtype) {
  TENON_CHECK_VALUE(context > 0 && features > 0,
                    "[PositionEmbedding] expected at least one place and one feature, got {} and {}", context,
                    features);
  weight = parameter("weight", init::normal_(empty({context, features}, TensorOptions(dtype)), 0, kDeviation));
  describe("PositionEmbedding", fmt::format("{}, {}", context, features));
}

Tensor PositionEmbedding::operator()(const Tensor& input) const {
  return run(input, [&](const Tensor& x) {
    Tensor rows = weight.get();
    TENON_CHECK(x.defined() && x.dim() >= 2 && bool(x.size(-1) == rows.size(1)) && bool(x.size(-2) <= rows.size(0)),
                "[PositionEmbedding] expected at most {} places of {} features, got {}", rows.size(0).str(),
                rows.size(1).str(), x.defined() ? x.description() : "an undefined tensor");
    return x + slice(rows, 0, 0, x.size(-2));
  });
}

GPT::GPT(int64_t vocabulary, int64_t width, const GPTOptions& options)
    : options_(checked(vocabulary, width, options)),
      tokens_(submodule("tokens", Embedding(vocabulary, width, {.dtype = options.dtype}))),
      places_(submodule("places", PositionEmbedding(options.context, width, options.dtype))),
      blocks_(submodule("blocks", TransformerEncoder(block(width, options), options.layers))),
      norm_(submodule("norm", LayerNorm(width, {.dtype = options.dtype}))) {
  head_ = parameter("head", options.tied ? Tensor() : empty({vocabulary, width}, TensorOptions(options.dtype)));
  describe("GPT", fmt::format("{}, {}, layers={}, heads={}, context={}", vocabulary, width, options.layers,
                              options.heads, options.context));
  // Two sums of each layer go into the stream.
  const double into_stream = kDeviation / std::sqrt(2.0 * static_cast<double>(options.layers));
  init::each(*this, [&](const std::string& name, const Tensor& parameter) {
    if (name.ends_with("bias"))
      init::zeros_(parameter);
    else if (parameter.dim() > 1)
      init::normal_(parameter, 0,
                    name.ends_with("out_proj.weight") || name.ends_with("linear2.weight") ? into_stream : kDeviation);
  });
}

Tensor GPT::operator()(const Tensor& tokens) const {
  return run(tokens, [&](const Tensor& text) {
    TENON_CHECK(text.defined() && text.dim() == 2, "[GPT] expected tokens [batch, length], got {}",
                text.defined() ? text.description() : "an undefined tensor");
    Tensor stream = places_(tokens_(text));
    if (options_.dropout > 0) stream = dropout(stream, options_.dropout, is_training());
    Tensor result = norm_(blocks_(stream, {.is_causal = true}));
    return linear(result, options_.tied ? tokens_.weight.get() : head_.get());
  });
}

}  // namespace tenon::nn
