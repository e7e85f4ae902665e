// Evaluation: straight-line code in which instruction i writes register i.
#include "pool.h"

namespace tenon::sym {
namespace {

// As `b`: the operand is the instruction's constant.
constexpr int32_t kImmediate = -1;

int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }

int64_t apply(Op op, int64_t a, int64_t b) {
  auto unsigned_of = [](int64_t x) { return static_cast<uint64_t>(x); };
  switch (op) {
    case Op::Add: return wrap(unsigned_of(a) + unsigned_of(b));
    case Op::Mul: return wrap(unsigned_of(a) * unsigned_of(b));
    case Op::FloorDiv:
    case Op::Mod:
      TENON_CHECK(b != 0, "[evaluate] expected a divisor other than 0, got {} divided by 0", a);
      // kMin / -1 traps on most machines.
      if (b == -1) return op == Op::Mod ? 0 : wrap(0 - unsigned_of(a));
      return op == Op::Mod ? modulo(a, b) : divide_floor(a, b);
    case Op::Min: return std::min(a, b);
    case Op::Max: return std::max(a, b);
    case Op::Eq: return a == b;
    case Op::Ne: return a != b;
    case Op::Lt: return a < b;
    case Op::Le: return a <= b;
    case Op::And: return a != 0 && b != 0;
    case Op::Or: return a != 0 || b != 0;
    case Op::Not: return a == 0;
    case Op::Constant:
    case Op::Symbol: break;
  }
  return 0;
}

}  // namespace

ExprProgram::ExprProgram(std::span<const Expr> results) {
  std::unordered_map<Expr, int32_t> registers;
  auto emit = [&](Instruction instruction) {
    code_.push_back(instruction);
    return static_cast<int32_t>(code_.size() - 1);
  };
  auto load = [&](Expr expr) {
    auto [entry, added] = registers.emplace(expr, 0);
    if (added) entry->second = emit({Op::Constant, 0, 0, expr.constant()});
    return entry->second;
  };
  for (Expr result : results) {
    // Constants are loaded where no instruction can hold them.
    post_order(
        result, [&](Expr e) { return !e.is_constant() && !registers.contains(e); },
        [&](Expr e) {
          int32_t at = 0;
          if (e.is_symbol()) {
            at = emit({Op::Symbol, e.symbol_id(), 0, 0});
          } else {
            std::span<const Expr> args = e.args();
            bool commutes = e.op() == Op::Add || e.op() == Op::Mul || e.op() == Op::Min || e.op() == Op::Max;
            // A sum's constant comes first; as the last operand it needs no register.
            size_t first = commutes && args.size() > 1 && args[0].is_constant() && !args[1].is_constant() ? 1 : 0;
            at = args[first].is_constant() ? load(args[first]) : registers.at(args[first]);
            if (args.size() == 1) at = emit({e.op(), at, at, 0});
            for (size_t i = 0; i < args.size(); ++i) {
              if (i == first) continue;
              if (args[i].is_constant()) at = emit({e.op(), at, kImmediate, args[i].constant()});
              else at = emit({e.op(), at, registers.at(args[i]), 0});
            }
          }
          registers.emplace(e, at);
        });
    results_.push_back(result.is_constant() ? load(result) : registers.at(result));
  }
}

void ExprProgram::run(std::span<const int64_t> symbol_values, std::span<int64_t> results) const {
  TENON_ASSERT(results.size() == results_.size(), "{} results of {}", results.size(), results_.size());
  constexpr size_t kOnStack = 256;
  int64_t on_stack[kOnStack];
  std::vector<int64_t> on_heap(code_.size() > kOnStack ? code_.size() : 0);
  int64_t* registers = code_.size() > kOnStack ? on_heap.data() : on_stack;
  for (size_t i = 0; i < code_.size(); ++i) {
    const Instruction& at = code_[i];
    if (at.op == Op::Constant) {
      registers[i] = at.constant;
    } else if (at.op == Op::Symbol) {
      TENON_ASSERT(static_cast<size_t>(at.a) < symbol_values.size(), "no value for symbol {}: {} are given", at.a,
                   symbol_values.size());
      registers[i] = symbol_values[static_cast<size_t>(at.a)];
    } else {
      registers[i] = apply(at.op, registers[at.a], at.b == kImmediate ? at.constant : registers[at.b]);
    }
  }
  for (size_t i = 0; i < results.size(); ++i) results[i] = registers[results_[i]];
}

int64_t evaluate(Expr expr, std::span<const int64_t> symbol_values) {
  if (expr.is_constant()) return expr.constant();
  int64_t result = 0;
  ExprProgram({&expr, 1}).run(symbol_values, {&result, 1});
  return result;
}

}  // namespace tenon::sym
