// Seed 001: what compiled autograd says of itself.
#include "compiled_autograd.h"

#include <regex>

namespace tenon {
namespace {

using namespace testing;

struct Mlp : nn::Module {
  nn::Linear first = submodule("0", nn::Linear(4, 4)), second = submodule("2", nn::Linear(4, 4));
  Tensor operator()(const Tensor& input) const { return second(first(input).relu()).relu(); }
};

Tensors train_once() {
  Mlp model;
  model(randn({2, 4})).sum().backward();
  Tensors found;
  add_gradients(found, model);
  return found;
}

const std::string kNodes[] = {
    "SumBackward0 (NodeCall 1)",
    "ReluBackward0 (NodeCall 2)",
    "AddmmBackward0 (NodeCall 3)",
    "TBackward0 (NodeCall 4)",
    "torch::autograd::AccumulateGrad (NodeCall 5)",
    "ReluBackward0 (NodeCall 6)",
    "AddmmBackward0 (NodeCall 7)",
    "TBackward0 (NodeCall 8)",
    "torch::autograd::AccumulateGrad (NodeCall 9)",
    "torch::autograd::AccumulateGrad (NodeCall 10)",
    "torch::autograd::AccumulateGrad (NodeCall 11)",
};

TEST_F(TestCompiledAutograd, verbose_logs_graph) {
  set_logs("compiled_autograd");
  ::testing::internal::CaptureStderr();
  check_output_and_recompiles(train_once);
  std::string logs = ::testing::internal::GetCapturedStderr();
  for (const std::string& node : kNodes) EXPECT_THAT(logs, HasSubstr(node));
}

TEST_F(TestCompiledAutograd, verbose_logs_cpp) {
  set_logs("compiled_autograd");
  ::testing::internal::CaptureStderr();
  check_output_and_recompiles(
      [] {
        Mlp model;
        Tensors found;
        for (int64_t batch : {10, 11, 12}) {
          model.zero_grad();
          model(randn({batch, 4})).sum().backward();
          add_gradients(found, model);
        }
        return found;
      },
      2);
  std::string logs = ::testing::internal::GetCapturedStderr();
  auto count = [&](const std::string& pattern) {
    std::regex expression(pattern);
    return std::distance(std::sregex_iterator(logs.begin(), logs.end(), expression), std::sregex_iterator());
  };
  EXPECT_EQ(count("Cache miss due to new autograd node: torch::autograd::GraphRoot \\(NodeCall 0\\) with key size "
                  "\\d+, previous key sizes=\\[\\]\n"),
            1);
  // One after the other, for every size that depends on the batch: of what sum and relu differentiate, and of the
  // operands of addmm. The root's gradient is a number, and leaves have no size that changes (in the seed, a change of
  // either is one of the numbers that its nodes keep).
  auto marked = [](const std::string& node) {
    return "\\[compiled_autograd\\] Cache miss due to changed shapes: marking size idx \\d+ of " + node +
           " as dynamic\n";
  };
  std::string in_order = "(" + marked("SumBackward0 \\(NodeCall 1\\)") + ")+(" +
                         marked("ReluBackward0 \\(NodeCall 2\\)") + ")+(" + marked("AddmmBackward0 \\(NodeCall 3\\)") +
                         ")+(" + marked("ReluBackward0 \\(NodeCall 6\\)") + ")+(" +
                         marked("AddmmBackward0 \\(NodeCall 7\\)") + ")+";
  EXPECT_EQ(count(in_order), 1) << logs;
}

// The switch is read where compiled autograd is turned on.
TEST_F(TestCompiledAutograd, snapshot_verbose_logs_flag) {
  ::testing::internal::CaptureStderr();
  {
    compiled_autograd::Enable on({.fullgraph = true});
    set_logs("compiled_autograd");
    train_once();
  }
  std::string logs = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(captures(), 1);
  for (const std::string& node : kNodes) EXPECT_EQ(logs.find(node), std::string::npos);
}

}  // namespace
}  // namespace tenon
