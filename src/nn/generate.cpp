#include <tenon/nn/generate.h>

#include <tenon/generated/ops.h>

#include <limits>

namespace tenon::nn {
namespace {

std::string described(const Tensor& tensor) { return tensor.defined() ? tensor.description() : "an undefined tensor"; }

}  // namespace

// By Gumbel's trick: the largest of scores with noise of that distribution is drawn by their softmax.
Tensor next_token(const Tensor& scores, const GenerateOptions& options) {
  TENON_CHECK(scores.defined() && scores.dim() == 2 && scores.is_floating_point(),
              "[next_token] expected scores [batch, vocabulary], got {}", described(scores));
  TENON_CHECK_VALUE(options.temperature >= 0 && options.top_k >= 0,
                    "[next_token] expected a temperature and a top_k that are not negative, got {} and {}",
                    options.temperature, options.top_k);
  NoGrad off;
  if (options.temperature == 0) return argmax(scores, 1);
  Tensor weighed = scores.to(kFloat32) / options.temperature;
  const auto letters = int64_t(scores.size(1));
  if (options.top_k > 0 && options.top_k < letters) {
    Tensor least = slice(std::get<0>(topk(weighed, options.top_k, 1)), 1, -1);
    weighed = masked_fill(weighed, weighed < least, -std::numeric_limits<double>::infinity());
  }
  Tensor even = options.generator ? rand(weighed.sym_sizes(), *options.generator) : rand(weighed.sym_sizes());
  // Away from 0, of which there is no logarithm, by less than there is between two numbers near 1.
  return argmax(weighed - log(-log(clamp(even, 1e-12, 1 - 6e-8))), 1);
}

namespace detail {

Written::Written(const Tensor& start, int64_t count, const GenerateOptions& options)
    : left_(count), batched_(start.defined() && start.dim() == 2), options_(options) {
  TENON_CHECK(
      start.defined() && start.dtype() == kInt64 && (start.dim() == 1 || start.dim() == 2) && bool(start.size(-1) > 0),
      "[generate] expected a start of at least one token, int64 [length] or [batch, length], got {}", described(start));
  TENON_CHECK_VALUE(count >= 0, "[generate] expected a count that is not negative, got {}", count);
  TENON_CHECK_VALUE(options.context >= 0, "[generate] expected a context that is not negative, got {}",
                    options.context);
  tokens_ = batched_ ? start : unsqueeze(start, 0);
}

Tensor Written::window(int64_t context) const {
  const auto length = int64_t(tokens_.size(1));
  return context > 0 && length > context ? slice(tokens_, 1, length - context) : tokens_;
}

Tensor Written::append(const Tensor& scores) {
  TENON_CHECK(scores.defined() && scores.dim() == 3 && bool(scores.size(0) == tokens_.size(0)),
              "[generate] expected a model that gives scores [{}, length, vocabulary], got {}", tokens_.size(0).str(),
              described(scores));
  Tensor token = unsqueeze(next_token(select(scores, 1, -1), options_), 1);
  tokens_ = cat({tokens_, token}, 1);
  --left_;
  return token;
}

Tensor Written::result() const { return batched_ ? tokens_ : squeeze(tokens_, 0); }

}  // namespace detail

}  // namespace tenon::nn
