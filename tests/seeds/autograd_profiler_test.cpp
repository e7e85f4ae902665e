// The autograd suite: profiles of forward and backward. An operator's event has the name of its overload, too.
#include "autograd.h"

#include <tenon/dispatch/profile_report.h>
#include <tenon/nn/modules.h>

#include <unistd.h>

namespace tenon {
namespace {

using namespace testing;
using Event = Profiler::Event;

// "aten::mul.Scalar" is a call of "aten::mul".
std::string operator_of(const Event& event) { return event.name.substr(0, event.name.find('.')); }

TEST_P(TestAutograd, profiler) {
  Tensor x = randn({10, 10});
  EXPECT_FALSE(is_profiling());
  Profiler profiler;
  EXPECT_TRUE(is_profiling());
  Tensor y = x * 2 + 4;
  profiler.stop();
  EXPECT_FALSE(is_profiling());
  std::vector<std::string> names;
  for (const Event& event : profiler.events())
    if (event.depth == 0) names.push_back(operator_of(event));
  EXPECT_EQ(names, (std::vector<std::string>{"aten::mul", "aten::add"}));
}

int64_t count_of(const std::vector<ProfileAverage>& averages, const std::string& name) {
  for (const ProfileAverage& each : averages)
    if (each.name == name) return each.count;
  return 0;
}

TEST_P(TestAutograd, record_function_callbacks) {
  Tensor x = randn({10, 10});
  Profiler profiler;
  {
    RecordFunction range("foo");
    Tensor y = x * 2 + 4;
  }
  EXPECT_EQ(count_of(key_averages(profiler.events()), "foo"), 1);
}

// Begun and ended by hand.
TEST_P(TestAutograd, record_function_legacy) {
  Tensor x = randn({10, 10});
  Profiler profiler;
  auto range = std::make_unique<RecordFunction>("bar");
  Tensor y = x * 2 + 4;
  range->finish();
  range.reset();
  EXPECT_EQ(count_of(key_averages(profiler.events()), "bar"), 1);
}

TEST_P(TestAutograd, record_function) {
  Tensor x = randn({10, 10});
  auto my_func = [](const Tensor& of) {
    RecordFunction range("my_func");
    return of * of;
  };
  Profiler profiler;
  {
    RecordFunction outer("outer");
    Tensor y = x * 2 + 4;
    {
      RecordFunction inner("inner");
      y = y - 1;
    }
    y = y / 1;
  }
  profiler.stop();
  std::vector<std::string> names;
  for (const Event& event : profiler.events())
    if (event.depth == 0) names.push_back(operator_of(event));
  EXPECT_EQ(names, (std::vector<std::string>{"outer", "aten::mul", "aten::add", "inner", "aten::sub", "aten::div"}));
  Profiler again;
  my_func(x);
  EXPECT_THAT(profile_table(again.events()), HasSubstr("my_func"));
}

TEST_P(TestAutograd, record_function_multithreaded) {
  Profiler profiler;
  auto outer = std::make_unique<RecordFunction>("outer");
  {
    RecordFunction inner("inner");
    outer->finish();
  }
  {
    RecordFunction inner("inner");
    outer = std::make_unique<RecordFunction>("outer");
  }
  (randn({2}) * 2).sum();  // nothing looks at what has ended
  outer->finish();
  std::vector<ProfileAverage> averages = key_averages(profiler.events());
  EXPECT_EQ(count_of(averages, "outer"), 2);
  EXPECT_EQ(count_of(averages, "inner"), 2);
}

TEST_P(TestAutograd, profiler_aggregation_fake) {
  std::vector<Event> events;
  auto add = [&](int32_t thread, int64_t from, int64_t to) {
    Event event;
    event.name = std::to_string(events.size() + 1);
    event.thread = thread;
    event.start = from;
    event.duration = to - from;
    events.push_back(event);
  };
  add(1, 0, 1);
  add(1, 1, 2);
  add(0, 0, 2);
  add(0, 1, 2);
  add(0, 1, 3);
  std::vector<std::vector<size_t>> children = children_of(events);
  for (size_t at = 0; at < 4; ++at) EXPECT_TRUE(children[at].empty()) << at;
  EXPECT_EQ(children[4], (std::vector<size_t>{3}));
}

TEST_P(TestAutograd, profiler_function_event_avg) {
  std::vector<Event> events(2);
  for (size_t at : {0, 1}) {
    events[at].name = "foo";
    events[at].start = at == 0 ? 10'000 : 20'000;
    events[at].duration = at == 0 ? 5'000 : 10'000;
  }
  ProfileAverage average = key_averages(events)[0];
  average.add(ProfileAverage(average));
  EXPECT_EQ(average.count, 4);
  EXPECT_EQ(average.total, 30'000);
  EXPECT_EQ(average.self, 30'000);
  EXPECT_EQ(average.average(), 7'500);
}

// The thread of an operator and its number come back with its steps of backward.
TEST_P(TestAutograd, profiler_seq_nr) {
  Tensor x = randn({10, 10}).set_requires_grad(), y = randn({10, 10}).set_requires_grad();
  compiled_autograd::Disable node_by_node;  // what a captured walk runs are kernels
  Profiler profiler;
  Tensor z = x + y, s = z.sum();
  empty({1}, kFloat32);
  s.backward();
  profiler.stop();
  auto of = [&](const std::string& op, const std::string& node) {
    std::vector<Event> found;
    for (const Event& event : profiler.events())
      // (A sum of all elements is a sum along dimensions, which is what autograd sees.)
      if ((event.sequence >= 0 && operator_of(event) == op) || event.name == node ||
          event.name == "autograd::engine::evaluate_function: " + node)
        found.push_back(event);
    return found;
  };
  // (A sum of all elements is SumBackward0 here and there; the case names the overload along dimensions.)
  for (const auto& [op, node] : {std::pair{"aten::add", "AddBackward0"}, std::pair{"aten::sum", "SumBackward0"}}) {
    std::vector<Event> events = of(op, node);
    ASSERT_EQ(events.size(), 3u) << op;
    EXPECT_GE(events[0].sequence, 0);
    EXPECT_EQ(events[0].kind, Event::Kind::Operator);
    for (const Event& event : {events[1], events[2]}) {
      EXPECT_EQ(event.sequence, events[0].sequence) << event.name;
      EXPECT_EQ(event.forward_thread, events[0].thread) << event.name;
    }
    EXPECT_EQ(events[1].name, std::string("autograd::engine::evaluate_function: ") + node);
    EXPECT_EQ(events[2].depth, events[1].depth + 1);
  }
  int empties = 0;
  for (const Event& event : profiler.events())
    if (operator_of(event) == "aten::empty" && event.depth == 0) {
      ++empties;
      EXPECT_EQ(event.sequence, -1);
    }
  EXPECT_EQ(empties, 1);
}

TEST_P(TestAutograd, profiler_aggregation_table) {
  Tensor a = rand({1024});
  Profiler profiler;
  einsum("i->", {a});
  EXPECT_EQ(profiler.str(), profiler.table());
  EXPECT_THAT(profiler.str(), HasSubstr("aten::einsum"));
}

TEST_P(TestAutograd, profiler_shapes) {
  nn::Linear first(20, 30), second(30, 40);
  Tensor input = randn({128, 20});
  Profiler profiler({.record_shapes = true});
  second(first(input));
  std::vector<std::vector<std::vector<int64_t>>> shapes;
  for (const Event& event : profiler.events())
    if (event.name == "aten::linear") shapes.push_back(event.shapes);
  using Shapes = std::vector<std::vector<int64_t>>;
  EXPECT_THAT(shapes, ::testing::ElementsAre(Shapes{{128, 20}, {30, 20}, {30}}, Shapes{{128, 30}, {40, 30}, {40}}));
}

TEST_P(TestAutograd, profiler_aggregation_lstm) {
  nn::LSTM rnn(10, 20, {.num_layers = 2});
  std::vector<Tensor> given = {randn({5, 3, 10}), randn({2, 3, 20}), randn({2, 3, 20})};
  Profiler profiler({.record_shapes = true});
  for (int run = 0; run < 20; ++run) rnn(given[0], nn::LSTMState{given[1], given[2]});
  EXPECT_FALSE(profiler.table().empty());
  std::string by_shape = profile_table(profiler.events(), false, true), top = profile_table(profiler.events(), true);
  EXPECT_GT(key_averages(profiler.events(), true).size(), key_averages(profiler.events()).size());
  EXPECT_THAT(by_shape, HasSubstr("[[5, 3, 10]"));
  EXPECT_LT(top.size(), by_shape.size());
  std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("tenon-lstm-{}.json", getpid());
  profiler.save(path);
  EXPECT_GT(std::filesystem::file_size(path), 1000u);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tenon
