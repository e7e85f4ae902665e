#include <gtest/gtest.h>
#include <tenon/support/error.h>

#include "error_of.h"

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

TEST(Error, each_check_has_its_kind) {
  using testing::error_of;
  EXPECT_EQ(error_of<RuntimeError>([] { TENON_CHECK(false, "[a] {}", 1); }), "[a] 1");
  EXPECT_EQ(error_of<ValueError>([] { TENON_CHECK_VALUE(false, "[a] {}", 2); }), "[a] 2");
  EXPECT_EQ(error_of<TypeError>([] { TENON_CHECK_TYPE(false, "[a] {}", 3); }), "[a] 3");
  EXPECT_EQ(error_of<IndexError>([] { TENON_CHECK_INDEX(false, "[a] {}", 4); }), "[a] 4");
  EXPECT_EQ(error_of<NotImplementedError>([] { TENON_CHECK_IMPLEMENTED(false, "[a] {}", 5); }), "[a] 5");
  EXPECT_EQ(error_of<RuntimeError>([] { fail("[a]"); }), "[a]");
  EXPECT_EQ(error_of<IndexError>([] { fail<IndexError>("[a] {} of {}", 6, "b"); }), "[a] 6 of b");
}

TEST(Error, a_kind_can_be_asked_for_and_raised_again) {
  for (ErrorKind kind :
       {ErrorKind::Runtime, ErrorKind::Value, ErrorKind::Type, ErrorKind::Index, ErrorKind::NotImplemented}) {
    try {
      raise(kind, "[a] text");
      FAIL() << "nothing thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << name(kind);
      EXPECT_STREQ(error.what(), "[a] text");
    }
  }
  EXPECT_EQ(name(ErrorKind::Index), "IndexError");
}

TEST(Error, a_text_can_name_its_kind) {
  using testing::error_of;
  EXPECT_EQ(error_of<IndexError>([] { raise_named("IndexError: [gather] no"); }), "[gather] no");
  EXPECT_EQ(error_of<NotImplementedError>([] { raise_named("NotImplementedError: no"); }), "no");
  EXPECT_EQ(error_of<RuntimeError>([] { raise_named("[gather] ValueError: no"); }), "[gather] ValueError: no");
  EXPECT_EQ(error_of<RuntimeError>([] { raise_named("ValueErrors"); }), "ValueErrors");
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
