#include "overlap.h"

#include <tenon/ops/strided.h>

namespace tenon::aot {

bool may_overlap(const Tensor& meta) { return ops::may_overlap(meta.sym_sizes(), meta.sym_strides()); }

}  // namespace tenon::aot
