// Evaluation: straight-line code in which instruction i writes register i.
#include "pool.h"
#include "real_math.h"
#include "support/reworded.h"

#include <fmt/format.h>

#include <bit>

namespace tenon::sym {
namespace {

// As `b`: the operand is the instruction's constant.
constexpr int32_t kImmediate = -1;

// Wide enough for what 64-bit numbers come to in a few steps.
__extension__ using Wide = __int128;

double real(int64_t bits) { return std::bit_cast<double>(bits); }
int64_t bits(double value) { return std::bit_cast<int64_t>(value); }
bool fits(Wide value) { return value >= Range::kMin && value <= Range::kMax; }

const char* sign_of(Op op) {
  switch (op) {
    case Op::Add: return "+";
    case Op::FloorDiv: return "/";
    case Op::Pow: return "to the power of";
    default: return "*";
  }
}

[[noreturn]] void no_value(Op op, Wide a, Wide b) {
  if (op == Op::Pow && b < 0) fail("[evaluate] expected an exponent of at least 0, got {} to the power of {}", a, b);
  if ((op == Op::FloorDiv || op == Op::Mod) && b == 0)
    fail("[evaluate] expected a divisor other than 0, got {} divided by 0", a);
  if (op == Op::Floor || op == Op::Ceil || op == Op::Round || op == Op::Trunc)
    fail("[evaluate] expected a number that fits 64 bits when rounded, got {}", real(static_cast<int64_t>(a)));
  const bool alone = op == Op::Constant || op == Op::Abs;
  throw OverflowError("[evaluate] expected a number that fits 64 bits, got " +
                      (alone ? fmt::format("{}", a) : fmt::format("{} {} {}", a, sign_of(op), b)));
}

bool literal(Expr e) { return e.is_constant() || e.is_real_constant(); }

// Rounds towards minus infinity; the remainder has the divisor's sign.
template <typename Int>
bool divide(Op op, Int a, Int b, Int& result) {
  if (b == 0) return false;
  // The smallest number over -1 traps on most machines.
  if (b == -1) {
    if (op == Op::FloorDiv) return !__builtin_sub_overflow(Int{0}, a, &result);
    result = 0;
    return true;
  }
  Int quotient = a / b, rest = a % b;
  bool below = rest != 0 && (rest < 0) != (b < 0);
  result = op == Op::FloorDiv ? quotient - (below ? 1 : 0) : rest + (below ? b : 0);
  return true;
}

template <typename Int>
bool power(Int base, Int exponent, Int& result) {
  if (exponent < 0) return false;
  result = 1;
  for (Int factor = base;;) {
    if (exponent % 2 != 0 && __builtin_mul_overflow(result, factor, &result)) return false;
    exponent /= 2;
    if (exponent == 0) return true;
    // A further square is used: the highest digit of an exponent is not 0.
    if (__builtin_mul_overflow(factor, factor, &factor)) return false;
  }
}

// One operation on integers; false where it has no value among them.
template <typename Int>
bool apply_to_integers(Op op, Int a, Int b, Int& result) {
  switch (op) {
    case Op::Add: return !__builtin_add_overflow(a, b, &result);
    case Op::Mul: return !__builtin_mul_overflow(a, b, &result);
    case Op::FloorDiv:
    case Op::Mod: return divide(op, a, b, result);
    case Op::Min: result = std::min(a, b); return true;
    case Op::Max: result = std::max(a, b); return true;
    case Op::Abs:
      if (a < 0) return !__builtin_sub_overflow(Int{0}, a, &result);
      result = a;
      return true;
    case Op::Pow: return power(a, b, result);
    case Op::ToReal: result = bits(static_cast<double>(a)); return true;
    case Op::Eq: result = a == b; return true;
    case Op::Ne: result = a != b; return true;
    case Op::Lt: result = a < b; return true;
    case Op::Le: result = a <= b; return true;
    case Op::And: result = a != 0 && b != 0; return true;
    case Op::Or: result = a != 0 || b != 0; return true;
    case Op::Not: result = a == 0; return true;
    default: TENON_ASSERT(false, "operation {} is none on integers", static_cast<int>(op));
  }
}

bool is_integer_operation(Op op) { return op < Op::Floor || op == Op::ToReal || (op >= Op::Eq && op <= Op::Not); }

bool apply_to_reals(Op op, double a, double b, int64_t& result) {
  switch (op) {
    case Op::Floor:
    case Op::Ceil:
    case Op::Round:
    case Op::Trunc: return apply_rounding(op, a, result);
    case Op::RealAdd:
    case Op::RealSub:
    case Op::RealMul:
    case Op::RealDiv:
    case Op::RealPow:
    case Op::RealMin:
    case Op::RealMax: result = bits(apply_binary(op, a, b)); return true;
    case Op::RealEq:
    case Op::RealNe:
    case Op::RealLt:
    case Op::RealLe:
    case Op::Same: result = apply_comparison(op, a, b); return true;
    case Op::IsInteger: result = has_no_fraction(a); return true;
    default: result = bits(apply_unary(op, a)); return true;
  }
}

}  // namespace

bool apply_operation(Op op, int64_t a, int64_t b, int64_t& result) {
  return is_integer_operation(op) ? apply_to_integers(op, a, b, result) : apply_to_reals(op, real(a), real(b), result);
}

namespace {

// The same with wide integers. Reals are their bits, as elsewhere.
bool apply_widely(Op op, Wide a, Wide b, Wide& result) {
  if (is_integer_operation(op)) return apply_to_integers(op, a, b, result);
  int64_t narrow = 0;
  bool has_value = apply_to_reals(op, real(static_cast<int64_t>(a)), real(static_cast<int64_t>(b)), narrow);
  result = narrow;
  return has_value;
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

// In 64 bits; where something does not fit, once more in wide numbers, which tell whether only the way leads out of
// 64 bits or the result lies there.
template <bool Throw>
bool ExprProgram::execute(std::span<const int64_t> symbol_values, std::span<int64_t> results) const {
  TENON_ASSERT(results.size() == results_.size(), "{} results of {}", results.size(), results_.size());
  auto symbol = [&](int32_t id) {
    TENON_ASSERT(static_cast<size_t>(id) < symbol_values.size(), "no value for symbol {}: {} are given", id,
                 symbol_values.size());
    return symbol_values[static_cast<size_t>(id)];
  };
  constexpr size_t kOnStack = 256;
  int64_t on_stack[kOnStack];
  std::vector<int64_t> on_heap(code_.size() > kOnStack ? code_.size() : 0);
  int64_t* registers = code_.size() > kOnStack ? on_heap.data() : on_stack;
  bool fitted = true;
  for (size_t i = 0; i < code_.size() && fitted; ++i) {
    const Instruction& at = code_[i];
    if (at.op == Op::Constant)
      registers[i] = at.constant;
    else if (at.op == Op::Symbol)
      registers[i] = symbol(at.a);
    else
      fitted =
          apply_operation(at.op, registers[at.a], at.b == kImmediate ? at.constant : registers[at.b], registers[i]);
  }
  if (fitted) [[likely]] {
    for (size_t i = 0; i < results.size(); ++i) results[i] = registers[results_[i]];
    return true;
  }
  std::vector<Wide> wide(code_.size());
  for (size_t i = 0; i < code_.size(); ++i) {
    const Instruction& at = code_[i];
    if (at.op == Op::Constant || at.op == Op::Symbol) {
      wide[i] = at.op == Op::Constant ? at.constant : symbol(at.a);
      continue;
    }
    Wide a = wide[static_cast<size_t>(at.a)], b = at.b == kImmediate ? at.constant : wide[static_cast<size_t>(at.b)];
    if (apply_widely(at.op, a, b, wide[i])) continue;
    if constexpr (Throw) no_value(at.op, a, b);
    return false;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    Wide result = wide[static_cast<size_t>(results_[i])];
    if (!fits(result)) {
      if constexpr (Throw) no_value(Op::Constant, result, 0);
      return false;
    }
    results[i] = static_cast<int64_t>(result);
  }
  return true;
}

void ExprProgram::run(std::span<const int64_t> symbol_values, std::span<int64_t> results) const {
  execute<true>(symbol_values, results);
}

bool ExprProgram::try_run(std::span<const int64_t> symbol_values, std::span<int64_t> results) const {
  return execute<false>(symbol_values, results);
}

namespace {

// What an evaluation had to say, with the expression and the values of its symbols.
std::string with_expression(const char* what, Expr expr, std::span<const int64_t> symbol_values) {
  std::string text = fmt::format("{}\n  evaluating {}", what, expr.str());
  for (int32_t id : symbols_of(expr)) {
    Expr symbol = expr.pool().symbol(id);
    int64_t value = symbol_values[static_cast<size_t>(id)];
    text += symbol.is_real() ? fmt::format("\n  {} = {}", symbol.name(), real(value))
                             : fmt::format("\n  {} = {}", symbol.name(), value);
  }
  return text;
}

}  // namespace

int64_t evaluate(Expr expr, std::span<const int64_t> symbol_values) {
  if (literal(expr)) return expr.node()->value;
  int64_t result = 0;
  try {
    ExprProgram({&expr, 1}).run(symbol_values, {&result, 1});
  } catch (const Error& error) {
    support::raise_reworded(error, with_expression(error.what(), expr, symbol_values));
  }
  return result;
}

double evaluate_real(Expr expr, std::span<const int64_t> symbol_values) {
  TENON_ASSERT(expr.is_real(), "{} is not real", expr.str());
  return real(evaluate(expr, symbol_values));
}

}  // namespace tenon::sym
