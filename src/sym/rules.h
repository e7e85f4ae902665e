// The rules of the simplifier, as a table: what the code counts when it uses one, and what the tests prove.
//
// `from` becomes `to` where `when` holds. Where a divisor is zero `from` has no value, so that needs no mention.
// The letter k stands for a constant in the code that applies the rule; the statement holds for any value.
#pragma once

#include <cstddef>

namespace tenon::sym {

// X(name, from, to, when)
#define TENON_SYM_RULES(X)                                                                    \
  X(FloorDivNegative, "FloorDiv(x, -n)", "FloorDiv(-x, n)", "1")                              \
  X(FloorDivSplit, "FloorDiv(n*q + r, n)", "q + FloorDiv(r, n)", "1")                         \
  X(FloorDivCancel, "FloorDiv(c*x, c*y)", "FloorDiv(x, y)", "1")                              \
  X(FloorDivPartial, "FloorDiv(c*x + j, c*n)", "FloorDiv(x, n)", "n >= 0 && 0 <= j && j < c") \
  X(FloorDivNested, "FloorDiv(FloorDiv(x, m) + k, n)", "FloorDiv(x + k*m, m*n)", "n >= 0")    \
  X(FloorDivOfMod, "FloorDiv(Mod(x, m*n), n)", "Mod(FloorDiv(x, n), m)", "m >= 0")            \
  X(FloorDivKnown, "FloorDiv(x, n)", "k", "k*n <= x && x < k*n + n")                          \
  X(ModNegative, "Mod(x, -n)", "-Mod(-x, n)", "1")                                            \
  X(ModSplit, "Mod(n*q + r, n)", "Mod(r, n)", "1")                                            \
  X(ModInner, "Mod(c*Mod(x, m*n) + r, c*n)", "Mod(c*x + r, c*n)", "1")                        \
  X(ModCancel, "Mod(c*x, c*y)", "c*Mod(x, y)", "1")                                           \
  X(ModPartial, "Mod(c*x + j, c*n)", "c*Mod(x, n) + j", "n >= 0 && 0 <= j && j < c")          \
  X(ModKnown, "Mod(x, n)", "x - k*n", "k*n <= x && x < k*n + n")                              \
  X(RecombineWhole, "c*n*FloorDiv(x, n) + c*Mod(x, n)", "c*x", "1")                           \
  X(RecombineMod, "c*n*Mod(FloorDiv(x, n), m) + c*Mod(x, n)", "c*Mod(x, m*n)", "m >= 0")      \
  X(RecombineKnown, "c*n*FloorDiv(x, n)", "c*x - c*k", "Mod(x, n) == k")                      \
  X(MinOrdered, "Min(x, y)", "x", "x <= y")                                                   \
  X(MaxOrdered, "Max(x, y)", "y", "x <= y")                                                   \
  X(MinAbsorbs, "Min(x, Max(x, y))", "x", "1")                                                \
  X(MaxAbsorbs, "Max(x, Min(x, y))", "x", "1")                                                \
  X(AbsPositive, "Abs(x)", "x", "x >= 0")                                                     \
  X(AbsNegative, "Abs(x)", "-x", "x <= 0")                                                    \
  X(AbsSign, "Abs(-x)", "Abs(x)", "1")                                                        \
  X(AbsScale, "Abs(c*x)", "c*Abs(x)", "c >= 0")                                               \
  X(PowUnrolled, "Pow(x, 3)", "x*x*x", "1")                                                   \
  X(ConditionAsNumber, "(x <= y) == 1", "x <= y", "1")                                        \
  X(EqCancel, "c*x == c*y", "x == y", "c != 0")                                               \
  X(LeCancel, "c*x <= c*y", "x <= y", "c >= 1")                                               \
  X(ModKnownMultiple, "Mod(x, n)", "Mod(k, n)", "Mod(x, m*n) == k")                           \
  X(LeCommon, "c*x <= k", "x <= FloorDiv(k, c)", "c >= 1")                                    \
  X(LeProved, "x <= y", "1", "x <= y")                                                        \
  X(LeDisproved, "x <= y", "0", "y < x")                                                      \
  X(EqIndivisible, "c*x == k", "0", "Mod(k, c) != 0")                                         \
  X(EqProved, "x == y", "1", "x <= y && y <= x")                                              \
  X(EqDisproved, "x == y", "0", "x < y || y < x")

// X(name, claim, when): an inequality that follows.
#define TENON_SYM_PROOFS(X)                                                                                \
  X(ProveFact, "x <= y", "c >= 0 && u <= 0 && x - c*u <= y")                                               \
  X(ProveFloorDivUpper, "FloorDiv(x, n) + r <= 0", "n >= 0 && x + n*r - n + 1 <= 0")                       \
  X(ProveFloorDivLower, "r - FloorDiv(x, n) <= 0", "n >= 0 && n*r - x <= 0")                               \
  X(ProveScaledFloorDivUpper, "c*FloorDiv(x, n) + r <= 0", "n >= 0 && c >= 0 && c*x + n*r <= 0")           \
  X(ProveScaledFloorDivLower, "r - c*FloorDiv(x, n) <= 0", "n >= 0 && c >= 0 && n*r - c*(x - n + 1) <= 0") \
  X(ProveMultipleUpper, "c*n*FloorDiv(x, n) <= y", "n >= 0 && c >= 0 && c*x <= y")                         \
  X(ProveMultipleLower, "y <= c*n*FloorDiv(x, n)", "n >= 0 && c >= 0 && y <= c*(x - n + 1)")               \
  X(ProveModBelowDivisor, "c*Mod(x, n) <= y", "n >= 0 && c >= 0 && c*(n - 1) <= y")                        \
  X(ProveModBelowDividend, "c*Mod(x, n) <= y", "n >= 0 && c >= 0 && x >= 0 && c*x <= y")                   \
  X(ProveMinBelowEither, "c*Min(x, y) <= r", "c >= 0 && c*x <= r")                                         \
  X(ProveMinAboveBoth, "r <= c*Min(x, y)", "r <= c*x && r <= c*y")                                         \
  X(ProveMaxBelowBoth, "c*Max(x, y) <= r", "c*x <= r && c*y <= r")                                         \
  X(ProveMaxAboveEither, "r <= c*Max(x, y)", "c >= 0 && r <= c*x")                                         \
  X(ProveAbsBelowBoth, "c*Abs(x) <= r", "c*x <= r && -c*x <= r")                                           \
  X(ProveAbsAboveEither, "r <= c*Abs(x)", "c >= 0 && (r <= c*x || r <= -c*x)")                             \
  X(ProveFactorUpper, "c*x <= r", "c >= 0 && x <= k && c*k <= r")                                          \
  X(ProveFactorLower, "r <= c*x", "c >= 0 && k <= x && r <= c*k")

// X(name, claim, when): what follows from a fact about something larger.
#define TENON_SYM_LESSONS(X)                                                       \
  X(LearnMaxUpper, "x <= r", "Max(x, y) <= r")                                     \
  X(LearnMaxLower, "r <= x", "r <= Max(x, y) && y < r")                            \
  X(LearnMinLower, "r <= x", "r <= Min(x, y)")                                     \
  X(LearnMinUpper, "x <= r", "Min(x, y) <= r && r < y")                            \
  X(LearnAbs, "x <= r && -x <= r", "Abs(x) <= r")                                  \
  X(LearnFloorDivUpper, "x <= n*r + n - 1", "n >= 0 && FloorDiv(x, n) <= r")       \
  X(LearnFloorDivLower, "n*r <= x", "n >= 0 && r <= FloorDiv(x, n)")               \
  X(LearnProduct, "c <= FloorDiv(r, n)", "c*y <= r && n <= y && n >= 1 && c >= 0") \
  X(LearnTerm, "x <= r - k", "x + y <= r && k <= y")                               \
  X(LearnUnequal, "x <= r - 1", "x <= r && x != r")

// X(name): of reals. What they state is proved on doubles with fewer bits.
#define TENON_SYM_REAL_RULES(X) \
  X(DyadicIsInteger) X(DyadicCompare) X(DyadicCompareBetween) X(DyadicRound) X(QuotientRound)

#define TENON_SYM_NAME(name, ...) name,
enum class Rule {
  TENON_SYM_RULES(TENON_SYM_NAME) TENON_SYM_PROOFS(TENON_SYM_NAME) TENON_SYM_LESSONS(TENON_SYM_NAME)
      TENON_SYM_REAL_RULES(TENON_SYM_NAME) Count
};
#undef TENON_SYM_NAME
constexpr size_t kRuleCount = static_cast<size_t>(Rule::Count);

}  // namespace tenon::sym
