#include "loop/iterations.h"

#include <tenon/codegen/compile.h>

#include <algorithm>
#include <unordered_map>

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

load::LaunchShape launch_shape(const loop::Kernel& kernel) {
  const auto* only = kernel.body.size() == 1 ? std::get_if<std::unique_ptr<loop::Loop>>(&kernel.body[0]) : nullptr;
  if (!only || !(*only)->parallel) return {};
  const loop::Loop& outer = **only;
  std::unordered_map<int32_t, sym::Expr> indices;
  for (int32_t id = 0; id < kernel.pool->symbol_count(); ++id)
    if (std::find(kernel.integers.begin(), kernel.integers.end(), kernel.pool->symbol(id)) == kernel.integers.end())
      indices.emplace(id, kernel.pool->constant(0));
  sym::Expr work = kernel.pool->substitute(work_of(outer.body, *kernel.pool), indices);
  return {loop::iterations(outer, *kernel.pool), work, outer.vector, kernel.integers};
}

}  // namespace tenon::codegen
