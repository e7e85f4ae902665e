// Guards, checks and errors name the line of the user's program. This file is compiled with debug information, as a
// user's would be.
#include "testing.h"

#include <tenon/support/call_site.h>

#include <gmock/gmock.h>

#include <source_location>

namespace tenon {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

std::string line(uint32_t number) { return "user_lines_test.cpp:" + std::to_string(number); }

TEST(UserLines, a_call_site_is_a_line) {
  uint32_t here = std::source_location::current().line() + 1;
  CallSite site = CallSite::here();
  EXPECT_TRUE(site.known());
  EXPECT_EQ(site.str(), line(here));
  EXPECT_EQ(CallSite().str(), "") << "nowhere";
}

TEST(UserLines, a_guard_tells_who_asked) {
  uint32_t asked = 0;
  auto f = compile(
      [&asked](Tensor x, Tensor y) {
        Tensor first = x.slice(0, 0, x.size(0) / 2);
        asked = std::source_location::current().line() + 1;
        return first + y;
      },
      {.dynamic = Dynamic::On});
  f(randn({8}), randn({4}));
  std::vector<std::string> guards = f.explain().entries.at(0).guards;
  EXPECT_THAT(guards, ::testing::Contains(HasSubstr("(asked by add at " + line(asked) + ")"))) << f.explain().str();
}

TEST(UserLines, so_does_a_comparison_of_sizes) {
  uint32_t asked = 0;
  auto f = compile(
      [&asked](Tensor x) {
        asked = std::source_location::current().line() + 1;
        if (x.size(0) > 5) return x + 1;
        return x - 1;
      },
      {.dynamic = Dynamic::On});
  f(randn({8}));
  EXPECT_THAT(f.explain().entries.at(0).guards, ::testing::Contains(HasSubstr("at " + line(asked))));
}

TEST(UserLines, a_recompile_says_which_line_made_the_guard) {
  uint32_t asked = 0;
  auto f = compile(
      [&asked](Tensor x) {
        asked = std::source_location::current().line() + 1;
        return x.size(0) > 5 ? x + 1 : x - 1;
      },
      {.dynamic = Dynamic::On});
  f(randn({8}));
  f(randn({3}));
  ASSERT_EQ(f.explain().recompiles.size(), 1u);
  EXPECT_THAT(f.explain().recompiles[0], HasSubstr("at " + line(asked)));
}

TEST(UserLines, what_depends_on_data_is_asked_somewhere) {
  uint32_t asked = 0;
  auto f = compile(
      [&asked](Tensor x) {
        SymInt count = nonzero(x).size(0);
        asked = std::source_location::current().line() + 1;
        if (count > 3) return x + 1;
        return x - 1;
      },
      {.fullgraph = true, .capture_dynamic_output_shape_ops = true});
  std::string error = error_of([&] { f(randn({8})); });
  EXPECT_THAT(error, HasSubstr("\n  asked at " + line(asked)));
}

TEST(UserLines, a_deferred_check_of_an_operator_names_the_line) {
  uint32_t asked = 0;
  auto f = compile(
      [&asked](Tensor x, Tensor y) {
        Tensor picked = masked_select(x, x > 0.0);
        asked = std::source_location::current().line() + 1;
        return picked + y;
      },
      {.fullgraph = true, .dynamic = Dynamic::On, .capture_dynamic_output_shape_ops = true});
  f(tensor({1.0, -1.0, 2.0, 3.0}), randn({3}));
  EXPECT_THAT(error_of([&] { f(tensor({1.0, -1.0, -2.0, 3.0}), randn({3})); }), HasSubstr("at " + line(asked)));
}

}  // namespace
}  // namespace tenon
