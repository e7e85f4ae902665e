#include "analysis.h"

#include <algorithm>

namespace tenon::codegen {

using loop::Block;
using loop::Loop;
using loop::Op;
using loop::OpCode;

Analysis::Analysis(const loop::Kernel& kernel)
    : varying_values_(static_cast<size_t>(kernel.value_count)),
      stored_(kernel.buffers.size()),
      dtypes_(static_cast<size_t>(kernel.value_count)) {
  visit(kernel.body, nullptr);
}

bool Analysis::varying(sym::Expr expr) const {
  if (expr.is_constant()) return false;
  if (expr.is_symbol()) return varying_symbols_.count(expr.symbol_id()) > 0;
  auto [at, fresh] = varying_exprs_.try_emplace(expr.node(), false);
  if (!fresh) return at->second;
  bool any = false;
  for (sym::Expr argument : expr.args()) any = any || varying(argument);
  return varying_exprs_[expr.node()] = any;
}

bool Analysis::extents_vary(const Block& block) const {
  for (const loop::Statement& statement : block)
    if (auto* inner = std::get_if<std::unique_ptr<Loop>>(&statement))
      if (varying((*inner)->extent) || extents_vary((*inner)->body)) return true;
  return false;
}

void Analysis::visit(const Block& block, const Loop* vector_loop) {
  for (const loop::Statement& statement : block) {
    if (auto* held = std::get_if<std::unique_ptr<Loop>>(&statement)) {
      const Loop& inner = **held;
      const int32_t symbol = inner.index.symbol_id();
      if (!inner.vector || vector_loop) {
        visit(inner.body, vector_loop);
        continue;
      }
      varying_symbols_.insert(symbol);
      visit(inner.body, &inner);
      if (extents_vary(inner.body)) {
        // Again, as a plain loop.
        demoted_.insert(&inner);
        varying_symbols_.erase(symbol);
        varying_exprs_.clear();
        visit(inner.body, nullptr);
      }
      // Results of reductions over the vector loop itself are the same for everybody.
      for (const loop::Statement& part : inner.body)
        if (auto* op = std::get_if<Op>(&part); op && op->code == OpCode::Reduce)
          varying_values_[static_cast<size_t>(op->result)] = false;
      continue;
    }
    const Op& op = std::get<Op>(statement);
    if (op.code == OpCode::Store) stored_[static_cast<size_t>(op.buffer)] = true;
    bool varies = op.code != OpCode::BindIndex && op.index.defined() && varying(op.index);
    for (loop::ValueId operand : op.operands)
      if (operand != loop::kNone) varies = varies || varying(operand);
    if (op.code == OpCode::BindIndex) {
      if (varies)
        varying_symbols_.insert(op.index.symbol_id());
      else
        varying_symbols_.erase(op.index.symbol_id());
    }
    if (op.result == loop::kNone) continue;
    varying_values_[static_cast<size_t>(op.result)] = varies;
    dtypes_[static_cast<size_t>(op.result)] = op.dtype;
  }
}

int cost(const Block& block) {
  int total = 0;
  for (const loop::Statement& statement : block) {
    if (auto* inner = std::get_if<std::unique_ptr<Loop>>(&statement)) {
      total += cost((*inner)->body);
      continue;
    }
    const Op& op = std::get<Op>(statement);
    const int width = op.dtype == Dtype::Float64 || op.dtype == Dtype::Int64 ? 2 : 1;
    const int work = loop::traits(op.code).transcendental ? 14 : op.code == OpCode::Random ? 40 : 1;
    total += op.code == OpCode::Constant || op.code == OpCode::Parameter ? 0 : work * width;
  }
  return total;
}

}  // namespace tenon::codegen
