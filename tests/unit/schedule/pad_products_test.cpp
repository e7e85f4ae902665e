// Operands of matrix products that are padded to whole vector registers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/codegen/compile.h>
#include <tenon/schedule/schedule.h>
#include <tenon/tenon.h>

#include <limits>

namespace tenon {
namespace {

using ::testing::HasSubstr;

std::string refused(const Tensor& a, const Tensor& b) { return schedule::should_pad(a, b).why(); }

TEST(PadProducts, IsDecidedBySizes) {
  EXPECT_TRUE(schedule::should_pad(randn({64, 65}), randn({65, 32})));
  EXPECT_TRUE(schedule::should_pad(randn({3, 64, 100}, kBFloat16), randn({3, 100, 32}, kBFloat16)));
  EXPECT_EQ(refused(randn({64, 64}), randn({64, 32})), "64 is a multiple of 16 already");
  EXPECT_EQ(refused(randn({64, 80}, kBFloat16), randn({80, 8}, kBFloat16)), "");
  EXPECT_EQ(refused(randn({64, 17}), randn({17, 64})), "rows of 17 elements would be mostly padding");
  EXPECT_EQ(refused(randn({1, 1025}), randn({1025, 64})),
            "a product of 1 rows and 64 columns takes no longer than copying its operands");
  EXPECT_EQ(refused(randn({64, 65}, kFloat64), randn({65, 32}, kFloat64)),
            "float64 is multiplied by loops, which have no ends of rows to save");
}

// The zeros add nothing, not even where a number is infinite or none.
TEST(PadProducts, GivesTheSameValues) {
  Tensor left = randint(-8, 9, {2, 40, 70}).to(kFloat32), right = randint(-8, 9, {2, 70, 24}).to(kFloat32);
  left[0][3].fill_(std::numeric_limits<double>::infinity());
  right[1][5].fill_(std::numeric_limits<double>::quiet_NaN());
  auto product = [](Tensor x, Tensor y) { return bmm(x, y).relu() + 1; };
  Tensor expected = product(left, right);
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    Tensor padded = compile(product, {.dynamic = dynamic, .pad_products = true})(left, right);
    EXPECT_TRUE(padded.allclose(expected, 0, 0, true));
  }
  auto layer = [](Tensor x, Tensor w, Tensor b) { return addmm(b, x, w, 2, 0.5); };
  Tensor x = randint(-8, 9, {30, 67}).to(kFloat32).set_requires_grad(), w = randint(-8, 9, {67, 20}).to(kFloat32);
  Tensor bias = randint(-8, 9, {20}).to(kFloat32);
  Tensor got = compile(layer, {.pad_products = true})(x, w, bias);
  EXPECT_TRUE(got.equal(layer(x, w, bias)));
  got.sum().backward();
  Tensor gradient = x.grad();
  x.set_grad({});
  layer(x, w, bias).sum().backward();
  EXPECT_TRUE(gradient.equal(x.grad()));
}

// In plans it is seen by the copies that it takes; without the option there is none.
TEST(PadProducts, IsOffUnlessAskedFor) {
  auto plan_text = [](bool pads) {
    std::string text;
    auto backend = [&](const graph::Graph& graph) -> GraphFunction {
      auto plan = schedule::compile_graph(graph, {.pad_products = pads});
      text = runtime::to_string(*plan);
      return [plan](std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
        return runtime::run(*plan, inputs, symbols);
      };
    };
    compile([](Tensor a, Tensor b) { return mm(a, b); }, {.backend = backend})(randn({64, 65}), randn({65, 32}));
    return text;
  };
  EXPECT_THAT(plan_text(true), HasSubstr("[64, 80]"));
  EXPECT_THAT(plan_text(false), ::testing::Not(HasSubstr("80")));
}

}  // namespace
}  // namespace tenon
