// `generate`: lets a model that scores the next token write.
//
//   nn::GPT model(128, 16, {.layers = 1, .heads = 4, .context = 32});
//   Tensor start = tensor({104, 105});
//   Tensor likely = nn::generate(model, start, 20);                           // [22]: the start, and 20 more
//   nn::GenerateOptions options{.temperature = 0.8, .top_k = 10};
//   Tensor drawn = nn::generate(model, start.expand({3, 2}), 20, options);    // [3, 22]
//   Tensor next = nn::next_token(rand({3, 128}), options);                    // [3], from scores
//
// A model is a module, or any function, that takes tokens [batch, length] and gives scores [batch, length, vocabulary]
// (a GPT), or that takes a state besides and gives a tuple of the scores and the next state (a RecurrentSequential):
// such a one reads every token once. The other kind reads all of its context again for each token. Modules evaluate
// meanwhile (nn/evaluating.h).
#pragma once

#include <tenon/core/generators.h>
#include <tenon/nn/evaluating.h>

#include <tuple>

namespace tenon::nn {

struct GenerateOptions {
  double temperature = 0;  // 0: the token with the highest score; 1: by the model's own shares; above: more daring
  int64_t top_k = 0;       // only those with the highest scores; 0: all
  int64_t context = 0;     // tokens that the model is shown at most; 0: model.context(), or all
  Generator* generator = nullptr;  // whom to ask for random numbers, if not the default one
};

// A token for each row of scores [batch, vocabulary].
Tensor next_token(const Tensor& scores, const GenerateOptions& options = {});

namespace detail {

// What was written up to now.
class Written {
 public:
  Written(const Tensor& start, int64_t count, const GenerateOptions& options);
  const Tensor& tokens() const { return tokens_; }
  // The last ones.
  Tensor window(int64_t context) const;
  bool is_complete() const { return left_ == 0; }
  // Goes on by the scores [batch, length, vocabulary]; the new tokens, [batch, 1].
  Tensor append(const Tensor& scores);
  Tensor result() const;

 private:
  Tensor tokens_;
  int64_t left_;
  bool batched_;
  const GenerateOptions& options_;
};

template <typename M>
concept GivesState = requires(const M& model, const Tensor& tokens) { std::get<1>(model(tokens)); };

}  // namespace detail

template <typename M>
Tensor generate(const M& model, const Tensor& start, int64_t count, const GenerateOptions& options = {}) {
  std::optional<Evaluating> evaluating;
  if constexpr (std::derived_from<M, Module>) evaluating.emplace(model);
  NoGrad off;
  detail::Written written(start, count, options);
  if constexpr (detail::GivesState<M>) {
    if (count == 0) return written.result();
    auto [scores, state] = model(written.tokens());
    while (true) {
      Tensor token = written.append(scores);
      if (written.is_complete()) break;
      std::tie(scores, state) = model(token, state);
    }
  } else {
    int64_t context = options.context;
    if constexpr (requires { model.context(); })
      if (context == 0) context = model.context();
    while (!written.is_complete()) written.append(model(written.window(context)));
  }
  return written.result();
}

}  // namespace tenon::nn
