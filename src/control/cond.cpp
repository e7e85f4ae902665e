#include "control/carry.h"

#include <tenon/control/cond.h>
#include <tenon/generated/ops.h>

#include <atomic>

namespace tenon::control::detail {
namespace {

std::atomic<CondCapturer> capture_cond{nullptr};

std::vector<Tensor> take(bool which, std::span<const Tensor> operands, Branch then, Branch otherwise) {
  std::vector<Tensor> made = (which ? then : otherwise)().tensors;
  for (const Tensor& each : made) TENON_CHECK(each.defined(), "[cond] expected tensors, got an undefined one");
  give_own_memory(made, operands);
  return made;
}

}  // namespace

void set_cond_capturer(CondCapturer capturer) { capture_cond = capturer; }

void check_predicate(const Tensor& predicate, const char* what) {
  TENON_CHECK(predicate.defined(), "{} of one bool, got an undefined tensor", what);
  TENON_CHECK(predicate.dtype() == kBool && bool(predicate.numel() == 1), "{} of one bool, got {}", what,
              predicate.description());
}

std::vector<Tensor> cond(const Predicate& predicate, std::span<const Tensor> operands, Branch then, Branch otherwise) {
  Tensor data = predicate.tensor();
  if (!predicate.is_tensor()) {
    const SymBool& number = predicate.number();
    // What a capture knows is decided by it. What comes from data is asked of a run.
    const bool is_known =
        !number.is_symbolic() || number.maybe_constant() || number.env()->hint(number.expr()).has_value();
    if (is_known) return take(bool(number), operands, then, otherwise);
    data = scalar_tensor(Scalar(number), kBool);
  }
  check_predicate(data, "[cond] expected a predicate");
  if (CondCapturer capturer = capture_cond)
    if (std::optional<std::vector<Tensor>> captured = capturer(data, then, otherwise)) return std::move(*captured);
  return take(data.item<bool>(), operands, then, otherwise);
}

}  // namespace tenon::control::detail
