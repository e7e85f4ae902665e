// Programs of a few lines, and everything that the compiler makes of them: one text each.
#include <gtest/gtest.h>

#include "golden/expected.h"
#include "golden/recording.h"

namespace tenon::golden {
namespace {

TEST(Golden, pointwise_chain) {
  Recording recording;
  auto f = compile([](Tensor x, Tensor w, Tensor b, Tensor r) { return tanh(x * w + b) + r; }, recording.options());
  f(ones({8, 32}), ones({32}), ones({32}), ones({8, 32}));
  expect_golden("pointwise_chain", recording.text(f.explain()));
}

TEST(Golden, softmax) {
  Recording recording;
  auto f = compile([](Tensor x) { return softmax(x, 1); }, recording.options());
  f(ones({4, 10}));
  expect_golden("softmax", recording.text(f.explain()));
}

TEST(Golden, training_step) {
  manual_seed(1);
  auto model = nn::Sequential(nn::Linear(16, 32), nn::ReLU(), nn::Linear(32, 10));
  Recording recording;
  // The weights and biases come after the arguments.
  auto step = compile([&](Tensor x, Tensor y) { return cross_entropy(model(x), y); }, recording.options({2, 3, 4, 5}));
  step(ones({8, 16}), zeros({8}, kInt64)).backward();
  expect_golden("training_step", recording.text(step.explain()));
}

TEST(Golden, dynamic_size) {
  Recording recording;
  auto f = compile([](Tensor x, Tensor y) { return (x.sin() + y).sum(Ints{1}); }, recording.options());
  f(ones({3, 6}), ones({6}));
  f(ones({5, 6}), ones({6}));
  f(ones({7, 6}), ones({6}));
  expect_golden("dynamic_size", recording.text(f.explain()));
}

TEST(Golden, mutation) {
  Recording recording;
  auto f = compile(
      [](Tensor x, Tensor y) {
        x.mul_(2);
        x.t().select(0, 1).add_(y);
        Tensor view = x.view({2, 2, 3}), sum = x.sum();
        return std::pair(view, sum);
      },
      recording.options());
  f(ones({4, 3}), ones({4}));
  expect_golden("mutation", recording.text(f.explain()));
}

TEST(Difference, shows_what_changed_and_its_neighbours) {
  EXPECT_EQ(difference("a\nb\nc\n", "a\nb\nc\n"), "");
  EXPECT_EQ(difference("a\nb\nc\nd\ne\nf\ng\n", "a\nb\nc\nD\ne\nf\ng\n"), "  b\n  c\n- d\n+ D\n  e\n  f\n");
  EXPECT_EQ(difference("a\nx\nb\nc\nd\ne\nf\ng\n", "a\nb\nc\nd\ne\nf\n"), "  a\n- x\n  b\n  c\n  …\n  e\n  f\n- g\n");
}

}  // namespace
}  // namespace tenon::golden
