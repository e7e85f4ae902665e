// What `ExprPool` keeps, and the steps of the simplifier as its members, one file per group:
// `intern.cpp` (nodes), `sum.cpp` (sums of products), `divide.cpp` (FloorDiv, Mod), `compare.cpp` (Min, Max,
// conditions), `power.cpp` (Abs, Pow), `real.cpp` (reals), `dyadic.cpp` (reals that are exact), `range.cpp`,
// `prove.cpp` (inequalities), `assume.cpp` (what is learnt), `simplify.cpp` (rebuilding).
//
// Expressions stand for mathematical integers: rules hold as if nothing overflowed. Where a coefficient itself would
// overflow, the operation is kept as an `opaque` node that no rule looks into.
// Where a divisor is zero an expression has no value, so a rule need not hold there: "positive" below is `>= 0`.
// A pool is used by one thread at a time.
#pragma once

#include "apply.h"
#include "rules.h"

#include <tenon/support/hash.h>
#include <tenon/support/small_vector.h>
#include <tenon/sym/expr.h>

#include <array>
#include <deque>
#include <unordered_set>

namespace tenon::sym {

struct ExprNode {
  Op op;
  bool opaque;        // Add or Mul of two arguments that could not be folded without overflow
  bool has_division;  // a FloorDiv or Mod, or a product with one
  bool real;
  mutable bool maybe_nan;  // with `range`, of a real
  mutable bool witnessed;  // whether `witness` is set
  int32_t newest_symbol;   // the largest symbol id inside, -1 without symbols
  uint32_t arg_count;
  int64_t value;  // of a Constant; the bits of a RealConstant; the id of a Symbol
  size_t hash;
  ExprPool* pool;
  const Expr* args;
  // The range as of `range_epoch`; epochs count what the pool has learnt. Of a real: the bits of its ends.
  mutable Range range;
  mutable uint64_t range_epoch;
  // The value at an assignment that all facts allow (the hints of a `ShapeEnv`): what is false there is not proved.
  mutable int64_t witness;
};

// coefficient * monomial; a monomial is an atom, or a Mul without a constant.
struct Term {
  int64_t coefficient;
  Expr monomial;
};
using Terms = SmallVector<Term, 6>;
using ExprList = SmallVector<Expr, 6>;

// constant + terms, sorted, with distinct monomials and no zero coefficients.
struct Sum {
  int64_t constant = 0;
  Terms terms;
  size_t size() const { return terms.size() + (constant != 0); }
};

// Structural order: symbols in order of creation, products by their factors. It depends on no address and no history,
// so that equal programs print equally.
int compare(Expr a, Expr b);
// The factors of a monomial (itself, if it is no product).
std::span<const Expr> factors(const Expr& monomial);
// The greatest common divisor, 0 for 0 and 0.
int64_t gcd(int64_t a, int64_t b);
std::optional<int64_t> checked_add(int64_t a, int64_t b);
std::optional<int64_t> checked_mul(int64_t a, int64_t b);
// Towards minus infinity; b != 0, and not kMin / -1.
int64_t divide_floor(int64_t a, int64_t b);
int64_t modulo(int64_t a, int64_t b);

// Interval arithmetic; infinite ends absorb.
Range add(Range a, Range b);
Range multiply(Range a, Range b);
Range intersect(Range a, Range b);  // may be empty: min > max
std::string str(Range range);       // "[2, inf)"

struct ExprPool::State {
  struct SymbolInfo {
    std::string name;
    Range range;
    Expr expr;
    bool size = false;       // see mark_size
    bool from_data = false;  // known only once a program has come to it, in the order of ids; others are from the start
  };
  struct NodeHash {
    size_t operator()(const ExprNode* node) const { return node->hash; }
  };
  struct NodeEqual {
    bool operator()(const ExprNode* a, const ExprNode* b) const;
  };
  struct Key {
    Op op;
    Expr a, b;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return hash_combine(hash_combine(static_cast<size_t>(key.op), key.a.node()->hash), key.b.node()->hash);
    }
  };

  explicit State(ExprPool* owner) : pool(owner) {}

  // Nodes.
  Expr constant(int64_t value);
  Expr intern(Op op, std::span<const Expr> args, int64_t value = 0, bool opaque = false, bool real_symbol = false);
  Expr symbol(std::string_view name, Range range, bool real);
  Expr opaque(Op op, Expr a, Expr b);
  void set_witness(Expr symbol, int64_t value);
  void* allocate(size_t bytes);

  // Sums of products. The `raw` ones use no knowledge, so that the prover may call them.
  Sum decompose(Expr expr);
  Term term_of(Expr expr);
  Expr build(const Sum& sum);
  Expr build(const Term& term);
  Expr monomial(std::span<const Expr> sorted_factors);
  std::optional<Sum> add_scaled(const Sum& a, const Sum& b, int64_t scale);
  std::optional<Term> multiply(const Term& a, const Term& b);
  // a / b if every factor of b is one of a's.
  std::optional<Term> quotient(const Term& a, const Term& b);
  Term without(const Term& term, Expr factor);
  Expr add_raw(Expr a, Expr b, int64_t scale = 1);
  Expr mul_raw(Expr a, Expr b);
  Expr add(Expr a, Expr b, int64_t scale = 1) { return recombine(add_raw(a, b, scale)); }
  Expr mul(Expr a, Expr b) { return recombine(mul_raw(a, b)); }
  Expr negate(Expr a) { return mul_raw(constant(-1), a); }
  // n*FloorDiv(x, n) + Mod(x, n) and its relatives.
  Expr recombine(Expr sum);
  std::optional<Expr> recombine_once(Expr expr);

  // Division.
  struct Split {
    Expr quotient, remainder;
  };
  // a = b*quotient + remainder, taking from `a` whatever terms are multiples of `b`.
  Split split(Expr a, Expr b);
  Expr floor_div(Expr a, Expr b);
  Expr mod(Expr a, Expr b);
  Expr floor_div_uncached(Expr a, Expr b);
  Expr mod_uncached(Expr a, Expr b);
  // A common factor of all terms of `a` and `b`, made of a constant and symbols.
  Term common_factor(Expr a, Expr b);
  Expr divide_exactly(Expr a, const Term& by);
  // a = c*x + j with 0 <= j < c, and b = c*e, for a positive b.
  struct Partial {
    Expr c, x, j, e;
  };
  std::optional<Partial> partial_split(Expr a, Expr b);
  // The k for which k*b <= a < (k+1)*b is known.
  std::optional<int64_t> known_quotient(Expr a, Expr b);
  Expr settle(Expr node);  // a constant if its range has one value

  // Minimum, maximum, conditions.
  Expr extremum(Op op, Expr a, Expr b);
  Expr le(Expr a, Expr b);
  Expr equal(Op op, Expr a, Expr b);
  Expr connect(Op op, Expr a, Expr b);
  Expr logical_not(Expr a);
  Expr as_condition(Expr a);

  // Absolute value and power.
  Expr abs(Expr a);
  Expr pow(Expr a, Expr b);

  // Reals.
  Expr real_constant(double value);
  Expr to_real(Expr a);
  Expr real_unary(Op op, Expr a);
  Expr real_binary(Op op, Expr a, Expr b);
  Expr real_compare(Op op, Expr a, Expr b);
  Expr round_to_integer(Op op, Expr a);
  Expr is_integer(Expr a);
  Expr same(Expr a, Expr b);
  // A node, or the constant that what was assumed makes of it.
  Expr settle_condition(Expr node);
  Expr settle_real(Expr node);

  // A real that is known to be numerator / 2^shift, exactly, up to the sign of zero.
  struct Dyadic {
    Expr numerator;
    int shift;
  };
  std::optional<Dyadic> dyadic(Expr real);
  std::optional<Dyadic> dyadic_uncached(Expr real);
  std::optional<Dyadic> exact(Expr numerator, int shift);
  // Both over the same power of two.
  std::optional<std::array<Expr, 2>> align(const Dyadic& a, const Dyadic& b);
  // A comparison or rounding as one of integers, undefined if that is not known to be the same.
  Expr compare_exactly(Op op, Expr a, Expr b);
  Expr round_exactly(Op op, Expr a);
  // The range if sizes stay below 2^48.
  Range ordinary_range(Expr expr);

  // Ranges.
  Range range(Expr expr);
  RealRange real_range(Expr expr);
  template <typename Of, typename OfReal>
  Range combine_ranges(Expr expr, const Of& of, const OfReal& of_real);
  Range range_of_node(Expr expr);
  RealRange real_range_of_node(Expr expr);
  bool positive(Expr expr) { return range(expr).min >= 0; }
  bool never_zero(Expr expr) { return range(expr).min > 0 || range(expr).max < 0; }

  // Proofs. Sound, not complete; the work is bounded.
  bool prove_nonpositive(Expr expr);
  bool prove_le(Expr a, Expr b) { return prove_nonpositive(add_raw(a, b, -1)); }
  bool prove_lt(Expr a, Expr b) { return prove_nonpositive(add_raw(add_raw(a, b, -1), constant(1))); }

  // Knowledge.
  void learnt();  // starts a new epoch
  void refine(int32_t symbol, Range range);
  void assume(Expr condition);
  void learn_bound(Expr linear, Range range);
  void learn_equal(Expr linear, int64_t value);
  void learn_unequal(Expr linear, int64_t value);
  void learn_real(Expr condition);
  bool excludes(Expr form, int64_t value) const;
  void propagate(Expr linear, Range range);
  void learn_inside(Expr form, Range bound);
  bool solve(Expr linear, int64_t value);
  void relearn(int32_t solved);
  void index_form(Expr form);
  // expr = scale*form + offset, `form` being what `bounds` has as its keys.
  struct Normal {
    Expr form;
    int64_t scale, offset;
  };
  Normal normal(Expr expr);

  // Rebuilding.
  Expr simplify(Expr expr);
  Expr rebuild(Op op, std::span<const Expr> args);

  ExprPool* pool;
  std::vector<std::unique_ptr<std::byte[]>> chunks;
  size_t chunk_left = 0;
  std::byte* chunk_at = nullptr;
  std::unordered_set<const ExprNode*, NodeHash, NodeEqual> nodes;
  std::deque<SymbolInfo> symbols;
  std::unordered_map<std::string, int32_t> symbol_ids;

  // Whether facts hold everywhere, as those of a `ShapeEnv` do. Those of a loop's index hold inside the loop, and must
  // teach nothing about older symbols.
  bool facts_are_global = false;
  uint64_t epoch = 1;
  std::unordered_map<Expr, Range> bounds;  // of linear forms; lone symbols have their own
  struct Occurrence {
    Expr form;
    int64_t coefficient;
  };
  std::unordered_map<Expr, std::vector<Occurrence>> forms_by_term;  // monomial → forms that may do away with it
  std::unordered_map<int32_t, std::vector<Expr>> forms_by_symbol;   // forms in `bounds` and `excluded` that mention it
  struct KnownMod {
    int64_t modulus, rest;
  };
  std::unordered_map<Expr, std::vector<KnownMod>> known_mods;  // x → Mod(x, modulus) == rest
  std::unordered_map<Expr, std::vector<int64_t>> excluded;     // form → values that it does not take
  std::unordered_set<Expr> truths;                             // conditions that hold, as they were assumed
  std::unordered_map<int32_t, Expr> solutions;                 // symbol → what it equals
  std::unordered_map<Expr, Expr> real_values;                  // real → the constant that it is

  // Valid for one epoch.
  std::unordered_map<Key, Expr, KeyHash> memo;
  std::unordered_map<Expr, bool> proofs;
  std::unordered_map<Expr, std::optional<Dyadic>> dyadics;
  std::unordered_map<Expr, Expr> simplified;

  uint64_t steps = 0;                        // of proofs and of restated facts; for tests
  std::array<uint64_t, kRuleCount> fired{};  // how often each rule was used; for tests
  void fire(Rule rule) { ++fired[static_cast<size_t>(rule)]; }
};

// What an operation is called where it is written as a function, e.g. "FloorDiv"; empty for operators.
// `Min`, `Max`, `Abs` and `Pow` name an operation of integers and one of reals.
std::string_view function_name(Op op);
// The operation of that name for these operands; nothing if there is none, or if it takes another number of them.
std::optional<Op> find_function(std::string_view name, std::span<const Expr> args);

struct PoolAccess {
  using State = ExprPool::State;
  static ExprPool::State& state(const ExprPool& pool) { return *pool.state_; }
  static ExprPool::State& state(Expr expr) { return *expr.pool().state_; }
};

using PoolState = PoolAccess::State;

// Calls visit(node) for every node below and including `expr` once, arguments first, where `wanted(node)` holds.
template <typename Wanted, typename Visit>
void post_order(Expr expr, const Wanted& wanted, const Visit& visit) {
  struct Frame {
    Expr expr;
    uint32_t next;
  };
  SmallVector<Frame, 16> stack;
  if (wanted(expr)) stack.push_back({expr, 0});
  while (!stack.empty()) {
    Frame& frame = stack.back();
    if (frame.next < frame.expr.args().size()) {
      Expr arg = frame.expr.args()[frame.next++];
      if (wanted(arg)) stack.push_back({arg, 0});
    } else {
      Expr done = frame.expr;
      stack.pop_back();
      visit(done);
    }
  }
}

}  // namespace tenon::sym
