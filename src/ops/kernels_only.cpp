// What a row leaves where only kernels are wanted (TENON_KERNELS_ONLY, ops/table.h): an operator that is known by its
// schema and its kernel. Part of libtenon_runtime alone.
#include <tenon/ops/table.h>

namespace tenon::ops {

RowBuilder::~RowBuilder() noexcept(false) {
  if (!kernel_.fill && !kernel_.make) return;
  auto kernel = std::make_shared<KernelOfRow>();
  kernel->cpu = std::move(kernel_);
  schema::Schema schema = schema::parse(schema_);
  if (schema.ns.empty()) schema.ns = "aten";
  dispatch::define(std::move(schema), std::move(kernel));
}

}  // namespace tenon::ops
