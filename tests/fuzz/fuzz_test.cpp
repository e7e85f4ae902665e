// Random programs: TENON_FUZZ_COUNT of them (2000), from seed TENON_FUZZ_SEED (1) on. TENON_FUZZ_FAILURES (3) failures
// end a run; TENON_FUZZ_REDUCE=0 prints them as they were found; TENON_FUZZ_BACKENDS names the backends to look at.
#include "fuzz/features.h"
#include "fuzz/grammar.h"
#include "fuzz/program.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <set>

#include <unistd.h>

namespace tenon::fuzz {
namespace {

constexpr int kParts = 8;

int64_t from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

// A program that crashes is a finding too: its seed is the last word.
volatile int64_t running = 0;
void say_who_crashed(int signal) {
  char text[96];
  int length = std::snprintf(text, sizeof(text), "\nseed %lld: crashed with signal %d\n",
                             static_cast<long long>(running), signal);
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text, static_cast<size_t>(length));
  _exit(128 + signal);
}

class RandomPrograms : public testing::TestWithParam<int> {};

TEST_P(RandomPrograms, agree_however_they_are_run) {
  for (int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS}) std::signal(signal, say_who_crashed);
  int64_t count = from_environment("TENON_FUZZ_COUNT", 2000), first = from_environment("TENON_FUZZ_SEED", 1);
  int64_t failures = from_environment("TENON_FUZZ_FAILURES", 3), reduced = from_environment("TENON_FUZZ_REDUCE", 1);
  for (int64_t seed = first + GetParam(); seed < first + count && failures > 0; seed += kParts) {
    running = seed;
    Program program = random_program(static_cast<uint64_t>(seed));
    Finding finding = check(program);
    if (!finding) continue;
    if (reduced) {
      program = reduce(program);
      finding = check(program);
    }
    ADD_FAILURE() << "seed " << seed << ": " << finding.text << "\n\n" << source(program, finding);
    --failures;
  }
  for (int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS}) std::signal(signal, SIG_DFL);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, testing::Range(0, kParts));

TEST(Programs, print_as_a_program) {
  Program program = random_program(4);
  std::string text = source(program, {"it differs", ".dynamic = Dynamic::On, .backend = \"inductor\"", 2});
  EXPECT_EQ(text.find("// seed 4: it differs\n"), 0u);
  EXPECT_NE(text.find("{.dynamic = Dynamic::On, .backend = \"inductor\"}, 2, "), std::string::npos);
  for (size_t at = 0; at < program.sources.size(); ++at)
    EXPECT_NE(text.find(fmt::format("  Tensor v{} = ", at)), std::string::npos);
  each_statement(program.statements, [&](const Statement& statement) {
    for (int result : statement.results) EXPECT_NE(text.find(fmt::format("v{} = ", result)), std::string::npos);
  });
}

TEST(Programs, are_the_same_for_the_same_seed) {
  for (uint64_t seed : {1, 2, 3}) EXPECT_EQ(source(random_program(seed), {}), source(random_program(seed), {}));
}

// The reducer keeps what matters and nothing else.
TEST(Programs, are_reduced_to_what_matters) {
  auto has_sine = [](const Program& program) {
    bool found = false;
    each_statement(program.statements, [&](const Statement& statement) {
      found |= statement.kind == Kind::Operation && statement.operation == find_operation("sin(x)");
    });
    return found;
  };
  uint64_t seed = 1;
  while (!has_sine(random_program(seed)) || random_program(seed).statements.size() < 4) ++seed;
  Program program = reduce(random_program(seed), has_sine);
  EXPECT_EQ(program.statements.size(), 1u);
  EXPECT_LE(program.sources.size(), 2u);  // what is returned may be another one
  EXPECT_EQ(program.calls.size(), 1u);
  EXPECT_EQ(program.outputs.size(), 1u);
  EXPECT_EQ(program.after.order, 0);
}

TEST(Features, are_each_in_the_table_once) {
  std::set<Feature> seen;
  for (const FeatureRow& row : features()) EXPECT_TRUE(seen.insert(row.feature).second) << row.name;
  EXPECT_EQ(seen.size(), static_cast<size_t>(Feature::Count));
}

}  // namespace
}  // namespace tenon::fuzz
