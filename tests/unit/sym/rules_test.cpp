// Every rule of the table: proved by Z3 for all integers, or, where Z3 gives up, for some factors and all other
// integers; tried on all small values; and used by the simplifier in an example that shows it.
#include "../../../src/sym/pool.h"
#include "mirror.h"

#include <gtest/gtest.h>

#include <z3++.h>

#include <functional>

namespace tenon::sym {
namespace {

using mirror::Tree;
using mirror::Values;

struct Statement {
  Rule rule;
  const char *name, *from, *to, *when;
};

const std::vector<Statement>& statements() {
#define TENON_RULE(name, from, to, when) {Rule::name, #name, from, to, when},
#define TENON_PROOF(name, claim, when) {Rule::name, #name, claim, "1", when},
  static const std::vector<Statement> kStatements = {TENON_SYM_RULES(TENON_RULE) TENON_SYM_PROOFS(TENON_PROOF)
                                                         TENON_SYM_LESSONS(TENON_PROOF)};
  return kStatements;
}

// `divisors` receives every divisor on the way.
z3::expr to_z3(z3::context& context, const Tree& tree, std::vector<z3::expr>& divisors);

z3::expr truth(const z3::expr& e) { return e.is_bool() ? e : e != 0; }
z3::expr integer(const z3::expr& e) { return e.is_bool() ? z3::ite(e, e.ctx().int_val(1), e.ctx().int_val(0)) : e; }

z3::expr to_z3(z3::context& context, const Tree& tree, std::vector<z3::expr>& divisors) {
  if (tree->op == "0") return context.int_val(tree->value);
  if (tree->op == "x") return context.int_const(tree->name.c_str());
  const std::string& op = tree->op;
  z3::expr a = to_z3(context, tree->args[0], divisors);
  if (op == "Abs") return z3::ite(integer(a) < 0, -integer(a), integer(a));
  if (tree->args.size() == 1) return op == "!" ? !truth(a) : -integer(a);
  if (op == "Pow") {
    z3::expr power = context.int_val(1);
    for (int64_t i = 0; i < tree->args[1]->value; ++i) power = power * integer(a);
    return power;
  }
  z3::expr b = to_z3(context, tree->args[1], divisors);
  if (op == "&&") return truth(a) && truth(b);
  if (op == "||") return truth(a) || truth(b);
  a = integer(a);
  b = integer(b);
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "FloorDiv" || op == "Mod") {
    divisors.push_back(b);
    // Z3's division keeps the remainder non-negative; that is floor division for a positive divisor.
    z3::expr quotient = z3::ite(b > 0, a / b, (-a) / (-b));
    return op == "FloorDiv" ? quotient : a - b * quotient;
  }
  if (op == "Min") return z3::ite(a <= b, a, b);
  if (op == "Max") return z3::ite(a >= b, a, b);
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  if (op == ">") return a > b;
  return a >= b;
}

// sat: there is a counterexample; unsat: proved. Symbols in `fixed` have that value.
void collect_symbols(const Tree& tree, Values& values) {
  if (tree->op == "x") values[tree->name] = 0;
  for (const Tree& arg : tree->args) collect_symbols(arg, values);
}

Tree fix(const Tree& tree, const Values& fixed) {
  auto found = fixed.find(tree->name);
  if (tree->op == "x" && found != fixed.end()) return mirror::number(found->second);
  auto copy = std::make_shared<mirror::Node>(*tree);
  for (Tree& arg : copy->args) arg = fix(arg, fixed);
  return copy;
}

// `effort`: in Z3's own units, not in time: the same on every machine, and without Z3's timer threads, whose locks can
// wait for each other for ever (seen with 4.8.12).
z3::check_result refute(const Statement& statement, const Values& fixed = {}, unsigned effort = 200'000) {
  // One for all: making it is most of the time.
  static z3::context context;
  z3::solver solver(context);
  z3::params parameters(context);
  parameters.set("rlimit", fixed.empty() ? effort : 20 * effort);
  solver.set(parameters);
  std::vector<z3::expr> given, made;
  z3::expr from = to_z3(context, fix(mirror::parse(statement.from), fixed), given);
  z3::expr when = to_z3(context, fix(mirror::parse(statement.when), fixed), given);
  z3::expr to = to_z3(context, fix(mirror::parse(statement.to), fixed), made);
  solver.add(truth(when));
  for (const z3::expr& divisor : given) solver.add(divisor != 0);
  z3::expr holds = integer(from) == integer(to);
  for (const z3::expr& divisor : made) holds = holds && divisor != 0;
  solver.add(!holds);
  return solver.check();
}

// Where products are beyond Z3: the factors and divisors c, m, n one by one, everything else still any integer.
z3::check_result refute_for_small_factors(const Statement& statement) {
  Values symbols, factors;
  for (const char* text : {statement.from, statement.to, statement.when}) collect_symbols(mirror::parse(text), symbols);
  for (const char* name : {"c", "m", "n"})
    if (symbols.contains(name)) factors[name] = 0;
  z3::check_result worst = z3::unsat;
  std::function<void(Values::iterator)> walk = [&](Values::iterator at) {
    if (at == factors.end()) {
      z3::check_result result = refute(statement, factors);
      if (result != z3::unsat && worst != z3::sat) worst = result;
      return;
    }
    for (int64_t value : {-2, 1, 3, 4}) {
      at->second = value;
      walk(std::next(at));
    }
  };
  walk(factors.begin());
  return worst;
}

// Gives `values` every combination of small values of at least `least`.
void for_small_values(Values& values, int64_t least, const std::function<void()>& visit) {
  int64_t reach = values.size() <= 3 ? 8 : values.size() == 4 ? 5 : 3;
  std::function<void(Values::iterator)> walk = [&](Values::iterator at) {
    if (at == values.end()) return visit();
    for (at->second = std::max(-reach, least); at->second <= reach && !testing::Test::HasFatalFailure(); ++at->second)
      walk(std::next(at));
  };
  walk(values.begin());
}

// Counts the assignments in which the rule says something; fails on one in which it is wrong.
int try_small_values(const Statement& statement) {
  Tree from = mirror::parse(statement.from), to = mirror::parse(statement.to), when = mirror::parse(statement.when);
  Values values;
  for (const Tree& tree : {from, to, when}) collect_symbols(tree, values);
  int applied = 0;
  for_small_values(values, Range::kMin, [&] {
    std::optional<int64_t> left = mirror::evaluate(from, values);
    if (!left || mirror::evaluate(when, values).value_or(0) == 0) return;
    ++applied;
    ASSERT_EQ(mirror::evaluate(to, values), left) << statement.name << testing::PrintToString(values);
  });
  return applied;
}

TEST(RulesTest, HoldForAllIntegers) {
  int proved = 0, proved_in_part = 0;
  for (const Statement& statement : statements()) {
    SCOPED_TRACE(statement.name);
    z3::check_result result = refute(statement);
    EXPECT_NE(result, z3::sat) << statement.from << " is not " << statement.to;
    proved += result == z3::unsat;
    if (result == z3::unknown) {
      z3::check_result in_part = refute_for_small_factors(statement);
      EXPECT_NE(in_part, z3::sat) << statement.from << " is not " << statement.to;
      proved_in_part += in_part == z3::unsat;
    }
    // Small values as well: they also show that the condition can hold.
    EXPECT_GT(try_small_values(statement), 8);
  }
  RecordProperty("proved", proved);
  RecordProperty("proved_for_small_factors", proved_in_part);
  int all = static_cast<int>(statements().size());
  EXPECT_GE(proved, all / 3);
  EXPECT_GE(proved + proved_in_part, all - 3) << proved << " and " << proved_in_part;
}

TEST(RulesTest, AWrongRuleIsRefuted) {
  EXPECT_EQ(refute({Rule::Count, "wrong", "FloorDiv(x, -n)", "-FloorDiv(x, n)", "1"}, {}, 100'000'000), z3::sat);
  EXPECT_EQ(refute({Rule::Count, "wrong", "Min(x, y)", "x", "1"}, {}, 100'000'000), z3::sat);
}

// The left sides, and the right ones, where nothing or little is known: a rule that forgets its condition shows here.
TEST(RulesTest, AreNotUsedWithoutTheirConditions) {
  for (int64_t least : {Range::kMin, int64_t{0}, int64_t{1}}) {
    for (const Statement& statement : statements()) {
      for (const char* text : {statement.from, statement.to, statement.when}) {
        SCOPED_TRACE(std::string(statement.name) + ": " + text);
        Tree tree = mirror::parse(text);
        Values values;
        collect_symbols(tree, values);
        ExprPool pool;
        for (auto& [name, value] : values) pool.symbol(name, {least, Range::kMax});
        Expr built = mirror::build(tree, pool);
        ExprProgram program({&built, 1});
        std::vector<int64_t> by_id(values.size());
        for_small_values(values, least, [&] {
          std::optional<int64_t> expected = mirror::evaluate(tree, values);
          if (!expected) return;
          std::transform(values.begin(), values.end(), by_id.begin(), [](auto& entry) { return entry.second; });
          int64_t got = 0;
          program.run(by_id, {&got, 1});
          ASSERT_EQ(got, *expected) << built.str() << testing::PrintToString(values);
        });
      }
    }
  }
}

struct Example {
  Rule rule;
  std::vector<std::string> facts;
  const char *from, *to;
};

// Symbols: a b c n m are sizes (>= 0), i j k l indices (>= 0), x y z any number.
const std::vector<Example>& examples() {
  static const std::vector<Example> kExamples = {
      {Rule::FloorDivNegative, {}, "FloorDiv(x, -4)", "FloorDiv(-x, 4)"},
      {Rule::FloorDivSplit, {}, "FloorDiv(n*x + y, n)", "x + FloorDiv(y, n)"},
      {Rule::FloorDivSplit, {}, "FloorDiv(x - 1, 2) + 1", "FloorDiv(x + 1, 2)"},
      {Rule::FloorDivSplit, {}, "FloorDiv(6*x + 4*y + 5, 2)", "3*x + 2*y + 2"},
      {Rule::FloorDivSplit, {}, "FloorDiv((n + 1)*x + y, n + 1)", "x + FloorDiv(y, n + 1)"},
      {Rule::FloorDivSplit, {"j < b"}, "FloorDiv(i*b + j, b)", "i"},
      {Rule::FloorDivCancel, {}, "FloorDiv(a*x, a*b)", "FloorDiv(x, b)"},
      {Rule::FloorDivCancel, {}, "FloorDiv(4*x, 6)", "FloorDiv(2*x, 3)"},
      {Rule::FloorDivPartial, {"j < 4"}, "FloorDiv(4*i + j, 8)", "FloorDiv(i, 2)"},
      {Rule::FloorDivPartial, {"j < c"}, "FloorDiv(c*i + j, b*c)", "FloorDiv(i, b)"},
      {Rule::FloorDivPartial, {}, "FloorDiv(6*x + 5, 9)", "FloorDiv(2*x + 1, 3)"},
      {Rule::FloorDivNested, {}, "FloorDiv(FloorDiv(x, a), b)", "FloorDiv(x, a*b)"},
      {Rule::FloorDivNested, {}, "FloorDiv(FloorDiv(x, 3) + 1, 2)", "FloorDiv(x + 3, 6)"},
      {Rule::FloorDivOfMod, {}, "FloorDiv(Mod(x, a*b), b)", "Mod(FloorDiv(x, b), a)"},
      {Rule::FloorDivKnown, {"i < n"}, "FloorDiv(i, n)", "0"},
      {Rule::FloorDivKnown, {"i < n"}, "FloorDiv(-i - 1, n)", "-1"},
      {Rule::FloorDivKnown, {"x >= 8", "x <= 11"}, "FloorDiv(x, 4)", "2"},
      {Rule::ModNegative, {}, "Mod(x, -4)", "-Mod(-x, 4)"},
      {Rule::ModSplit, {}, "Mod(n*x + y, n)", "Mod(y, n)"},
      {Rule::ModInner, {}, "Mod(Mod(x, a*b), b)", "Mod(x, b)"},
      {Rule::ModInner, {}, "Mod(Mod(x, 12) + y, 4)", "Mod(x + y, 4)"},
      {Rule::ModCancel, {}, "Mod(4*x, 6)", "2*Mod(2*x, 3)"},
      {Rule::ModPartial, {"j < c"}, "Mod(c*i + j, b*c)", "c*Mod(i, b) + j"},
      {Rule::ModKnown, {"i < n"}, "Mod(i, n)", "i"},
      {Rule::ModKnown, {"i < a", "j < b"}, "Mod(i*b + j, a*b)", "b*i + j"},
      {Rule::RecombineWhole, {}, "n*FloorDiv(x, n) + Mod(x, n)", "x"},
      {Rule::RecombineWhole, {}, "c*n*FloorDiv(x, n) + c*Mod(x, n) + 5", "c*x + 5"},
      {Rule::RecombineWhole, {}, "FloorDiv(x, b*c)*b*c + Mod(FloorDiv(x, c), b)*c + Mod(x, c)", "x"},
      {Rule::RecombineWhole, {}, "12*FloorDiv(x, 12) + 4*Mod(FloorDiv(x, 4), 3) + Mod(x, 4)", "x"},
      {Rule::RecombineMod, {}, "b*Mod(FloorDiv(x, b), a) + Mod(x, b)", "Mod(x, a*b)"},
      {Rule::RecombineKnown, {"Mod(n, 8) == 0"}, "8*FloorDiv(n, 8)", "n"},
      {Rule::RecombineKnown, {"Mod(n, 8) == 3"}, "16*FloorDiv(n, 8) + 1", "2*n - 5"},
      {Rule::MinOrdered, {"x <= y"}, "Min(x, y)", "x"},
      {Rule::MaxOrdered, {"n >= 5"}, "Max(0, n - 5)", "n - 5"},
      {Rule::MinAbsorbs, {}, "Min(x, Max(x, y))", "x"},
      {Rule::MaxAbsorbs, {}, "Max(x, Min(x, y))", "x"},
      {Rule::AbsPositive, {"x >= 3"}, "Abs(x - 2)", "x - 2"},
      {Rule::AbsNegative, {}, "Abs(-n)", "n"},
      {Rule::AbsNegative, {"x <= 2"}, "Abs(x - 2)", "2 - x"},
      {Rule::AbsSign, {}, "Abs(3 - x)", "Abs(x - 3)"},
      {Rule::AbsScale, {}, "Abs(4*y - 2*x)", "2*Abs(x - 2*y)"},
      {Rule::PowUnrolled, {}, "Pow(x, 3) - x*x*x", "0"},
      {Rule::ConditionAsNumber, {}, "(x <= 3) == 1", "x <= 3"},
      {Rule::ConditionAsNumber, {}, "(x <= 3) <= 0", "x >= 4"},
      {Rule::EqCancel, {"c >= 1"}, "c*x == c*y", "x == y"},
      {Rule::LeCancel, {"c >= 1"}, "c*x <= c*y", "x <= y"},
      {Rule::ModKnownMultiple, {"Mod(n, 8) == 6"}, "Mod(n, 4)", "2"},
      {Rule::LearnMaxUpper, {"Max(x, y) <= 4"}, "y <= 4", "1"},
      {Rule::LearnMaxLower, {"Max(0, x - 5) >= 1"}, "x >= 6", "1"},
      {Rule::LearnMinLower, {"Min(x, y) >= 4"}, "y >= 4", "1"},
      {Rule::LearnMinUpper, {"Min(x, 10) <= 3"}, "x <= 3", "1"},
      {Rule::LearnAbs, {"Abs(x) <= 3"}, "x >= -3", "1"},
      {Rule::LearnFloorDivUpper, {"FloorDiv(x, 4) <= 2"}, "x <= 11", "1"},
      {Rule::LearnFloorDivLower, {"FloorDiv(x, n) >= 2"}, "x >= 2*n", "1"},
      {Rule::LearnProduct, {"a >= 2", "b >= 2", "a*b <= 21"}, "a <= 10", "1"},
      {Rule::LearnTerm, {"i + j <= 10"}, "i <= 10", "1"},
      {Rule::LearnUnequal, {"x - y != 0", "x - y <= 0"}, "x < y", "1"},
      {Rule::LeCommon, {}, "2*x + 4*y <= 7", "x + 2*y <= 3"},
      {Rule::LeProved, {}, "2*FloorDiv(n, 2) <= n", "1"},
      {Rule::LeProved, {"x - y <= -1"}, "x - y <= 5", "1"},
      {Rule::LeDisproved, {"i < n"}, "n <= i", "0"},
      {Rule::EqIndivisible, {}, "2*x + 4*y == 7", "0"},
      {Rule::EqProved, {"2*x <= 3*y", "3*y <= 2*x"}, "3*y - 2*x == 0", "1"},
      {Rule::EqDisproved, {"x < y"}, "x == y", "0"},
      {Rule::EqDisproved, {"x != y"}, "y == x", "0"},
      {Rule::ProveFact, {"i < a", "j < b"}, "i*b + j < a*b", "1"},
      {Rule::ProveFact, {"i < a", "j < 64"}, "64*i + j < 64*a", "1"},
      {Rule::ProveFact, {"x < y", "y < z"}, "x < z", "1"},
      {Rule::ProveFloorDivUpper, {"l < a*b"}, "FloorDiv(l, b) < a", "1"},
      {Rule::ProveFloorDivLower, {"l >= a*b"}, "FloorDiv(l, b) >= a", "1"},
      {Rule::ProveScaledFloorDivUpper, {}, "3*FloorDiv(n, 4) <= n", "1"},
      {Rule::ProveScaledFloorDivLower, {}, "3*FloorDiv(n, 2) >= n - 3", "1"},
      {Rule::ProveMultipleUpper, {}, "b*FloorDiv(i, b) <= i", "1"},
      {Rule::ProveMultipleLower, {}, "b*FloorDiv(i, b) >= i - b", "1"},
      {Rule::ProveModBelowDivisor, {}, "Mod(x, n) < n", "1"},
      {Rule::ProveModBelowDividend, {}, "Mod(i, n) <= i + 1", "1"},
      {Rule::ProveMinBelowEither, {}, "Min(x, y) <= y", "1"},
      {Rule::ProveMinAboveBoth, {"x >= z", "y >= z"}, "Min(x, y) >= z", "1"},
      {Rule::ProveMaxBelowBoth, {}, "Max(i, j) <= i + j", "1"},
      {Rule::ProveMaxAboveEither, {}, "Max(x, y) >= y", "1"},
      {Rule::ProveAbsBelowBoth, {"x <= y", "-x <= y"}, "Abs(x) <= y", "1"},
      {Rule::ProveAbsAboveEither, {}, "Abs(x) >= x", "1"},
      {Rule::ProveFactorUpper, {"j <= 7"}, "j*n <= 8*n", "1"},
      {Rule::ProveFactorLower, {"b >= 1"}, "a*b >= a", "1"},
  };
  return kExamples;
}

TEST(RulesTest, AreUsed) {
  std::array<uint64_t, kRuleCount> used{};
  for (const Example& example : examples()) {
    const Statement& statement = statements()[static_cast<size_t>(example.rule)];
    SCOPED_TRACE(std::string(statement.name) + ": " + example.from);
    ExprPool pool;
    for (const char* name : {"a", "b", "c", "n", "m", "i", "j", "k", "l"}) pool.symbol(name, {0, Range::kMax});
    for (const char* name : {"x", "y", "z"}) pool.symbol(name);
    PoolAccess::state(pool).facts_are_global = true;
    Expr early = pool.parse(example.from);
    for (const std::string& fact : example.facts) pool.assume(pool.parse(fact));
    PoolState& state = PoolAccess::state(pool);
    uint64_t before = state.fired[static_cast<size_t>(example.rule)];
    Expr made = pool.parse(example.from);
    uint64_t fired = state.fired[static_cast<size_t>(example.rule)] - before;
    used[static_cast<size_t>(example.rule)] += fired + before;
    EXPECT_GT(fired + before, 0u) << made.str();
    EXPECT_EQ(made, pool.parse(example.to)) << made.str() << ", expected " << example.to;
    EXPECT_EQ(pool.simplify(early), made) << pool.simplify(early).str();
  }
  for (const Statement& statement : statements())
    EXPECT_GT(used[static_cast<size_t>(statement.rule)], 0u) << statement.name << " has no example";
}

}  // namespace
}  // namespace tenon::sym
