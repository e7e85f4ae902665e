// Evaluation: straight-line code in which instruction i writes register i.
#include "pool.h"
#include "real_math.h"

#include <bit>

namespace tenon::sym {
namespace {

// As `b`: the operand is the instruction's constant.
constexpr int32_t kImmediate = -1;

int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }
double real(int64_t bits) { return std::bit_cast<double>(bits); }
int64_t bits(double value) { return std::bit_cast<int64_t>(value); }

[[noreturn]] void no_value(Op op, int64_t a, int64_t b) {
  if (op == Op::Pow) fail("[evaluate] expected an exponent of at least 0, got {} to the power of {}", a, b);
  if (op == Op::FloorDiv || op == Op::Mod) fail("[evaluate] expected a divisor other than 0, got {} divided by 0", a);
  fail("[evaluate] expected a number that fits 64 bits when rounded, got {}", real(a));
}

bool literal(Expr e) { return e.is_constant() || e.is_real_constant(); }

}  // namespace

bool apply_operation(Op op, int64_t a, int64_t b, int64_t& result) {
  auto unsigned_of = [](int64_t x) { return static_cast<uint64_t>(x); };
  switch (op) {
    case Op::Add: result = wrap(unsigned_of(a) + unsigned_of(b)); break;
    case Op::Mul: result = wrap(unsigned_of(a) * unsigned_of(b)); break;
    case Op::FloorDiv:
    case Op::Mod:
      if (b == 0) return false;
      // kMin / -1 traps on most machines.
      if (b == -1)
        result = op == Op::Mod ? 0 : wrap(0 - unsigned_of(a));
      else
        result = op == Op::Mod ? modulo(a, b) : divide_floor(a, b);
      break;
    case Op::Min: result = std::min(a, b); break;
    case Op::Max: result = std::max(a, b); break;
    case Op::Abs: result = a < 0 ? wrap(0 - unsigned_of(a)) : a; break;
    case Op::Pow: return apply_pow(a, b, result);
    case Op::Floor:
    case Op::Ceil:
    case Op::Round:
    case Op::Trunc: return apply_rounding(op, real(a), result);
    case Op::ToReal: result = bits(static_cast<double>(a)); break;
    case Op::RealAdd:
    case Op::RealSub:
    case Op::RealMul:
    case Op::RealDiv:
    case Op::RealPow:
    case Op::RealMin:
    case Op::RealMax: result = bits(apply_binary(op, real(a), real(b))); break;
    case Op::Eq: result = a == b; break;
    case Op::Ne: result = a != b; break;
    case Op::Lt: result = a < b; break;
    case Op::Le: result = a <= b; break;
    case Op::And: result = a != 0 && b != 0; break;
    case Op::Or: result = a != 0 || b != 0; break;
    case Op::Not: result = a == 0; break;
    case Op::RealEq:
    case Op::RealNe:
    case Op::RealLt:
    case Op::RealLe:
    case Op::Same: result = apply_comparison(op, real(a), real(b)); break;
    case Op::IsInteger: result = has_no_fraction(real(a)); break;
    case Op::Constant:
    case Op::RealConstant:
    case Op::Symbol: break;
    default: result = bits(apply_unary(op, real(a))); break;
  }
  return true;
}

ExprProgram::ExprProgram(std::span<const Expr> results) {
  std::unordered_map<Expr, int32_t> registers;
  auto emit = [&](Instruction instruction) {
    code_.push_back(instruction);
    return static_cast<int32_t>(code_.size() - 1);
  };
  auto load = [&](Expr expr) {
    auto [entry, added] = registers.emplace(expr, 0);
    if (added) entry->second = emit({Op::Constant, 0, 0, expr.node()->value});
    return entry->second;
  };
  for (Expr result : results) {
    // Constants are loaded where no instruction can hold them.
    post_order(
        result, [&](Expr e) { return !literal(e) && !registers.contains(e); },
        [&](Expr e) {
          int32_t at = 0;
          if (e.is_symbol()) {
            at = emit({Op::Symbol, e.symbol_id(), 0, 0});
          } else {
            std::span<const Expr> args = e.args();
            bool commutes = e.op() == Op::Add || e.op() == Op::Mul || e.op() == Op::Min || e.op() == Op::Max;
            // A sum's constant comes first; as the last operand it needs no register.
            size_t first = commutes && args.size() > 1 && args[0].is_constant() && !args[1].is_constant() ? 1 : 0;
            at = literal(args[first]) ? load(args[first]) : registers.at(args[first]);
            if (args.size() == 1) at = emit({e.op(), at, at, 0});
            for (size_t i = 0; i < args.size(); ++i) {
              if (i == first) continue;
              if (literal(args[i]))
                at = emit({e.op(), at, kImmediate, args[i].node()->value});
              else
                at = emit({e.op(), at, registers.at(args[i]), 0});
            }
          }
          registers.emplace(e, at);
        });
    results_.push_back(literal(result) ? load(result) : registers.at(result));
  }
}

template <bool Throw>
bool ExprProgram::execute(std::span<const int64_t> symbol_values, std::span<int64_t> results) const {
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
      int64_t a = registers[at.a], b = at.b == kImmediate ? at.constant : registers[at.b];
      if (apply_operation(at.op, a, b, registers[i])) continue;
      if constexpr (Throw) no_value(at.op, a, b);
      return false;
    }
  }
  for (size_t i = 0; i < results.size(); ++i) results[i] = registers[results_[i]];
  return true;
}

void ExprProgram::run(std::span<const int64_t> symbol_values, std::span<int64_t> results) const {
  execute<true>(symbol_values, results);
}

bool ExprProgram::try_run(std::span<const int64_t> symbol_values, std::span<int64_t> results) const {
  return execute<false>(symbol_values, results);
}

int64_t evaluate(Expr expr, std::span<const int64_t> symbol_values) {
  if (literal(expr)) return expr.node()->value;
  int64_t result = 0;
  ExprProgram({&expr, 1}).run(symbol_values, {&result, 1});
  return result;
}

double evaluate_real(Expr expr, std::span<const int64_t> symbol_values) {
  TENON_ASSERT(expr.is_real(), "{} is not real", expr.str());
  return real(evaluate(expr, symbol_values));
}

}  // namespace tenon::sym
