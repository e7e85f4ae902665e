// What backward saves and how its gradients lie: launches, not numbers, are at stake, so the graphs are looked at.
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon::aot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(GradientLayout, ATransposedProductBecomesAProductOfTransposes) {
  manual_seed(3);
  auto layer = nn::Linear(5, 3);
  Tensor x = randn({4, 5});
  auto step = tenon::compile([&](Tensor input) { return (layer(input) * layer(input)).sum(); });
  step(x).backward();
  Tensor compiled = layer.weight.get().grad();
  EXPECT_TRUE(compiled.is_contiguous());
  layer.zero_grad();
  (layer(x) * layer(x)).sum().backward();
  Tensor eager = layer.weight.get().grad();
  for (int64_t at = 0; at < 15; ++at) EXPECT_NEAR(compiled.data<float>()[at], eager.data<float>()[at], 1e-5);
}

// The matrix whose transpose is the gradient of a leaf needs no kernel of its own to be turned.
TEST(GradientLayout, NoCopyIsLaunched) {
  auto layer = nn::Linear(5, 3);
  Tensor x = randn({4, 5});
  auto step = tenon::compile([&](Tensor input) { return layer(input).sum(); });
  step(x).backward();
  layer.zero_grad();
  Counter& clones = counter("kernels_launched");
  Tensor loss = step(x);
  int64_t before = clones.value();
  loss.backward();
  // The gradient of the loss itself (ones), its spread over the rows, and the sum for the bias.
  EXPECT_LE(clones.value() - before, 3);
  EXPECT_THAT(step.explain().entries[0].backward, HasSubstr("aten::mm"));
}

TEST(Partition, SavesWhatForwardComputedLast) {
  auto model = nn::Sequential(nn::Linear(6, 8), nn::ReLU(), nn::Linear(8, 2));
  auto step = tenon::compile([&](Tensor input) { return model(input).sum(); });
  step(randn({4, 6})).backward();
  // The ReLU's result serves its own gradient and the next product's: it is not computed again.
  EXPECT_THAT(step.explain().entries[0].backward, Not(HasSubstr("aten::relu(")));
  EXPECT_THAT(step.explain().entries[0].forward, HasSubstr("aten::relu("));
}

// cos(b) is as large as b, but forward has no use for it.
TEST(Partition, SavesNothingMadeForBackwardAlone) {
  Tensor w = randn({3, 3}).set_requires_grad(true);
  auto step = tenon::compile([&](Tensor x) { return mm(x, w).sin().sum(); });
  step(randn({3, 3})).backward();
  EXPECT_THAT(step.explain().entries[0].forward, Not(HasSubstr("aten::cos(")));
  EXPECT_THAT(step.explain().entries[0].backward, HasSubstr("aten::cos("));
}

}  // namespace
}  // namespace tenon::aot
