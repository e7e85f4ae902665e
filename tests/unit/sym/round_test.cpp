#include <tenon/sym/round.h>

#include <gtest/gtest.h>

#include <string>

namespace tenon {
namespace {

TEST(Round, digits_behind_and_before_the_point) {
  EXPECT_EQ(double(round(SymFloat(123.4567), 1)), 123.5);
  EXPECT_EQ(double(round(SymFloat(123.4567), 0)), 123.0);
  EXPECT_EQ(double(round(SymFloat(123.4567), -1)), 120.0);
  EXPECT_EQ(double(round(SymFloat(-0.125), 2)), -0.12) << "a half goes to the even neighbour";
  EXPECT_EQ(double(round(SymFloat(1e300), 20)), 1e300) << "nothing to round there";
}

TEST(Round, integers_go_to_the_even_neighbour) {
  const std::pair<int64_t, int64_t> tens[] = {{125, 120},   {135, 140}, {-125, -120},
                                              {-135, -140}, {124, 120}, {126, 130}};
  for (auto [number, expected] : tens) EXPECT_EQ(round(SymInt(number), -1).plain(), expected) << number;
  EXPECT_EQ(round(SymInt(125), 3).plain(), 125);
  EXPECT_EQ(round(SymInt(125), -3).plain(), 0);
  try {
    round(SymInt(1), -19);
    FAIL() << "ten to the 19th is more than 64 bits hold";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("[round] expected at most 18 digits before the point"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tenon
