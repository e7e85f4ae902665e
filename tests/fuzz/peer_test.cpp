// Random programs against PyTorch: `make fuzz PEER=1`. Without TENON_FUZZ_PEER this test has nothing to do.
#include "fuzz/peer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

namespace tenon::fuzz {
namespace {

constexpr size_t kBatch = 50;
constexpr int kTries = 150;  // to make a program smaller

int64_t from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

struct Tally {
  int64_t programs = 0, skipped = 0, agree = 0;
  std::map<std::string, int64_t> known, unknown;  // by "operator aspect"
};

void print(const Tally& tally) {
  fmt::print("\n{} programs, {} of them with a peer: {} agree\n", tally.programs + tally.skipped, tally.programs,
             tally.agree);
  for (const auto& [what, count] : tally.known) fmt::print("  known    {:5}  {}\n", count, what);
  for (const auto& [what, count] : tally.unknown) fmt::print("  UNKNOWN  {:5}  {}\n", count, what);
}

TEST(Peer, agrees_with_programs) {
  if (!std::getenv("TENON_FUZZ_PEER")) GTEST_SKIP() << "make fuzz PEER=1 runs this";
  const char* python = std::getenv("TENON_PEER_PYTHON");
  ASSERT_TRUE(python) << "TENON_PEER_PYTHON names no Python that has PyTorch";
  Peer peer(python);
  KnownDifferences known(TENON_SOURCE_DIR "/tests/fuzz/peer_known.txt");
  int64_t count = from_environment("TENON_FUZZ_COUNT", 5000), first = from_environment("TENON_FUZZ_SEED", 1);
  int64_t shown = from_environment("TENON_FUZZ_FAILURES", 20);
  Tally tally;
  auto differs = [&](const Program& program) {
    return compare_with_peer(program, run_eagerly(program), peer.run({program})[0]);
  };
  for (int64_t seed = first; seed < first + count;) {
    std::vector<Program> batch;
    for (; batch.size() < kBatch && seed < first + count; ++seed) {
      Program program = random_program(static_cast<uint64_t>(seed));
      if (Finding finding = check(program)) ADD_FAILURE() << "seed " << seed << ": " << finding.text;
      has_peer(program) ? batch.push_back(std::move(program)) : void(++tally.skipped);
    }
    std::vector<std::vector<Observation>> theirs = peer.run(batch);
    for (size_t at = 0; at < batch.size(); ++at) {
      ++tally.programs;
      PeerDifference difference = compare_with_peer(batch[at], run_eagerly(batch[at]), theirs[at]);
      if (difference.text.empty()) {
        ++tally.agree;
        continue;
      }
      // What is left of the program after reducing says who is to blame.
      Program smallest = reduce(
          batch[at], [&](const Program& program) { return differs(program).aspect == difference.aspect; }, kTries);
      std::string who = known.find(smallest, differs(smallest));
      if (!who.empty()) {
        ++tally.known[who + " " + difference.aspect];
        continue;
      }
      std::vector<std::string> names = operators_of(smallest);
      ++tally.unknown[(names.empty() ? "nothing" : names.back()) + " " + difference.aspect];
      if (shown-- > 0)
        ADD_FAILURE() << "seed " << batch[at].seed << ", " << difference.aspect << ": " << differs(smallest).text
                      << "\n\n"
                      << python_source(smallest);
    }
  }
  print(tally);
  EXPECT_TRUE(tally.unknown.empty());
}

// What is sent to the peer is Python, whoever runs it.
TEST(Peer, programs_print_as_python) {
  Program program;
  uint64_t seed = 1;
  do program = random_program(seed++);
  while (!has_peer(program));
  std::string text = python_source(program);
  EXPECT_EQ(text.find("P = dict(bases=["), 0u);
  EXPECT_NE(text.find("\ndef function(v0"), std::string::npos);
  EXPECT_EQ(text.find("::"), std::string::npos);
  EXPECT_EQ(text.find("SymInts"), std::string::npos);
}

TEST(Peer, known_differences_are_found_by_operator_and_aspect) {
  KnownDifferences known(TENON_SOURCE_DIR "/tests/fuzz/peer_known.txt");
  Program program = random_program(1);
  EXPECT_EQ(known.find(program, {"", "no such aspect"}), "");
  EXPECT_EQ(known.find(program, {"call 1: A view was created in no_grad mode and its base …", "raises"}), "*");
  EXPECT_EQ(known.find(program, {"call 1: runs what PyTorch refuses: something else", "raises"}), "");
}

}  // namespace
}  // namespace tenon::fuzz
