// Random programs: TENON_FUZZ_COUNT of them (2000), from seed TENON_FUZZ_SEED (1) on.
#include "fuzz/program.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tenon::fuzz {
namespace {

constexpr int kParts = 8;

int64_t from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

class RandomPrograms : public testing::TestWithParam<int> {};

TEST_P(RandomPrograms, agree_however_they_are_run) {
  int64_t count = from_environment("TENON_FUZZ_COUNT", 2000), first = from_environment("TENON_FUZZ_SEED", 1);
  int failures = 0;
  for (int64_t seed = first + GetParam(); seed < first + count && failures < 3; seed += kParts) {
    Program program = random_program(static_cast<uint64_t>(seed));
    if (!check(program)) continue;
    Program smallest = reduce(program);
    Finding finding = check(smallest);
    ADD_FAILURE() << "seed " << seed << ": " << finding.text << "\n\n" << source(smallest, finding);
    ++failures;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, testing::Range(0, kParts));

// The reducer keeps what matters and nothing else; a program is text that shows every statement.
TEST(Programs, print_as_a_program) {
  Program program = random_program(4);
  std::string text = source(program, {"it differs", ".dynamic = Dynamic::On", {0, 1}, true});
  EXPECT_EQ(text.find("// seed 4: it differs\n"), 0u);
  EXPECT_NE(text.find("compile(function, {.dynamic = Dynamic::On})"), std::string::npos);
  EXPECT_NE(text.find("for (int sizes : {0, 1})"), std::string::npos);
  size_t statements = 0;
  for (size_t at = text.find("  Tensor v"); at != std::string::npos; at = text.find("  Tensor v", at + 1)) ++statements;
  EXPECT_EQ(statements, program.inputs.size() + program.statements.size());
}

TEST(Programs, are_the_same_for_the_same_seed) {
  for (uint64_t seed : {1, 2, 3}) EXPECT_EQ(source(random_program(seed), {}), source(random_program(seed), {}));
}

}  // namespace
}  // namespace tenon::fuzz
