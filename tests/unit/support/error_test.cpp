#include <gtest/gtest.h>
#include <tenon/support/error.h>

namespace tenon {
namespace {

std::string message_of(void (*body)()) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(Error, check_throws_the_formatted_text) {
  EXPECT_NO_THROW(TENON_CHECK(1 + 1 == 2, "[add] expected {}", 2));
  EXPECT_THROW(TENON_CHECK(false, "[add]"), Error);
  EXPECT_EQ(message_of([] { TENON_CHECK(false, "[mm] expected {} rows, got {}", 64, "32"); }),
            "[mm] expected 64 rows, got 32");
}

TEST(Error, the_arguments_of_a_passing_check_are_not_evaluated) {
  int evaluated = 0;
  TENON_CHECK(true, "{}", ++evaluated);
  TENON_ASSERT(true, "{}", ++evaluated);
  EXPECT_EQ(evaluated, 0);
}

TEST(Error, assert_names_condition_place_and_detail) {
  EXPECT_THROW(TENON_ASSERT(2 < 1), InternalError);
  std::string text = message_of([] { TENON_ASSERT(2 < 1, "axis {} of {}", 7, 3); });
  int line = __LINE__ - 1;
  EXPECT_NE(text.find("internal error: expected 2 < 1 ("), std::string::npos) << text;
  EXPECT_NE(text.find(fmt::format("error_test.cpp:{}): axis 7 of 3", line)), std::string::npos) << text;
}

TEST(Error, the_two_kinds_are_told_apart) {
  EXPECT_FALSE((std::is_base_of_v<Error, InternalError>));
  EXPECT_FALSE((std::is_base_of_v<InternalError, Error>));
}

// A macro that is a statement must not capture somebody else's `else`.
TEST(Error, check_is_one_statement) {
  bool reached = false;
  if (true)
    TENON_CHECK(true, "[never]");
  else
    reached = true;
  EXPECT_FALSE(reached);
}

}  // namespace
}  // namespace tenon
