#include "control/carry.h"
#include "core/memory_order.h"

#include <tenon/control/cond.h>
#include <tenon/control/while_loop.h>
#include <tenon/generated/ops.h>

#include <atomic>

namespace tenon::control::detail {
namespace {

std::atomic<WhileCapturer> capture_while{nullptr};

Tensor laid_so(const Tensor& tensor, const SymInts& strides) {
  bool lies_so = true;
  const SymInts sizes = tensor.sym_sizes(), given = tensor.sym_strides();
  for (size_t dim = 0; dim < strides.size(); ++dim)
    lies_so = lies_so && (sizes[dim].hint() == 1 || sizes[dim].hint() == 0 || given[dim].same(strides[dim]));
  if (lies_so) return tensor;
  return empty_strided(sizes, strides, TensorOptions(tensor.dtype(), tensor.device())).copy_(tensor);
}

}  // namespace

void set_while_capturer(WhileCapturer capturer) { capture_while = capturer; }

void check_while_carry(std::span<const Tensor> before, std::span<const Tensor> after) {
  TENON_CHECK(after.size() == before.size(), "[while_loop] expected a carry of {} tensors, as it was given, got {}",
              before.size(), after.size());
  check_carried("while_loop", before, after);
}

std::vector<Tensor> while_loop(std::vector<Tensor> carry, WhileCondition condition, WhileBody body) {
  for (const Tensor& tensor : carry)
    TENON_CHECK(tensor.defined(), "[while_loop] expected a carry of tensors, got an undefined tensor");
  if (WhileCapturer capturer = capture_while)
    if (std::optional<std::vector<Tensor>> captured = capturer(carry, condition, body)) return std::move(*captured);
  const std::vector<Tensor> given = carry;
  for (;;) {
    const Tensor goes_on = condition(carry);
    check_predicate(goes_on, "[while_loop] expected a condition");
    if (!goes_on.item<bool>()) break;
    std::vector<Tensor> made = body(carry);
    check_while_carry(carry, made);
    for (size_t at = 0; at < made.size(); ++at) carry[at] = laid_so(made[at], core::dense_strides_of(given[at]));
  }
  give_own_memory(carry, given);
  return carry;
}

}  // namespace tenon::control::detail
