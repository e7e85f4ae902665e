#include "support/thread_context.h"

#include <tenon/fake/dynamic_size.h>

namespace tenon::fake {
namespace {

const DynamicSizes* innermost() {
  return support::thread_context.get<const DynamicSizes>(support::ContextSlot::DynamicSizes);
}

}  // namespace

DynamicSizes::DynamicSizes(Ref<sym::ShapeEnv> env, bool items, bool sizes)
    : before_(innermost()), env_(std::move(env)), items_(items), sizes_(sizes) {
  support::thread_context.set(support::ContextSlot::DynamicSizes, this);
}
DynamicSizes::~DynamicSizes() { support::thread_context.set(support::ContextSlot::DynamicSizes, before_); }
Ref<sym::ShapeEnv> DynamicSizes::for_items() {
  const DynamicSizes* sizes = innermost();
  return sizes && sizes->items_ ? sizes->env_ : Ref<sym::ShapeEnv>();
}
Ref<sym::ShapeEnv> DynamicSizes::for_sizes() {
  const DynamicSizes* sizes = innermost();
  return sizes && sizes->sizes_ ? sizes->env_ : Ref<sym::ShapeEnv>();
}

SymInt new_dynamic_size(const SymInt& min, const std::optional<SymInt>& max) {
  if (min.is_symbolic() || (max && max->is_symbolic()))
    fail<ValueError>("[new_dynamic_size] expected plain numbers for min and max, got a SymInt: min={}, max={}",
                     min.str(), max ? max->str() : "none");
  TENON_CHECK_VALUE(min.plain() >= 0, "[new_dynamic_size] expected min to be greater than or equal to 0, got {}",
                    min.plain());
  TENON_CHECK_VALUE(!max || max->plain() >= min.plain(),
                    "[new_dynamic_size] expected max to be at least min = {}, got {}", min.plain(), max->plain());
  Ref<sym::ShapeEnv> env = DynamicSizes::for_sizes();
  if (!env)
    throw DynamicOutputShape(
        "[new_dynamic_size] an operator with a data-dependent output shape was called where sizes must be known (on "
        "meta tensors, or "
        "outside of tracing)");
  sym::Range range;
  range.min = min.plain();
  if (max) range.max = max->plain();
  return env->create_unbacked(range);
}

}  // namespace tenon::fake
