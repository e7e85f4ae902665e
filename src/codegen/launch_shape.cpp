#include "loop/iterations.h"

#include <tenon/codegen/launch_shape.h>
#include <tenon/support/small_vector.h>

#include <limits>

namespace tenon::codegen {
namespace {

// The product of the extents inside, summed over siblings. An extent that depends on an outer index counts as at index
// 0.
sym::Expr work_of(const loop::Block& block, sym::ExprPool& pool) {
  sym::Expr work = pool.constant(1);
  for (const loop::Statement& statement : block)
    if (const auto* inner = std::get_if<std::unique_ptr<loop::Loop>>(&statement))
      work = work + max(pool.constant(1), (*inner)->extent) * work_of((*inner)->body, pool);
  return work;
}

}  // namespace

LaunchShape::LaunchShape(const loop::Kernel& kernel) {
  const auto* only = kernel.body.size() == 1 ? std::get_if<std::unique_ptr<loop::Loop>>(&kernel.body[0]) : nullptr;
  if (!only || !(*only)->parallel) return;
  const loop::Loop& outer = **only;
  parallel_ = true;
  vector_ = outer.vector;
  sym::Expr extent = loop::iterations(outer, *kernel.pool);
  sym::Expr work = work_of(outer.body, *kernel.pool);
  if (extent.is_constant() && work.is_constant()) {
    constant_ = {extent.constant(), work.constant()};
    return;
  }
  symbols_ = static_cast<size_t>(kernel.pool->symbol_count());
  for (sym::Expr integer : kernel.integers) symbol_ids_.push_back(integer.symbol_id());
  const sym::Expr results[] = {extent, work};
  program_ = sym::ExprProgram(results);
  extent_ = extent;
}

LaunchShape::Values LaunchShape::run(std::span<const int64_t> integers) const {
  TENON_ASSERT(integers.size() == symbol_ids_.size(), "{} integer parameters, got {}", symbol_ids_.size(),
               integers.size());
  SmallVector<int64_t, 32> symbols(symbols_, 0);
  for (size_t at = 0; at < integers.size(); ++at) symbols[static_cast<size_t>(symbol_ids_[at])] = integers[at];
  int64_t results[2];
  if (program_.try_run(symbols.span(), results)) return {results[0], results[1]};
  // The extent fits, because the kernel's memory does; the work, which is only weighed, may not.
  sym::ExprProgram({&extent_, 1}).run(symbols.span(), {results, 1});
  return {results[0], std::numeric_limits<int64_t>::max()};
}

}  // namespace tenon::codegen
