// Decoder-only transformers: a model that reads tokens and scores the next one.
#pragma once

#include <tenon/nn/attention.h>
#include <tenon/nn/embedding.h>

namespace tenon::nn {

// Adds a vector that is learnt for each place: to […, length, features], the first `length` rows of weight
// [context, features].
//
//   nn::PositionEmbedding places(/*context=*/16, /*features=*/3);
//   Tensor placed = places(x);                       // x of [2, 3]: two places
class PositionEmbedding : public Module {
 public:
  PositionEmbedding(int64_t context, int64_t features, Dtype dtype = kFloat32);
  Tensor operator()(const Tensor& input) const;

  Cell<Tensor> weight;
};

//   nn::GPTOptions options{.layers = 2, .heads = 4, .context = 32, .dropout = 0};
struct GPTOptions {
  int64_t layers = 12, heads = 12;
  int64_t context = 1024;  // tokens that it sees at most
  double dropout = 0.1;
  bool tied = true;  // scores by the embeddings themselves, else by a head of its own
  Dtype dtype = kFloat32;
};

// Scores [batch, length, vocabulary] of the token behind each one, from the tokens [batch, length] up to it: embeddings
// of tokens and places, layers that normalise first and look back only, a last norm, the head. Weights begin as
// GPT-2's: normal with 0.02, less for what is added to the stream the deeper it is.
//
//   nn::GPT model(/*vocabulary=*/128, /*width=*/16, {.layers = 2, .heads = 4, .context = 32});
//   Tensor tokens = zeros({2, 8}, kInt64), scores = model(tokens);            // [2, 8, 128]
//   int64_t most = model.context();                                           // 32
class GPT : public Module {
 public:
  GPT(int64_t vocabulary, int64_t width, const GPTOptions& options = {});
  Tensor operator()(const Tensor& tokens) const;
  int64_t context() const { return options_.context; }

 private:
  GPTOptions options_;
  Embedding tokens_;
  PositionEmbedding places_;
  TransformerEncoder blocks_;
  LayerNorm norm_;
  Cell<Tensor> head_;  // undefined if it is tied
};

}  // namespace tenon::nn
