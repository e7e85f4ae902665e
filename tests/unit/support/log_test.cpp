#include <gtest/gtest.h>
#include <tenon/support/error.h>
#include <tenon/support/log.h>

namespace tenon {
namespace {

// Puts the topics of the environment back.
struct Logs : testing::Test {
  ~Logs() override {
    const char* text = std::getenv("TENON_LOGS");
    set_logs(text ? text : "");
  }
};

TEST_F(Logs, topics_are_turned_on_by_name) {
  set_logs("guards,kernels");
  EXPECT_TRUE(log_enabled(LogTopic::Guards));
  EXPECT_TRUE(log_enabled(LogTopic::Kernels));
  EXPECT_FALSE(log_enabled(LogTopic::Graph));
  set_logs("");
  EXPECT_FALSE(log_enabled(LogTopic::Guards));
}

TEST_F(Logs, every_topic_has_its_own_name) {
  const char* names[] = {"graph",   "guards", "recompiles", "breaks",           "fusion",
                         "kernels", "plan",   "cache",      "compiled_autograd"};
  ASSERT_EQ(std::size(names), static_cast<size_t>(LogTopic::Count_));
  for (unsigned on = 0; on < std::size(names); ++on) {
    set_logs(names[on]);
    for (unsigned topic = 0; topic < std::size(names); ++topic)
      EXPECT_EQ(log_enabled(static_cast<LogTopic>(topic)), topic == on) << names[on] << " and " << names[topic];
  }
}

TEST_F(Logs, all_spaces_and_empty_words) {
  set_logs("all");
  for (unsigned topic = 0; topic < static_cast<unsigned>(LogTopic::Count_); ++topic)
    EXPECT_TRUE(log_enabled(static_cast<LogTopic>(topic)));
  set_logs(",graph, plan ,");
  EXPECT_TRUE(log_enabled(LogTopic::Plan));
  EXPECT_FALSE(log_enabled(LogTopic::Cache));
}

TEST_F(Logs, unknown_topic_lists_the_known_ones_and_changes_nothing) {
  set_logs("fusion");
  try {
    set_logs("graph,gards");
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "[TENON_LOGS] unknown topic 'gards': expected a comma-separated list of all, graph, guards, recompiles, "
        "breaks, fusion, kernels, plan, cache, compiled_autograd");
  }
  EXPECT_TRUE(log_enabled(LogTopic::Fusion));
  EXPECT_FALSE(log_enabled(LogTopic::Graph));
}

TEST_F(Logs, lines_go_to_standard_error_with_their_topic) {
  set_logs("kernels");
  testing::internal::CaptureStderr();
  TENON_LOG(Kernels, "{} compiled in {:.1f} ms", "add", 2.25);
  TENON_LOG(Graph, "never formatted: {}", [] {
    ADD_FAILURE() << "the arguments of a topic that is off were evaluated";
    return 0;
  }());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "[kernels] add compiled in 2.2 ms\n");
}

TEST(Warnings, once_per_key) {
  int64_t before = warning_count();
  testing::internal::CaptureStderr();
  warn_once("log_test: a", "the first");
  warn_once("log_test: a", "the first again");
  warn_once("log_test: b", "the second");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "tenon: warning: the first\ntenon: warning: the second\n");
  EXPECT_EQ(warning_count(), before + 2);
}

}  // namespace
}  // namespace tenon
