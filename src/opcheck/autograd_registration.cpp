// test_autograd_registration: where gradients come from.
#include "checks.h"
#include "copies.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/dispatch/registration.h>
#include <tenon/ops/row.h>

namespace tenon::opcheck {
namespace {

using dispatch::KernelKey;

// A kernel that says how the operator is differentiated: its own, its row's, or that of what it is made of.
bool has_autograd_kernel(const Operator& op, std::span<const Value> args) {
  if (ops::row_of(op)) return true;
  for (KernelKey key : {KernelKey::Autograd, KernelKey::CompositeImplicitAutograd})
    if (dispatch::has_kernel(op, key)) return true;
  for (const Tensor& tensor : tensors_of(args)) {
    KernelKey key = tensor.device() == kCPU ? KernelKey::AutogradCPU : KernelKey::AutogradCUDA;
    if (dispatch::has_kernel(op, key)) return true;
  }
  return false;
}

void check_bound(const Operator& op, std::span<const Value> args) {
  Values copies = copy_arguments(args);
  if (has_autograd_kernel(op, copies)) return;
  // The kernel below autograd, with autograd still on: what it calls then is recorded.
  autograd::EnableGrad on;
  dispatch::Results results = dispatch::redispatch(op, dispatch::keys_of(copies).below(DispatchKey::Autograd), copies);
  std::vector<Tensor> arguments = tensors_of(copies);
  for (const Tensor& result : tensors_of(results.span())) {
    bool given = std::any_of(arguments.begin(), arguments.end(), [&](const Tensor& each) { return each.is(result); });
    if (given || !result.is_floating_point() || !result.requires_grad()) continue;
    throw AssertionError(fmt::format(
        "[{}] a result requires grad because of operators that its kernel calls, but the operator does not have an "
        "autograd kernel (one for the key Autograd). Perhaps an autograd kernel was incorrectly registered to another "
        "key, such as CPU: then gradients are lost or wrong without a word. Register it for Autograd, use "
        "register_autograd, or register the kernel as CompositeImplicitAutograd if it is made of operators alone",
        op.name()));
  }
}

}  // namespace

void autograd_registration_check(const Subject& subject, std::span<const Value> args) {
  const Operator& op = subject.op();
  TENON_CHECK(any_requires_grad(args),
              "[{}] autograd_registration_check: no inputs have requires_grad=True, so there is nothing to see: pass "
              "some that do",
              op.name());
  check_bound(op, dispatch::bind_arguments(op.schema(), args));
}

void autograd_registration_test(const Operator& op, std::span<const Value> args) {
  if (any_requires_grad(args)) check_bound(op, args);
}

}  // namespace tenon::opcheck
