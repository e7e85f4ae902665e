#include "control/carry.h"

#include "core/memory_order.h"

#include <tenon/generated/ops.h>

#include <algorithm>

namespace tenon::control::detail {
void check_carried(const char* loop, std::span<const Tensor> before, std::span<const Tensor> after) {
  TENON_CHECK(after.size() >= before.size(), "[{}] expected a carry of {} tensors, as it was given, got {}", loop,
              before.size(), after.size());
  for (size_t at = 0; at < before.size(); ++at) {
    TENON_CHECK(after[at].defined(), "[{}] expected a carry of tensors, got an undefined tensor", loop);
    bool same = before[at].dim() == after[at].dim() && before[at].dtype() == after[at].dtype();
    for (int64_t dim = 0; same && dim < before[at].dim(); ++dim)
      same = bool(before[at].size(dim) == after[at].size(dim));
    TENON_CHECK(same, "[{}] expected a step to keep the sizes and dtype of its carry: it was {}, and became {}", loop,
                before[at].description(), after[at].description());
  }
}

void give_own_memory(std::vector<Tensor>& results, std::span<const Tensor> given) {
  for (size_t at = 0; at < results.size(); ++at) {
    auto shares = [&](const Tensor& other) { return other.is_same_storage(results[at]); };
    if (std::any_of(given.begin(), given.end(), shares) ||
        std::any_of(results.begin(), results.begin() + static_cast<ptrdiff_t>(at), shares) ||
        !core::is_dense(results[at]))
      results[at] = results[at].clone();
  }
}

}  // namespace tenon::control::detail
