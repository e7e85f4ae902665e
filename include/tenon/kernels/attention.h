// softmax(q · kᵀ · scale + mask) · v, by tiles: no matrix of scores is ever whole, so that memory grows with the
// length, not with its square.
#pragma once

#include <tenon/core/tensor_fwd.h>

namespace tenon::kernels {

struct AttentionRule {
  double scale = 1;
  bool causal = false;               // query i sees keys 0 … i
  const TensorBase* mask = nullptr;  // broadcasts to [batch, heads, queries, keys]: bools (true takes part), or numbers
                                     // of the dtype of the queries, which are added
};

// Queries are [batch, heads, queries, features], keys and values [batch, heads of keys, keys, …]: each of their heads
// serves as many heads of queries, which they divide. Float32 and halves, computed in float32; any strides. A query
// that sees no key gets zeros, and -inf as `logsumexp` [batch, heads, queries] (float32). Results share no memory with
// the rest; they do not depend on the number of threads.
bool attention_supports(Dtype dtype);
void attention(const TensorBase& query, const TensorBase& key, const TensorBase& value, const AttentionRule& rule,
               const TensorBase& out, const TensorBase& logsumexp);

// The gradients, from that of `out` and from what `attention` gave; scores are computed anew.
struct AttentionGradients {
  const TensorBase &query, &key, &value;
};
void attention_backward(const TensorBase& grad, const TensorBase& query, const TensorBase& key, const TensorBase& value,
                        const TensorBase& out, const TensorBase& logsumexp, const AttentionRule& rule,
                        const AttentionGradients& gradients);

}  // namespace tenon::kernels
