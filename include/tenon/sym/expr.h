// Integer, boolean and real expressions over symbols.
//
// An `Expr` is a handle to an immutable node. Nodes are interned in an `ExprPool`, in a normal form: equal
// expressions of one pool are the same pointer, so comparing, hashing and memoising cost nothing. Building an
// expression simplifies it: sums of products are collected, constants folded, and what the ranges of the
// symbols decide is decided (`Mod(i, n)` is `i` when 0 <= i < n is known).
//
// Normal form: `Add` has at most one constant, first; `Mul` has at most one constant, first, and no `Add`
// beside a constant factor (products of sums are expanded when the result has at most 16 terms); arguments are
// sorted by structure, symbols in order of creation. `FloorDiv` and `Mod` round towards minus infinity; dividing
// by zero is undefined. A comparison is `Eq`, `Ne` or `Le` (`a < b` becomes `a - b <= -1`) with all symbols on the
// left and the constant on the right; booleans are 0 and 1. Negation is pushed inwards.
//
// Reals are doubles, and mean what eager arithmetic on doubles computes, bit for bit: they are folded and interned but
// never rearranged. Mixing an integer with a real makes the integer real (`ToReal`). A comparison of reals is false
// where an operand is NaN, so `!(a < b)` stays a negation. Where every step is known to be exact (an integer of at most
// 2^53 over a power of two) a comparison, `Floor`, … of reals becomes one of integers, about which more is known.
// A negative exponent of an integer `Pow`, and `Floor`, `Ceil`, `Round`, `Trunc` of something beyond 64 bits or NaN
// have no value, as a division by zero has none.
//
// What it is not: it knows no hints and no guards (`ShapeEnv` does).
#pragma once

#include <tenon/support/error.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tenon::sym {

enum class Op : uint8_t {
  Constant,
  Symbol,
  Add,
  Mul,
  FloorDiv,
  Mod,
  Min,
  Max,
  Abs,
  Pow,  // integers; a Symbol may also be real
  Floor,
  Ceil,
  Round,
  Trunc,  // an integer from a real; Round: halves to even
  RealConstant,
  ToReal,
  RealAdd,
  RealSub,
  RealMul,
  RealDiv,
  RealPow,
  RealMin,
  RealMax,
  RealAbs,
  RealNeg,
  Sqrt,
  Sin,
  Cos,
  Tan,
  Sinh,
  Cosh,
  Tanh,
  Asin,
  Acos,
  Atan,
  Exp,
  Log,
  Exp2,
  Log2,
  Eq,
  Ne,
  Lt,
  Le,
  And,
  Or,
  Not,  // booleans
  RealEq,
  RealNe,
  RealLt,
  RealLe,
  Same,
  IsInteger,  // Same: the same bits, or both NaN
};

// An inclusive range; the ends saturate at `kMin` and `kMax`, which mean "no bound".
struct Range {
  static constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  int64_t min = kMin, max = kMax;
  bool single() const { return min == max; }
  bool operator==(const Range&) const = default;
};

// Where a real lies, and whether it may be NaN as well.
struct RealRange {
  double min = -std::numeric_limits<double>::infinity(), max = std::numeric_limits<double>::infinity();
  bool maybe_nan = true;
  bool operator==(const RealRange&) const = default;
};

class ExprPool;
struct ExprNode;

class Expr {
 public:
  Expr() = default;
  explicit Expr(const ExprNode* node) : node_(node) {}

  bool defined() const { return node_ != nullptr; }
  Op op() const;
  bool is_constant() const { return op() == Op::Constant; }
  bool is_constant(int64_t value) const { return is_constant() && constant() == value; }
  bool is_symbol() const { return op() == Op::Symbol; }
  bool is_boolean() const { return op() >= Op::Eq; }
  bool is_real() const;
  bool is_real_constant() const { return op() == Op::RealConstant; }
  int64_t constant() const;         // of a Constant
  double real_constant() const;     // of a RealConstant
  const std::string& name() const;  // of a Symbol
  int32_t symbol_id() const;        // of a Symbol: 0, 1, 2, … in order of creation in its pool
  std::span<const Expr> args() const;
  ExprPool& pool() const;
  const ExprNode* node() const { return node_; }
  std::string str() const;  // e.g. "2*s0 + 1", "Mod(s0, 8)", "s0 <= 5"

  bool operator==(const Expr& other) const { return node_ == other.node_; }

 private:
  const ExprNode* node_ = nullptr;
};

// Arithmetic; both sides must belong to one pool. With a real operand the result is real.
Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator-(Expr a);
Expr operator+(Expr a, int64_t b);
Expr operator-(Expr a, int64_t b);
Expr operator*(Expr a, int64_t b);
Expr floor_div(Expr a, Expr b);
Expr mod(Expr a, Expr b);
Expr min(Expr a, Expr b);
Expr max(Expr a, Expr b);
Expr abs(Expr a);
Expr pow(Expr a, Expr b);
Expr true_div(Expr a, Expr b);  // real, also of integers
Expr to_real(Expr a);
Expr floor(Expr a);  // these four are integers; of an integer, itself
Expr ceil(Expr a);
Expr round(Expr a);
Expr trunc(Expr a);
Expr call(Op function, Expr a);  // Sqrt … Log2
// Conditions, themselves expressions.
Expr eq(Expr a, Expr b);
Expr ne(Expr a, Expr b);
Expr lt(Expr a, Expr b);
Expr le(Expr a, Expr b);
Expr gt(Expr a, Expr b);
Expr ge(Expr a, Expr b);
Expr same(Expr a, Expr b);  // the same number; of reals the same bits, or both NaN
Expr is_integer(Expr a);    // a real without a fraction
Expr logical_and(Expr a, Expr b);
Expr logical_or(Expr a, Expr b);
Expr logical_not(Expr a);

class ExprPool {
 public:
  ExprPool();
  ~ExprPool();
  ExprPool(const ExprPool&) = delete;
  ExprPool& operator=(const ExprPool&) = delete;

  Expr constant(int64_t value);
  Expr real_constant(double value);
  // A new symbol. `name` must be unique in the pool.
  Expr symbol(std::string_view name, Range range = {});
  Expr real_symbol(std::string_view name);
  // Says that an integer symbol counts elements: it may be taken to lie below 2^48 where a real is to be exact. Its
  // range does not show that, since proofs would try the bound in vain.
  void mark_size(Expr symbol);
  // The symbol of that name, undefined if there is none.
  Expr find_symbol(std::string_view name) const;
  int32_t symbol_count() const;
  Expr symbol(int32_t id) const;

  // The range that the symbols' ranges and the assumed facts give to an expression.
  Range range(Expr expr) const;
  RealRange real_range(Expr expr) const;
  // Narrows a symbol's range.
  void refine(Expr symbol, Range range);
  // Records that a condition holds: ranges are narrowed, `s0 == 2*s1` becomes a substitution, anything else
  // is kept as a fact that `known` and the simplifier consult.
  void assume(Expr condition);
  // The truth of a condition if ranges and facts decide it.
  std::optional<bool> known(Expr condition) const;
  // The expression again, in the light of what has been learnt since it was built.
  Expr simplify(Expr expr);
  // Replaces symbols (by id) and simplifies. Symbols not in the map stay.
  Expr substitute(Expr expr, const std::unordered_map<int32_t, Expr>& replacements);
  // Copies an expression from another pool; `symbols` maps that pool's symbol ids to expressions of this one.
  Expr import(Expr expr, const std::unordered_map<int32_t, Expr>& symbols);
  // Parses what `str()` prints; symbols that do not exist yet are an Error.
  Expr parse(std::string_view text);

 private:
  friend class Expr;
  friend struct PoolAccess;
  struct State;
  std::unique_ptr<State> state_;
};

// The value of an expression; `symbol_values[id]` is the value of symbol `id`. Integers are the mathematical ones on
// the way: what simplification reordered does not overflow where the result fits. An expression without a value (a
// division by zero) is an Error, a result that 64 bits do not hold an OverflowError. Reals, symbols and results alike,
// are the bits of the double.
int64_t evaluate(Expr expr, std::span<const int64_t> symbol_values);
double evaluate_real(Expr expr, std::span<const int64_t> symbol_values);

// The ids of the symbols that an expression mentions, ascending.
std::vector<int32_t> symbols_of(Expr expr);

// Whether it is made of + * Min Max, conditions on integers, and FloorDiv and Mod by what is at least 1 alone, as the
// indices of kernels are.
bool is_index_arithmetic(Expr expr);

// Several expressions compiled to straight-line code that shares subexpressions; running it allocates nothing.
class ExprProgram {
 public:
  ExprProgram() = default;
  explicit ExprProgram(std::span<const Expr> results);
  // `results.size()` must be the number of expressions.
  void run(std::span<const int64_t> symbol_values, std::span<int64_t> results) const;
  // The same, but false where an expression has no value; then `results` are unspecified. For guards.
  bool try_run(std::span<const int64_t> symbol_values, std::span<int64_t> results) const;
  size_t result_count() const { return results_.size(); }

 private:
  struct Instruction {
    Op op;
    int32_t a, b;      // operand registers; for Symbol: a = symbol id
    int64_t constant;  // for Constant and RealConstant (bits)
  };
  template <bool Throw>
  bool execute(std::span<const int64_t> symbol_values, std::span<int64_t> results) const;
  std::vector<Instruction> code_;
  std::vector<int32_t> results_;
};

}  // namespace tenon::sym

template <>
struct std::hash<tenon::sym::Expr> {
  size_t operator()(const tenon::sym::Expr& expr) const noexcept { return std::hash<const void*>()(expr.node()); }
};
