#include <gtest/gtest.h>
#include <tenon/support/counters.h>

#include <thread>

namespace tenon {
namespace {

TEST(Counters, a_name_is_one_counter) {
  Counter& first = counter("counters_test.a");
  int64_t before = first.value();
  first.add();
  counter("counters_test.a").add(4);
  EXPECT_EQ(&counter("counters_test.a"), &first);
  EXPECT_EQ(first.value(), before + 5);
  EXPECT_EQ(counters().at("counters_test.a"), before + 5);
  EXPECT_EQ(counters().count("counters_test.never_mentioned"), 0u);
}

TEST(Counters, references_survive_new_names) {
  Counter& first = counter("counters_test.kept");
  for (int i = 0; i < 200; ++i) counter(fmt::format("counters_test.{}", i));
  EXPECT_EQ(&counter("counters_test.kept"), &first);
}

TEST(Counters, threads_lose_no_count) {
  Counter& shared = counter("counters_test.threads");
  shared.reset();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int n = 0; n < 1000; ++n) counter("counters_test.threads").add();
    });
  for (std::jthread& thread : threads) thread.join();
  EXPECT_EQ(shared.value(), 4000);
}

TEST(Counters, reset_sets_all_to_zero_and_keeps_the_names) {
  counter("counters_test.reset").add(3);
  reset_counters();
  EXPECT_EQ(counter("counters_test.reset").value(), 0);
  EXPECT_EQ(counters().at("counters_test.reset"), 0);
}

}  // namespace
}  // namespace tenon
