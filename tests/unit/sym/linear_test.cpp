// The work of guarding is linear in the number of questions: counted in steps of the prover, not in seconds, and with a
// generous bound on seconds besides.
#include "../../../src/sym/pool.h"

#include <tenon/sym/shape_env.h>

#include <gtest/gtest.h>

#include <chrono>
#include <random>

namespace tenon::sym {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// What a capture asks while `count` operators run on `sizes`: broadcasts, contiguity, reshapes, slices, concatenations.
size_t ask(Ref<ShapeEnv> env, const std::vector<SymInt>& sizes, size_t count) {
  size_t yes = 0;
  std::mt19937 random(3);
  auto pick = [&]() -> const SymInt& { return sizes[random() % sizes.size()]; };
  for (size_t i = 0; i < count; ++i) {
    const SymInt &a = pick(), &b = pick(), &c = pick();
    auto k = static_cast<int64_t>(random() % 1000 + 2);
    switch (i % 8) {
      case 0: yes += bool(a == b); break;
      case 1: yes += bool(a * b == b * c); break;
      case 2: yes += bool(a <= b + k); break;
      case 3: yes += bool((a * k) % 4 == 0); break;
      case 4: yes += bool(max(a - k, 0) < c); break;
      case 5: yes += bool((a + b + c) / k > 3); break;
      case 6: yes += bool(a != k); break;
      default: yes += statically_true(a * b + c >= c); break;
    }
    (void)env->pool().simplify((a * b + c * k).expr());
  }
  return yes;
}

struct Work {
  uint64_t steps;
  double seconds;
  size_t guards;
};

Work work(size_t symbols, size_t questions, bool unbacked) {
  Ref<ShapeEnv> env = make_ref<ShapeEnv>();
  std::vector<SymInt> sizes;
  for (size_t i = 0; i < symbols; ++i) {
    auto hint = static_cast<int64_t>(1000 + 17 * (i / 2 * 37 % symbols));  // pairs are equal
    sizes.push_back(env->create_size(hint, "x"));
    if (!unbacked) continue;
    SymInt value = env->create_unbacked({0, Range::kMax});
    env->check(value <= sizes.back(), "fits");
  }
  auto start = std::chrono::steady_clock::now();
  ask(env, sizes, questions);
  return {PoolAccess::state(env->pool()).steps, seconds_since(start), env->guards().size()};
}

TEST(LinearTest, TenThousandQuestionsAboutTwoHundredSymbols) {
  Work all = work(200, 10000, false);
  RecordProperty("milliseconds", static_cast<int>(all.seconds * 1000));
  EXPECT_GT(all.guards, 1000u);
  EXPECT_LT(all.steps, 200000u);  // 81,000 measured: eight for a question
}

TEST(LinearTest, WorkPerQuestionDoesNotGrow) {
  for (bool unbacked : {false, true}) {
    Work few = work(200, 6000, unbacked), many = work(200, 12000, unbacked);
    RecordProperty(unbacked ? "steps_with_values" : "steps", static_cast<int>(many.steps));
    // Proofs become longer until they meet their bound; from there on twice the questions are twice the steps.
    EXPECT_LT(many.steps, few.steps * 3);
  }
}

}  // namespace
}  // namespace tenon::sym
