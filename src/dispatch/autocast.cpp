#include "support/thread_context.h"

#include <tenon/dispatch/autocast.h>
#include <tenon/dispatch/operator.h>

#include <algorithm>
#include <array>
#include <mutex>

namespace tenon {
namespace {

using dispatch::Value;

enum class Casts : uint8_t {
  Lower,   // to the dtype of the scope
  Single,  // to float32
  Widest,  // to the widest dtype among the arguments
};

struct Listed {
  std::string_view name;  // of all overloads
  Casts casts;
};

constexpr std::array kListed = {
    Listed{"addbmm", Casts::Lower},
    Listed{"addmm", Casts::Lower},
    Listed{"baddbmm", Casts::Lower},
    Listed{"bmm", Casts::Lower},
    Listed{"conv1d", Casts::Lower},
    Listed{"conv2d", Casts::Lower},
    Listed{"conv3d", Casts::Lower},
    Listed{"conv_transpose1d", Casts::Lower},
    Listed{"conv_transpose2d", Casts::Lower},
    Listed{"conv_transpose3d", Casts::Lower},
    Listed{"linear", Casts::Lower},
    Listed{"matmul", Casts::Lower},
    Listed{"mm", Casts::Lower},
    Listed{"prelu", Casts::Lower},
    Listed{"scaled_dot_product_attention", Casts::Lower},
    Listed{"binary_cross_entropy", Casts::Single},
    Listed{"binary_cross_entropy_with_logits", Casts::Single},
    Listed{"cdist", Casts::Single},
    Listed{"cross_entropy_loss", Casts::Single},
    Listed{"grid_sampler", Casts::Single},
    Listed{"huber_loss", Casts::Single},
    Listed{"kl_div", Casts::Single},
    Listed{"l1_loss", Casts::Single},
    Listed{"mse_loss", Casts::Single},
    Listed{"nll_loss", Casts::Single},
    Listed{"prod", Casts::Single},
    Listed{"quantile", Casts::Single},
    Listed{"reflection_pad1d", Casts::Single},
    Listed{"reflection_pad2d", Casts::Single},
    Listed{"replication_pad1d", Casts::Single},
    Listed{"replication_pad2d", Casts::Single},
    Listed{"replication_pad3d", Casts::Single},
    Listed{"smooth_l1_loss", Casts::Single},
    Listed{"trace", Casts::Single},
    Listed{"cat", Casts::Widest},
    Listed{"index_copy", Casts::Widest},
    Listed{"stack", Casts::Widest},
};

// Doubles are nobody's business.
bool is_cast(const Tensor& tensor) {
  return tensor.defined() && tensor.is_floating_point() && tensor.dtype() != kFloat64 &&
         tensor.device().type == DeviceType::CPU;
}

Dtype target_of(Casts casts, std::span<const Value> args) {
  Dtype target = Autocast::current().value_or(kBFloat16);
  if (casts == Casts::Lower) return target;
  if (casts == Casts::Single) return kFloat32;
  // Of two halves of different kinds neither is wider.
  std::optional<Dtype> widest;
  for (const Value& arg : args)
    arg.each_tensor([&](const Tensor& tensor) {
      if (is_cast(tensor)) widest = !widest || *widest == tensor.dtype() ? tensor.dtype() : kFloat32;
    });
  return widest.value_or(target);
}

Tensor cast(const Tensor& tensor, Dtype dtype) {
  if (!is_cast(tensor) || tensor.dtype() == dtype) return tensor;
  static const dispatch::Operator& to = dispatch::find_operator("aten::to.dtype");
  const Value args[] = {Value(tensor), Value(dtype), Value(false), Value(false), Value()};
  return dispatch::call_boxed(to, args)[0].take_tensor();
}

void run_cast(dispatch::Call& call, Casts casts) {
  dispatch::ExcludeKeys once(KeySet{DispatchKey::Autocast});
  Dtype target = target_of(casts, call.args);
  dispatch::Values args;
  for (const Value& arg : call.args)
    args.push_back(arg.map_tensors([&](const Tensor& tensor) { return cast(tensor, target); }));
  call.results = dispatch::call_boxed(call.op, args);
}

// Operators that are made later, custom ones, are in none of the lists.
void register_kernels() {
  for (const dispatch::Operator* op : dispatch::all_operators()) {
    auto listed = std::find_if(kListed.begin(), kListed.end(), [&](const Listed& each) {
      return op->name().starts_with("aten::") && each.name == op->brief_name();
    });
    if (listed == kListed.end() || op->schema().is_mutable()) continue;
    dispatch::register_kernel(*dispatch::find_operator_or_null(op->name()), DispatchKey::Autocast,
                              [casts = listed->casts](dispatch::Call& call) { run_cast(call, casts); });
  }
}

const Autocast* innermost() { return support::thread_context.get<const Autocast>(support::ContextSlot::Autocast); }

}  // namespace

Autocast::Autocast(Dtype dtype, bool enabled)
    : before_(innermost()),
      included_(support::thread_context.included_keys),
      excluded_(support::thread_context.excluded_keys),
      dtype_(dtype),
      enabled_(enabled) {
  TENON_CHECK(dtype == kBFloat16 || dtype == kFloat16, "[Autocast] expected bfloat16 or float16, got {}", name(dtype));
  static std::once_flag registered;
  std::call_once(registered, register_kernels);
  KeySet key{DispatchKey::Autocast}, included = KeySet::from_bits(included_);
  support::thread_context.included_keys = (enabled ? included | key : included - key).bits();
  if (enabled) support::thread_context.excluded_keys = (KeySet::from_bits(excluded_) - key).bits();
  support::thread_context.set(support::ContextSlot::Autocast, this);
}

Autocast::~Autocast() {
  support::thread_context.included_keys = included_;
  support::thread_context.excluded_keys = excluded_;
  support::thread_context.set(support::ContextSlot::Autocast, before_);
}

std::optional<Dtype> Autocast::current() {
  const Autocast* now = innermost();
  return now && now->enabled_ ? std::optional(now->dtype_) : std::nullopt;
}

}  // namespace tenon
