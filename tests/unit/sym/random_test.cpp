// Random expressions, built by the library and as trees that simplify nothing, must have the same values; ranges must
// hold them; what is known must be so.
#include "../../../src/sym/pool.h"
#include "mirror.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace tenon::sym {
namespace {

using mirror::Tree;
using mirror::Values;

struct World {
  const char* name;
  std::vector<std::pair<std::string, Range>> symbols;
  std::vector<std::string> facts;
};

constexpr int64_t kInf = Range::kMax;

const std::vector<World>& worlds() {
  static const std::vector<World> kWorlds = {
      {"sizes", {{"s0", {2, kInf}}, {"s1", {2, kInf}}, {"s2", {0, kInf}}}, {}},
      {"signed", {{"x", {}}, {"y", {-5, 5}}, {"z", {-kInf, -1}}}, {}},
      {"small", {{"i", {0, 3}}, {"j", {0, 7}}, {"k", {1, 4}}}, {}},
      {"loops",
       {{"a", {0, kInf}}, {"b", {0, kInf}}, {"i", {0, kInf}}, {"j", {0, kInf}}, {"f", {0, kInf}}},
       {"i < a", "j < b", "f < a*b"}},
      {"equalities", {{"s0", {2, kInf}}, {"s1", {2, kInf}}, {"u0", {0, kInf}}}, {"u0 == 2*s0 + s1 - 3", "s1 != 5"}},
      {"multiples", {{"s0", {1, kInf}}, {"s1", {0, 40}}}, {"Mod(s0, 4) == 0", "2*s1 <= s0", "s1 != s0"}},
      {"mixed facts",
       {{"a", {-6, 9}}, {"b", {-6, 9}}, {"c", {-6, 9}}},
       {"a + b <= 7", "b - c >= -4", "a*b <= 20", "FloorDiv(c, 3) <= 2", "a <= 4 || b <= 4"}},
      {"composite facts",
       {{"a", {-6, 9}}, {"b", {-6, 9}}, {"c", {1, 9}}, {"d", {2, 9}}},
       {"Max(a, b - 2) <= 5", "Min(a + 3, b) >= -2", "Abs(a - b) <= 6", "c*d <= 40", "FloorDiv(a + c, d) >= -1",
        "Mod(d, 6) != 5", "c*a <= c*b"}},
  };
  return kWorlds;
}

// Draws values that the facts allow, or nothing.
std::optional<Values> draw_values(const World& world, const std::vector<Tree>& facts, std::mt19937& random) {
  for (int attempt = 0; attempt < 3000; ++attempt) {
    Values values;
    for (const auto& [name, range] : world.symbols) {
      int64_t low = std::max<int64_t>(range.min, -12), high = std::min<int64_t>(range.max, 14);
      values[name] = std::uniform_int_distribution<int64_t>(low, high)(random);
    }
    bool allowed = true;
    for (const Tree& fact : facts) allowed = allowed && mirror::evaluate(fact, values) == 1;
    if (allowed) return values;
  }
  return std::nullopt;
}

class Generator {
 public:
  Generator(const World& world, std::mt19937& random) : world_(world), random_(random) {}

  Tree integer(int depth) {
    if (depth == 0 || pick(8) == 0) return leaf();
    switch (pick(14)) {
      case 12: return mirror::make("Abs", {integer(depth - 1)});
      case 13: return mirror::make("Pow", {integer(depth > 2 ? 1 : depth - 1), mirror::number(pick(4))});
      case 0:
      case 1: return mirror::make("+", {integer(depth - 1), integer(depth - 1)});
      case 2: return mirror::make("-", {integer(depth - 1), integer(depth - 1)});
      case 3: return mirror::make("-", {integer(depth - 1)});
      case 4: return mirror::make("*", {integer(depth - 1), integer(depth > 2 ? 1 : depth - 1)});
      case 5: return mirror::make("*", {integer(depth - 1), small()});
      case 6: return mirror::make("FloorDiv", {integer(depth - 1), divisor(depth)});
      case 7: return mirror::make("Mod", {integer(depth - 1), divisor(depth)});
      case 8: return division_pair(depth);
      case 9: return mirror::make("Min", {integer(depth - 1), integer(depth - 1)});
      case 10: return mirror::make("Max", {integer(depth - 1), integer(depth - 1)});
      default: return mirror::make("+", {integer(depth - 1), small()});
    }
  }

  Tree condition(int depth) {
    static const char* const kComparisons[] = {"==", "!=", "<", "<=", ">", ">="};
    if (depth <= 1 || pick(3) != 0)
      return mirror::make(kComparisons[pick(6)], {integer(depth - 1), pick(2) ? integer(depth - 1) : small()});
    switch (pick(3)) {
      case 0: return mirror::make("&&", {condition(depth - 1), condition(depth - 1)});
      case 1: return mirror::make("||", {condition(depth - 1), condition(depth - 1)});
      default: return mirror::make("!", {condition(depth - 1)});
    }
  }

 private:
  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
  Tree small() { return mirror::number(pick(13) - 4); }
  Tree leaf() {
    if (pick(5) == 0) return small();
    return mirror::symbol(world_.symbols[static_cast<size_t>(pick(static_cast<int>(world_.symbols.size())))].first);
  }
  Tree divisor(int depth) {
    static const int64_t kDivisors[] = {2, 3, 4, 6, 8, 1, -2, -3};
    if (pick(2) == 0) return mirror::number(kDivisors[pick(8)]);
    return pick(2) == 0 ? leaf() : integer(std::min(depth - 1, 1));
  }
  // What reshapes make: c*n*FloorDiv(x, n) + c*Mod(x, n), perhaps with a slip.
  Tree division_pair(int depth) {
    Tree x = integer(depth - 1), n = divisor(depth), c = pick(2) ? mirror::number(1) : leaf();
    Tree whole = mirror::make("*", {mirror::make("*", {c, n}), mirror::make("FloorDiv", {x, n})});
    Tree rest = mirror::make("*", {pick(4) ? c : leaf(), mirror::make("Mod", {pick(4) ? x : leaf(), n})});
    return mirror::make("+", {whole, rest});
  }

  const World& world_;
  std::mt19937& random_;
};

class RandomTest : public testing::TestWithParam<size_t> {};

TEST_P(RandomTest, ValuesRangesAndTruthsAgree) {
  // Each world twice: facts of loops, and facts that hold everywhere.
  const World& world = worlds()[GetParam() % worlds().size()];
  // TENON_SEED and TENON_CASES explore further than the suite does.
  auto setting = [](const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::atoi(text) : otherwise;
  };
  std::mt19937 random(static_cast<unsigned>(setting("TENON_SEED", 1234)) + static_cast<unsigned>(GetParam()));
  int cases = setting("TENON_CASES", 1500);
  ExprPool pool;
  PoolAccess::state(pool).facts_are_global = GetParam() >= worlds().size();
  std::vector<std::string> order;
  for (const auto& [name, range] : world.symbols) {
    pool.symbol(name, range);
    order.push_back(name);
  }
  std::vector<Tree> facts;
  for (const std::string& fact : world.facts) facts.push_back(mirror::parse(fact));

  Generator generator(world, random);
  // Built before the facts are known, to be simplified afterwards.
  std::vector<std::pair<Tree, Expr>> early;
  for (int i = 0; i < 300; ++i) {
    Tree tree = generator.integer(4);
    early.emplace_back(tree, mirror::build(tree, pool));
  }
  for (const Tree& fact : facts) pool.assume(mirror::build(fact, pool));
  for (const Tree& fact : facts) EXPECT_EQ(pool.known(mirror::build(fact, pool)), true) << mirror::str(fact);

  std::vector<std::pair<Values, std::vector<int64_t>>> samples;
  while (samples.size() < 60) {
    std::optional<Values> values = draw_values(world, facts, random);
    ASSERT_TRUE(values.has_value());
    std::vector<int64_t> by_id;
    for (const std::string& name : order) by_id.push_back((*values)[name]);
    samples.emplace_back(*values, by_id);
  }

  int compared = 0;
  auto check = [&](const Tree& tree, Expr built) {
    Expr simple = pool.simplify(built);
    Range range = pool.range(built), simple_range = pool.range(simple);
    Expr both[] = {built, simple};
    ExprProgram program(both);
    for (const auto& [values, by_id] : samples) {
      std::optional<int64_t> expected = mirror::evaluate(tree, values);
      if (!expected) continue;
      ++compared;
      int64_t got[2];
      ASSERT_NO_THROW(program.run(by_id, got)) << mirror::str(tree);
      bool inside = range.min <= *expected && *expected <= range.max && simple_range.min <= *expected &&
                    *expected <= simple_range.max;
      if (got[0] == *expected && got[1] == *expected && inside) continue;
      std::string where;
      for (auto& [name, value] : values) where += "\n" + name + " = " + std::to_string(value);
      FAIL() << mirror::str(tree) << " = " << *expected << "\nbuilt: " << built.str() << " = " << got[0] << " in "
             << str(range) << "\nsimplified: " << simple.str() << " = " << got[1] << " in " << str(simple_range)
             << where;
    }
  };
  for (auto& [tree, built] : early) ASSERT_NO_FATAL_FAILURE(check(tree, built));
  for (int i = 0; i < cases; ++i) {
    Tree tree = i % 3 == 0 ? generator.condition(4) : generator.integer(4);
    Expr built = mirror::build(tree, pool);
    ASSERT_NO_FATAL_FAILURE(check(tree, built));
    ASSERT_EQ(pool.parse(built.str()), built) << built.str();
  }
  EXPECT_GT(compared, 30000);
}

INSTANTIATE_TEST_SUITE_P(Worlds, RandomTest, testing::Range<size_t>(0, 2 * worlds().size()),
                         [](const testing::TestParamInfo<size_t>& world) {
                           std::string name = worlds()[world.param % worlds().size()].name;
                           if (world.param >= worlds().size()) name += "_everywhere";
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

TEST(ExprProgramTest, AgreesWithEvaluateOnManyExpressions) {
  std::mt19937 random(99);
  const World& world = worlds()[0];
  ExprPool pool;
  for (const auto& [name, range] : world.symbols) pool.symbol(name, range);
  Generator generator(world, random);
  std::vector<Expr> all;
  std::vector<Tree> trees;
  std::vector<int64_t> values = {3, 7, 4};
  while (all.size() < 200) {
    Tree tree = all.size() % 4 == 0 ? generator.condition(3) : generator.integer(3);
    if (!mirror::evaluate(tree, {{"s0", 3}, {"s1", 7}, {"s2", 4}})) continue;
    trees.push_back(tree);
    all.push_back(mirror::build(tree, pool));
  }
  ExprProgram program(all);
  ASSERT_EQ(program.result_count(), all.size());
  std::vector<int64_t> results(all.size());
  program.run(values, results);
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(results[i], mirror::evaluate(trees[i], {{"s0", 3}, {"s1", 7}, {"s2", 4}})) << all[i].str();
}

}  // namespace
}  // namespace tenon::sym
