// Connectionist temporal classification: how likely a sequence of classes is, summed over all ways to stretch it over
// time, with blanks between.
#pragma once

#include <tenon/core/tensor_fwd.h>

namespace tenon::kernels {

// What the kernels are given: `log_probs` [T, N, C]; `targets` [N, S], or all sequences one behind the other; of each
// of the N entries how many steps and how many classes count.
struct Ctc {
  const TensorBase& log_probs;
  const TensorBase& targets;
  const Ints &input_lengths, &target_lengths;
  int64_t blank;
};

// `loss` [N]: minus the logarithm of that likelihood. `log_alpha` [N, T, 2 * longest target + 1]: that of the
// beginnings of sequences up to each step; minus infinity where there is none. Both contiguous, of the dtype of
// `log_probs`: a float of 4 or 8 bytes. A class that is none is an IndexError.
void ctc_loss(const Ctc& of, const TensorBase& loss, const TensorBase& log_alpha);

// `out` [T, N, C], contiguous: the gradient of `log_probs` for `grad` of the losses. `zero_infinity`: entries whose
// loss is infinite have none.
void ctc_loss_backward(const Ctc& of, const TensorBase& grad, const TensorBase& loss, const TensorBase& log_alpha,
                       bool zero_infinity, const TensorBase& out);

}  // namespace tenon::kernels
