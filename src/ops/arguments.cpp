#include <tenon/ops/arguments.h>

namespace tenon::ops {

bool holds(const SymBool& condition, const std::string& otherwise) {
  if (!condition.is_symbolic() || condition.maybe_constant() || condition.env()->hint(condition.expr()))
    return bool(condition);
  condition.env()->check(condition, otherwise);
  return true;
}

}  // namespace tenon::ops
