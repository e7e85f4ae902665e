#include "loop/iterations.h"

#include <algorithm>
#include <vector>

namespace tenon::loop {
namespace {

// Whether the block reduces this value, in that way: without iterations it is what changes nothing when it is reduced
// once more.
bool reduces(const Block& block, ValueId value, ReduceKind how) {
  for (const Statement& statement : block)
    if (const auto* op = std::get_if<Op>(&statement))
      if (op->code == OpCode::Reduce && op->result == value) return op->reduce == how;
  return false;
}

bool is_of_inner_loop(const Block& block, const Op& reduce) {
  for (const Statement& statement : block)
    if (const auto* inner = std::get_if<std::unique_ptr<Loop>>(&statement))
      if (reduces((*inner)->body, reduce.operands[0], reduce.reduce)) return true;
  return false;
}

// 1 if a run of the block does anything, else 0. `indices`: of the loops around it that are looked at; what depends on
// them counts as something.
sym::Expr does_anything(const Block& block, std::vector<int32_t>& indices, sym::ExprPool& pool) {
  sym::Expr any = pool.constant(0), one = pool.constant(1);
  for (const Statement& statement : block) {
    if (const auto* op = std::get_if<Op>(&statement)) {
      if (op->code == OpCode::Store || op->code == OpCode::Check) return one;
      if (op->code == OpCode::Reduce && !is_of_inner_loop(block, *op)) return one;
      continue;
    }
    const Loop& inner = *std::get<std::unique_ptr<Loop>>(statement);
    for (int32_t symbol : symbols_of(inner.extent))
      if (std::find(indices.begin(), indices.end(), symbol) != indices.end()) return one;
    indices.push_back(inner.index.symbol_id());
    any = max(any, min(one, inner.extent) * does_anything(inner.body, indices, pool));
    indices.pop_back();
  }
  return any;
}

}  // namespace

sym::Expr iterations(const Loop& loop, sym::ExprPool& pool) {
  std::vector<int32_t> indices = {loop.index.symbol_id()};
  return loop.extent * does_anything(loop.body, indices, pool);
}

}  // namespace tenon::loop
