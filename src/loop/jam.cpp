#include <tenon/loop/jam.h>

#include "loop/facts.h"

#include <algorithm>
#include <unordered_map>

namespace tenon::loop {
namespace {

bool depends_on(sym::Expr expr, sym::Expr index) {
  if (!expr.defined()) return false;
  std::vector<int32_t> ids = sym::symbols_of(expr);
  return std::find(ids.begin(), ids.end(), index.symbol_id()) != ids.end();
}

// Works on elements, one by one: may stand twice in a loop.
bool may_be_repeated(const Op& op) {
  return op.code != OpCode::Reduce && op.code != OpCode::BindIndex && op.code != OpCode::Check &&
         op.code != OpCode::Random;
}

bool all_of(const Block& block, size_t count, const auto& holds) {
  for (size_t at = 0; at < count; ++at) {
    const auto* op = std::get_if<Op>(&block[at]);
    if (!op || !holds(*op)) return false;
  }
  return true;
}

class Jam {
 public:
  Jam(Kernel& kernel, Loop& rows, int count)
      : kernel_(kernel),
        rows_(rows),
        copies_(static_cast<size_t>(count), std::vector<ValueId>(static_cast<size_t>(kernel.value_count), kNone)) {}

  void run() {
    sym::ExprPool& pool = *kernel_.pool;
    auto count = static_cast<int64_t>(copies_.size());
    auto columns = std::move(std::get<std::unique_ptr<Loop>>(rows_.body.back()));
    rows_.body.pop_back();
    // Both indices are new, outermost first: the order in which the parser meets them, and so that of their sums.
    sym::Expr extent = pool.constant(rows_.extent.constant() / count), pass = new_index(extent),
              column = new_index(columns->extent);
    for (int64_t row = 0; row < count; ++row)
      places_.push_back({{rows_.index.symbol_id(), pass * count + row}, {columns->index.symbol_id(), column}});
    repeat(rows_.body);
    repeat(columns->body);
    columns->index = column;
    rows_.body.push_back(std::move(columns));
    rows_.index = pass;
    rows_.extent = extent;
  }

 private:
  sym::Expr new_index(sym::Expr extent) const {
    sym::ExprPool& pool = *kernel_.pool;
    int number = 0;
    while (pool.find_symbol(fmt::format("i{}", number)).defined()) ++number;
    sym::Expr index = pool.symbol(fmt::format("i{}", number), {0, sym::Range::kMax});
    assume_loop(pool, index, extent);
    return index;
  }

  // Every operation for the first row, and again for the others if it differs there.
  void repeat(Block& block) {
    Block all;
    for (const Statement& statement : block) {
      const Op& op = std::get<Op>(statement);
      bool differs = depends_on(op.index, rows_.index);
      for (ValueId operand : op.operands)
        differs |= operand != kNone && copies_[1][static_cast<size_t>(operand)] != kNone;
      for (size_t row = 0; row < (differs ? copies_.size() : 1); ++row) all.push_back(at_row(op, row));
    }
    block = std::move(all);
  }

  Op at_row(Op op, size_t row) {
    std::vector<ValueId>& copies = copies_[row];
    if (op.index.defined()) op.index = kernel_.pool->simplify(kernel_.pool->substitute(op.index, places_[row]));
    for (ValueId& operand : op.operands)
      if (operand != kNone && copies[static_cast<size_t>(operand)] != kNone)
        operand = copies[static_cast<size_t>(operand)];
    if (row > 0 && op.result != kNone) op.result = copies[static_cast<size_t>(op.result)] = kernel_.value_count++;
    return op;
  }

  Kernel& kernel_;
  Loop& rows_;
  std::vector<std::unordered_map<int32_t, sym::Expr>> places_;  // by row of a pass: what the old indices are there
  std::vector<std::vector<ValueId>>
      copies_;  // by row of a pass, then by value of the first row: what it is there, kNone if the same
};

}  // namespace

int jam_rows(Kernel& kernel) {
  auto* outer = kernel.body.size() == 1 ? std::get_if<std::unique_ptr<Loop>>(&kernel.body[0]) : nullptr;
  if (!outer || !(*outer)->parallel || (*outer)->vector || (*outer)->reduction || (*outer)->body.empty()) return 1;
  Loop& rows = **outer;
  auto* innermost = std::get_if<std::unique_ptr<Loop>>(&rows.body.back());
  if (!innermost || !(*innermost)->vector || (*innermost)->parallel || (*innermost)->reduction) return 1;
  const Loop& columns = **innermost;
  if (!rows.extent.is_constant() || depends_on(columns.extent, rows.index)) return 1;
  bool fits = all_of(rows.body, rows.body.size() - 1,
                     [](const Op& op) { return may_be_repeated(op) && op.code != OpCode::Store; }) &&
              all_of(columns.body, columns.body.size(), may_be_repeated);
  if (!fits) return 1;
  bool streams = false, shares = false;
  for (const Statement& statement : columns.body) {
    const Op& op = std::get<Op>(statement);
    if (op.code == OpCode::Store) {
      if (!depends_on(op.index, rows.index)) return 1;
      streams |= kernel.buffers[static_cast<size_t>(op.buffer)].streaming;
    }
    if (op.code == OpCode::Load) shares |= depends_on(op.index, columns.index) && !depends_on(op.index, rows.index);
  }
  if (!streams || !shares) return 1;
  constexpr size_t kLongestBody = 96;
  constexpr int64_t kFewestPasses = 64;  // threads share the passes
  for (int count : {4, 2}) {
    const bool divides = rows.extent.constant() % count == 0 && rows.extent.constant() / count >= kFewestPasses;
    if (!divides || columns.body.size() * static_cast<size_t>(count) > kLongestBody) continue;
    Jam(kernel, rows, count).run();
    verify(kernel);
    return count;
  }
  return 1;
}

}  // namespace tenon::loop
