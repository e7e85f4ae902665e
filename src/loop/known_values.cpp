#include "known_values.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tenon::loop {
namespace {

// Of two numbers the smaller, by name if it is known which one that is.
sym::Expr smaller(sym::ExprPool& pool, sym::Expr a, sym::Expr b) {
  if (pool.known(le(a, b)) == true) return a;
  if (pool.known(le(b, a)) == true) return b;
  return min(a, b);
}
sym::Expr larger(sym::ExprPool& pool, sym::Expr a, sym::Expr b) {
  if (pool.known(ge(a, b)) == true) return a;
  if (pool.known(ge(b, a)) == true) return b;
  return max(a, b);
}

// How many bits a whole number may have so that the dtype holds it, and sums and products of such are exact.
int exact_bits(Dtype dtype) {
  switch (dtype) {
    case Dtype::Int64: return 63;
    case Dtype::Int32: return 31;
    case Dtype::Float64: return 53;
    case Dtype::Float32: return 24;
    default: return 0;
  }
}

}  // namespace

void KnownValues::add(const Op& op, sym::ExprPool& pool) {
  Known number = exact_bits(op.dtype) > 0 ? number_of(op, pool) : Known{};
  // Of other dtypes than that of indices a number is known only as long as it certainly is one of theirs.
  if (number.value.defined() && op.dtype != Dtype::Int64) {
    const int64_t most = int64_t{1} << exact_bits(op.dtype);
    const sym::Range range = pool.range(number.value);
    if (range.min <= -most || range.max >= most) number = {};
  }
  numbers_.push_back(number.bits <= kMostBits ? number : Known{});
  truths_.push_back(op.dtype == Dtype::Bool ? truth_of(op, pool) : std::nullopt);
}

KnownValues::Known KnownValues::number_of(const Op& op, sym::ExprPool& pool) const {
  auto operand = [&](int at) {
    return op.operands[at] == kNone ? Known{} : numbers_[static_cast<size_t>(op.operands[at])];
  };
  if (op.code == OpCode::Constant) {
    if (is_floating(op.dtype)) {
      const double real = op.number.to_real();
      if (!(std::abs(real) < 0x1p24) || std::trunc(real) != real) return {};
    }
    const auto value = is_floating(op.dtype) ? static_cast<int64_t>(op.number.to_real()) : op.number.to_integer();
    const auto size = static_cast<uint64_t>(value < 0 ? ~value : value);
    return {pool.constant(value), static_cast<int>(std::bit_width(size))};
  }
  if (op.code == OpCode::Index) return {op.index, 0};
  if (op.code == OpCode::Select) {
    std::optional<bool> condition = truth(op.operands[0]);
    return condition ? operand(*condition ? 1 : 2) : Known{};
  }
  const auto [a, a_bits] = operand(0);
  const auto [b, b_bits] = operand(1);
  if (!a.defined()) return {};
  if (op.code == OpCode::Cast) return op.has_rounding ? Known{} : Known{a, a_bits};
  if (op.code == OpCode::Neg) return {-a, a_bits};
  // The zero changes nothing, and says that it is not negative.
  if (op.code == OpCode::Abs) return {larger(pool, larger(pool, a, -a), pool.constant(0)), a_bits};
  if (!b.defined()) return {};
  const int most = std::max(a_bits, b_bits);
  // A product is made only where it fits: what is too large is not even written down.
  if (op.code == OpCode::Mul) return a_bits + b_bits <= kMostBits ? Known{a * b, a_bits + b_bits} : Known{};
  switch (op.code) {
    case OpCode::Add: return {a + b, most + 1};
    case OpCode::Sub: return {a - b, most + 1};
    case OpCode::Min: return {smaller(pool, a, b), most};
    case OpCode::Max: return {larger(pool, a, b), most};
    // Only of divisors that are certainly positive: the others have corners of their own. (A quotient of floats is
    // rounded before it is cut.)
    case OpCode::FloorDiv:
      return !is_floating(op.dtype) && pool.range(b).min > 0 ? Known{floor_div(a, b), most} : Known{};
    case OpCode::Mod: return !is_floating(op.dtype) && pool.range(b).min > 0 ? Known{mod(a, b), most} : Known{};
    default: return {};
  }
}

std::optional<bool> KnownValues::truth_of(const Op& op, sym::ExprPool& pool) const {
  auto operand = [&](int at) { return op.operands[at] == kNone ? std::nullopt : truth(op.operands[at]); };
  switch (op.code) {
    case OpCode::Constant: return op.number.to_integer() != 0;
    case OpCode::Not: return operand(0) ? std::optional(!*operand(0)) : std::nullopt;
    case OpCode::And:
      if (operand(0) == false || operand(1) == false) return false;
      return operand(0) == true && operand(1) == true ? std::optional(true) : std::nullopt;
    case OpCode::Or:
      if (operand(0) == true || operand(1) == true) return true;
      return operand(0) == false && operand(1) == false ? std::optional(false) : std::nullopt;
    default: break;
  }
  if (op.code < OpCode::Eq || op.code > OpCode::Ge) return std::nullopt;
  const sym::Expr a = number(op.operands[0]), b = number(op.operands[1]);
  if (!a.defined() || !b.defined()) return std::nullopt;
  switch (op.code) {
    case OpCode::Eq: return pool.known(eq(a, b));
    case OpCode::Ne: return pool.known(ne(a, b));
    case OpCode::Lt: return pool.known(lt(a, b));
    case OpCode::Le: return pool.known(le(a, b));
    case OpCode::Gt: return pool.known(gt(a, b));
    default: return pool.known(ge(a, b));
  }
}

}  // namespace tenon::loop
