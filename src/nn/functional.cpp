#include <tenon/generated/ops.h>
#include <tenon/nn/functional.h>

namespace tenon {

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options) {
  return cross_entropy_loss(logits, target, options.weight, static_cast<int64_t>(options.reduction),
                            options.ignore_index, options.label_smoothing);
}

}  // namespace tenon
