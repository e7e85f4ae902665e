#include <gtest/gtest.h>
#include <tenon/support/decision.h>

namespace tenon {
namespace {

Decision at_most(int value, int limit) {
  if (value > limit) return Decision::forbid("{} is over the limit of {}", value, limit);
  return Decision::allow();
}

TEST(Decision, allows_without_a_reason) {
  Decision decision = at_most(3, 8);
  EXPECT_TRUE(decision);
  EXPECT_EQ(decision.why(), "");
}

TEST(Decision, forbids_with_its_reason) {
  Decision decision = at_most(9, 8);
  EXPECT_FALSE(decision);
  EXPECT_EQ(decision.why(), "9 is over the limit of 8");
}

TEST(Decision, forbids_even_if_the_reason_comes_out_empty) { EXPECT_FALSE(Decision::forbid("{}", std::string())); }

}  // namespace
}  // namespace tenon
