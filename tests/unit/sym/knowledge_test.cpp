// What captures ask of the simplifier: facts as guards and checks leave them, and what must follow without asking.
// Each line is also held against all small values, so that none of it is wishful.
#include "../../../src/sym/pool.h"
#include "mirror.h"

#include <tenon/sym/shape_env.h>

#include <gtest/gtest.h>

#include <functional>

namespace tenon::sym {
namespace {

struct Case {
  std::vector<std::string> facts;
  std::string claim;  // a condition that is known, or "a = b": the same expression
};

// s0 s1 s2: sizes (>= 2); u0 u1 u2: from data, at least 0; x y: any number.
const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      // Division.
      {{}, "2*FloorDiv(s0, 2) <= s0"},
      {{}, "2*FloorDiv(s0, 2) >= s0 - 1"},
      {{}, "FloorDiv(s0, 2) < s0"},
      {{}, "FloorDiv(s0 + 1, 2) >= 1"},
      {{}, "s0 = 4*FloorDiv(s0, 4) + Mod(s0, 4)"},
      {{}, "FloorDiv(s0*s1, s1) = s0"},
      {{}, "Mod(s0*s1, s0) = 0"},
      {{}, "FloorDiv(s0*6, 3) = 2*s0"},
      {{}, "Mod(4*s0 + 3, 4) = 3"},
      {{}, "FloorDiv(FloorDiv(s0, 2), 3) = FloorDiv(s0, 6)"},
      {{"Mod(s0, 8) == 0"}, "8*FloorDiv(s0, 8) == s0"},
      {{"Mod(s0, 8) == 0"}, "Mod(s0, 4) == 0"},
      {{"Mod(s0, 8) == 0"}, "2*FloorDiv(s0, 2) == s0"},
      {{"Mod(s0, 2) == 0"}, "FloorDiv(s0, 2) >= 1"},
      {{"s0 >= 8"}, "FloorDiv(s0, 8) >= 1"},
      {{"FloorDiv(s0, 4) == 3"}, "s0 >= 12"},
      {{"FloorDiv(s0, 4) == 3"}, "s0 <= 15"},
      {{"FloorDiv(x, 4) <= 2"}, "x <= 11"},
      {{"s0 == 2*s1"}, "FloorDiv(s0, 2) = s1"},
      {{"s0 == 2*s1"}, "Mod(s0, 2) == 0"},
      // Products.
      {{}, "s0*s1 >= s0"},
      {{}, "s0*s1 >= 4"},
      {{}, "s0*s1 != 0"},
      {{}, "s0*s1*s2 >= s1"},
      {{"s0 <= s1"}, "s0*s2 <= s1*s2"},
      {{"u0 <= s0"}, "u0*s1 <= s0*s1"},
      {{}, "u0*s0 >= 0"},
      {{"s0*s1 == 12"}, "s0*s1 <= 20"},
      {{"s0*s1 <= 20"}, "s0 <= 10"},
      {{"s0*u0 <= s0*u1"}, "u0 <= u1"},
      {{}, "x*x >= 0"},
      // Extrema and absolute values.
      {{}, "Max(0, s0 - 5) >= 0"},
      {{}, "Max(0, s0 - 5) <= s0"},
      {{}, "Max(0, s0 - 5) < s0"},
      {{"s0 >= 5"}, "Max(0, s0 - 5) = s0 - 5"},
      {{"s0 <= 5"}, "Max(0, s0 - 5) = 0"},
      {{"Max(0, s0 - 5) == 0"}, "s0 <= 5"},
      {{"Max(0, s0 - 5) >= 1"}, "s0 >= 6"},
      {{"Max(0, s0 - 5) != 0"}, "s0 >= 6"},
      {{"Max(u0, u1) <= 4"}, "u1 <= 4"},
      {{"Min(u0, u1) >= 4"}, "u0 >= 4"},
      {{"Min(u0, 10) <= 3"}, "u0 <= 3"},
      {{}, "Min(s0, 10) <= 10"},
      {{}, "Max(1, u0) >= u0"},
      {{"u0 >= 1"}, "Max(1, u0) = u0"},
      {{}, "Max(s0, s1) >= s1"},
      {{}, "Min(s0, s1) <= Max(s0, s1)"},
      {{}, "Abs(x) >= 0"},
      {{"Abs(x) <= 3"}, "x >= -3"},
      {{"Abs(x) <= 3"}, "x <= 3"},
      {{"x >= 0"}, "Abs(x) = x"},
      // Sums of values from data.
      {{}, "u0 + u1 >= 0"},
      {{}, "u0 + u1 + u2 >= u1"},
      {{}, "u0 + u1 + 1 > 0"},
      {{"u0 + u1 == s0"}, "u0 <= s0"},
      {{"u0 + u1 == s0"}, "u1 <= s0"},
      {{"u0 + u1 == s0"}, "s0 - u0 = u1"},
      {{"u0 + u1 == s0"}, "u0 + u1 + 3 = s0 + 3"},
      {{"u0 + u1 + u2 == 10"}, "u2 <= 10"},
      {{"u0 + u1 <= 10"}, "u0 <= 10"},
      {{"u0 + u1 <= 10"}, "u1 <= 10"},
      {{"u0 <= s0", "u1 <= s1"}, "u0 + u1 <= s0 + s1"},
      // Equalities from checks.
      {{"u0 == s0"}, "u0 = s0"},
      {{"u0 == s0"}, "u0 >= 2"},
      {{"u0 == s0", "s0 == s1"}, "u0*s1 = s0*s0"},
      {{"4*u0 == s0"}, "Mod(s0, 4) == 0"},
      {{"4*u0 == s0"}, "FloorDiv(s0, 4) = u0"},
      {{"u0 == u1", "u1 == u2"}, "u0 + u2 = 2*u1"},
      {{"u0 == u1 + 1"}, "u0 >= 1"},
      {{"u0*s0 == u1*s0"}, "u0 = u1"},
      {{"s0 == s1*s2"}, "FloorDiv(s0, s1) = s2"},
      // A range of one value is a number.
      {{"!(s0 > 5)", "!(s0 < 5)"}, "s0 = 5"},
      {{"s0 >= 7", "s0 <= 7"}, "s0*s1 = 7*s1"},
      {{"s0 <= 3", "s0 != 3"}, "s0 = 2"},
      {{"u0 <= 0"}, "u0 + x = x"},
      {{"u0 + u1 <= 0"}, "u0 = 0"},
      {{"s0 - s1 <= 0", "s1 - s0 <= 0"}, "s0 = s1"},
      // Chains.
      {{"x < y", "y < s0"}, "x + 1 < s0"},
      {{"u0 < u1", "u1 < u2"}, "u2 >= 2"},
      {{"s0 < s1"}, "s1 >= 3"},
      {{"s0 != s1", "s0 <= s1"}, "s0 < s1"},
  };
  return kCases;
}

const std::vector<std::pair<std::string, int64_t>>& symbols() {  // with their least values
  static const std::vector<std::pair<std::string, int64_t>> kSymbols = {
      {"s0", 2}, {"s1", 2}, {"s2", 2}, {"u0", 0}, {"u1", 0}, {"u2", 0}, {"x", Range::kMin}, {"y", Range::kMin}};
  return kSymbols;
}

std::pair<std::string, std::string> sides(const std::string& claim) {
  size_t equals = claim.find(" = ");
  if (equals == std::string::npos) return {claim, "1"};
  return {claim.substr(0, equals), claim.substr(equals + 3)};
}

TEST(KnowledgeTest, Follows) {
  for (const Case& each : cases()) {
    auto [left, right] = sides(each.claim);
    for (bool unbacked_first : {false, true}) {
      std::string facts;
      for (const std::string& fact : each.facts) facts += (facts.empty() ? "" : ", ") + fact;
      SCOPED_TRACE("[" + facts + "] " + each.claim + (unbacked_first ? ", values before sizes" : ""));
      ExprPool pool;
      PoolAccess::state(pool).facts_are_global = true;
      for (bool late : {unbacked_first, !unbacked_first})
        for (auto& [name, least] : symbols())
          if ((name[0] == 'u') == late) pool.symbol(name, {least, Range::kMax});
      Expr early_left = pool.parse(left), early_right = pool.parse(right);
      for (const std::string& fact : each.facts) pool.assume(pool.parse(fact));
      EXPECT_EQ(pool.simplify(pool.parse(left)), pool.simplify(pool.parse(right)))
          << pool.simplify(pool.parse(left)).str() << " and " << pool.simplify(pool.parse(right)).str();
      EXPECT_EQ(pool.simplify(early_left), pool.simplify(early_right));
      if (right == "1" && early_left.is_boolean()) {
        EXPECT_EQ(pool.known(early_left), true);
      }
    }
  }
}

TEST(KnowledgeTest, IsTrueOfSmallValues) {
  for (const Case& each : cases()) {
    SCOPED_TRACE(each.claim);
    auto [left, right] = sides(each.claim);
    std::vector<mirror::Tree> facts;
    for (const std::string& fact : each.facts) facts.push_back(mirror::parse(fact[0] == '!' ? fact.substr(1) : fact));
    mirror::Tree claim = mirror::make("==", {mirror::parse(left), mirror::parse(right)});
    std::string all = each.claim;
    for (const std::string& fact : each.facts) all += fact;
    mirror::Values values;
    for (auto& [name, least] : symbols()) values[name] = std::max<int64_t>(least, 0);
    std::vector<std::pair<std::string, int64_t>> used;
    for (auto& symbol : symbols())
      if (all.find(symbol.first) != std::string::npos) used.push_back(symbol);
    int held = 0;
    std::function<void(size_t)> walk = [&](size_t at) {
      if (at < used.size()) {
        int64_t least = std::max<int64_t>(used[at].second, -14);
        for (int64_t value = least; value <= least + (used.size() <= 2 ? 30 : 13); ++value) {
          values[used[at].first] = value;
          walk(at + 1);
        }
        return;
      }
      for (size_t i = 0; i < facts.size(); ++i)
        if ((mirror::evaluate(facts[i], values) != 0) == (each.facts[i][0] == '!')) return;
      ++held;
      ASSERT_EQ(mirror::evaluate(claim, values), 1) << testing::PrintToString(values);
    };
    walk(0);
    EXPECT_GT(held, 0);
  }
}

}  // namespace
}  // namespace tenon::sym
