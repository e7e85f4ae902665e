#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "error_of.h"

namespace tenon::testing {
namespace {

using ::testing::HasSubstr;
using Event = Profiler::Event;

TEST(Profiler, RecordsOperatorsAndWhatTheyAreMadeOf) {
  Tensor x = randn({2, 3}), weight = randn({4, 3});
  x.sin();
  Profiler profiler;
  x.sin();
  linear(x, weight);
  profiler.stop();
  x.cos();
  std::vector<std::string> outer, inner;
  for (const Event& event : profiler.events()) {
    EXPECT_GE(event.duration, 0);
    if (event.depth == 0) outer.push_back(event.name);
    if (event.depth == 1) inner.push_back(event.name);
  }
  EXPECT_EQ(outer, (std::vector<std::string>{"aten::sin", "aten::linear"}));
  EXPECT_THAT(inner, ::testing::IsSupersetOf({"aten::t", "aten::mm"}));
}

TEST(Profiler, StepsOfBackwardHaveTheNumberOfTheirOperator) {
  Tensor x = randn({3}).set_requires_grad();
  Profiler profiler;
  (x.sin() * x.cos()).sum().backward();
  std::map<int64_t, std::string> operators;
  int steps = 0;
  for (const Event& event : profiler.events()) {
    if (event.sequence < 0) continue;
    if (event.kind == Event::Kind::Operator) {
      operators.emplace(event.sequence, event.name);
      continue;
    }
    ++steps;
    // "SinBackward0" of "aten::sin", and what the engine does around it
    std::string step = event.name.substr(0, event.name.find("Backward"));
    if (size_t colon = step.rfind(": "); colon != std::string::npos) step = step.substr(colon + 2);
    for (char& letter : step) letter = static_cast<char>(std::tolower(letter));
    EXPECT_THAT(operators[event.sequence], HasSubstr("aten::" + step));
  }
  EXPECT_EQ(steps, 8);
}

TEST(Profiler, KnowsTheModule) {
  nn::Sequential model(nn::Linear(3, 4), nn::ReLU());
  Profiler profiler;
  model(randn({2, 3}));
  bool found = false;
  for (const Event& event : profiler.events())
    if (event.name == "aten::relu" && event.depth == 0) found = event.module == "1";
  EXPECT_TRUE(found);
}

TEST(Profiler, ThreadsAreToldApart) {
  Tensor x = randn({3});
  Profiler profiler;
  x.sin();
  std::thread([&] { x.cos(); }).join();
  std::map<std::string, int32_t> threads;
  for (const Event& event : profiler.events()) threads[event.name] = event.thread;
  EXPECT_NE(threads.at("aten::sin"), threads.at("aten::cos"));
}

TEST(Profiler, WritesAChromeTrace) {
  Profiler profiler;
  randn({3}).sin();
  std::string text = profiler.chrome_trace();
  EXPECT_THAT(text, HasSubstr("{\"traceEvents\": ["));
  EXPECT_THAT(text, HasSubstr("\"name\": \"aten::sin\""));
  EXPECT_THAT(text, HasSubstr("\"ph\": \"X\""));
  EXPECT_THAT(error_of([&] { profiler.save("/nowhere/at/all.json"); }), HasSubstr("cannot be written"));
}

TEST(Profiler, OneRecordsAtATime) {
  Profiler first;
  EXPECT_EQ(error_of([] { Profiler second; }), "[Profiler] another profiler records: stop() it first");
  first.stop();
  Profiler second;
  EXPECT_TRUE(second.events().empty());
}

}  // namespace
}  // namespace tenon::testing
