#include <gtest/gtest.h>
#include <sys/wait.h>
#include <tenon/support/error.h>
#include <tenon/support/parallel.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <thread>

namespace tenon {
namespace {

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

// The ranges that a call is split into, in order.
Ranges ranges_of(int64_t count, int64_t grain) {
  std::mutex mutex;
  Ranges ranges;
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    std::lock_guard lock(mutex);
    ranges.emplace_back(begin, end);
  });
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

struct Parallel : testing::Test {
  ~Parallel() override { set_num_threads(0); }
};

TEST_F(Parallel, ranges_cover_everything_once_and_start_at_multiples_of_the_grain) {
  for (int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    for (int64_t count : {1, 2, 5, 16, 17, 1000, 1023}) {
      for (int64_t grain : {1, 2, 16, 100, 5000}) {
        Ranges ranges = ranges_of(count, grain);
        EXPECT_LE(ranges.size(), static_cast<size_t>(threads));
        int64_t next = 0;
        for (auto [begin, end] : ranges) {
          EXPECT_EQ(begin, next);
          EXPECT_LT(begin, end);
          EXPECT_EQ(begin % grain, 0);
          next = end;
        }
        EXPECT_EQ(next, count) << threads << " threads, grain " << grain;
      }
    }
  }
}

TEST_F(Parallel, uses_as_many_threads_as_there_are_parts) {
  set_num_threads(3);
  EXPECT_EQ(ranges_of(3000, 1000), (Ranges{{0, 1000}, {1000, 2000}, {2000, 3000}}));
  // Each part waits for the others, so it ends only if all run at once.
  std::atomic<int> arrived{0};
  parallel_for(3, 1, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 3);
}

TEST_F(Parallel, nothing_to_do_and_odd_grains) {
  EXPECT_EQ(ranges_of(0, 1), Ranges{});
  EXPECT_EQ(ranges_of(-5, 1), Ranges{});
  set_num_threads(2);
  EXPECT_EQ(ranges_of(10, 0), (Ranges{{0, 5}, {5, 10}}));
  EXPECT_EQ(ranges_of(10, -3), (Ranges{{0, 5}, {5, 10}}));
  EXPECT_EQ(ranges_of(10, INT64_MAX), (Ranges{{0, 10}}));
}

TEST_F(Parallel, nested_calls_run_on_their_own_thread_with_the_same_split) {
  set_num_threads(2);
  Ranges expected = ranges_of(100, 10);
  std::atomic<int> inner_calls{0};
  parallel_for(2, 1, [&](int64_t, int64_t) {
    auto outer = std::this_thread::get_id();
    Ranges inner;
    parallel_for(100, 10, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      inner.emplace_back(begin, end);  // no lock: the ranges run one after the other
    });
    EXPECT_EQ(inner, expected);
    ++inner_calls;
  });
  EXPECT_EQ(inner_calls, 2);
}

TEST_F(Parallel, concurrent_callers_all_finish) {
  set_num_threads(2);
  std::vector<int64_t> sums(4);
  std::vector<std::jthread> callers;
  for (int64_t& sum : sums) {
    callers.emplace_back([&sum] {
      for (int round = 0; round < 50; ++round) {
        std::atomic<int64_t> total{0};
        parallel_for(1000, 10, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) total += i;
        });
        sum += total;
      }
    });
  }
  for (std::jthread& caller : callers) caller.join();
  for (int64_t sum : sums) EXPECT_EQ(sum, 50 * 499500);
}

TEST_F(Parallel, the_exception_of_the_first_range_arrives_after_all_have_run) {
  set_num_threads(4);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> ran{0};
    try {
      parallel_for(4, 1, [&](int64_t begin, int64_t) {
        ++ran;
        if (begin > 0) fail("range {}", begin);
      });
      FAIL() << "expected an Error";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "range 1");
    }
    EXPECT_EQ(ran, 4);
  }
  // The threads are free again.
  EXPECT_EQ(ranges_of(4, 1).size(), 4u);
}

TEST_F(Parallel, an_exception_of_a_nested_call_passes_through) {
  set_num_threads(2);
  EXPECT_THROW(
      parallel_for(2, 1, [](int64_t, int64_t) { parallel_for(2, 1, [](int64_t, int64_t) { fail("inner"); }); }), Error);
}

TEST_F(Parallel, a_forked_child_runs_alone) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer does not follow a fork of a process with threads";
#endif
  set_num_threads(2);
  Ranges expected = ranges_of(100, 1);  // the threads exist from here on
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);  // a hang is a failure
    auto self = std::this_thread::get_id();
    bool alone = true;
    Ranges ranges;
    parallel_for(100, 1, [&](int64_t begin, int64_t end) {
      alone &= std::this_thread::get_id() == self;
      ranges.emplace_back(begin, end);
    });
    _exit(alone && ranges == expected ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  EXPECT_EQ(ranges_of(100, 1), expected);  // the parent still has its threads
}

TEST_F(Parallel, the_number_of_threads_is_checked) {
  EXPECT_GE(num_threads(), 1);
  set_num_threads(5);
  EXPECT_EQ(num_threads(), 5);
  EXPECT_THROW(set_num_threads(-1), Error);
  EXPECT_THROW(set_num_threads(5000), Error);
  EXPECT_EQ(num_threads(), 5);
}

TEST_F(Parallel, a_const_body_may_be_passed) {
  const auto body = [](int64_t, int64_t) {};
  parallel_for(10, 1, body);
}

}  // namespace
}  // namespace tenon
