// Autocast: which operators compute in which dtype, eager and compiled.
#include "testing.h"

#include <gmock/gmock.h>

namespace tenon {
namespace {

using ::testing::Contains;
using testing::difference;
using testing::error_of;
using ::testing::HasSubstr;
using testing::same_bits;

TEST(Autocast, products_in_halves_losses_in_float32) {
  Tensor a = randn({4, 4}), b = randn({4, 4}), images = randn({1, 2, 5, 5}), filters = randn({3, 2, 3, 3});
  Tensor halves = a.to(kBFloat16), doubles = a.to(kFloat64);
  Autocast guard(kBFloat16);
  EXPECT_EQ(matmul(a, b).dtype(), kBFloat16);
  EXPECT_TRUE(same_bits(matmul(a, b), [&] {
    Autocast none(kBFloat16, false);
    return matmul(a.to(kBFloat16), b.to(kBFloat16));
  }()));
  EXPECT_EQ(linear(a, b).dtype(), kBFloat16);
  EXPECT_EQ(conv2d(images, filters).dtype(), kBFloat16);
  EXPECT_EQ(matmul(halves, b).dtype(), kBFloat16) << "mixed dtypes are cast";
  EXPECT_EQ(matmul(doubles, doubles).dtype(), kFloat64);
  EXPECT_EQ(mse_loss(halves, halves).dtype(), kFloat32);
  EXPECT_EQ(cat({a, halves}).dtype(), kFloat32);
  EXPECT_EQ(stack({halves, halves}).dtype(), kBFloat16);
  EXPECT_EQ((a + b).dtype(), kFloat32) << "what is in no list stays as it is";
  EXPECT_EQ((halves + b).dtype(), kFloat32);
}

TEST(Autocast, scopes) {
  Tensor a = randn({2, 2});
  EXPECT_FALSE(Autocast::current());
  {
    Autocast guard;
    EXPECT_EQ(Autocast::current(), kBFloat16);
    {
      Autocast off(kBFloat16, false);
      EXPECT_FALSE(Autocast::current());
      EXPECT_EQ(mm(a, a).dtype(), kFloat32);
      Autocast other(kFloat16);
      EXPECT_EQ(mm(a, a).dtype(), kFloat16);
    }
    EXPECT_EQ(mm(a, a).dtype(), kBFloat16);
  }
  EXPECT_EQ(mm(a, a).dtype(), kFloat32);
  EXPECT_EQ(error_of([] { Autocast wrong(kFloat32); }), "[Autocast] expected bfloat16 or float16, got float32");
}

TEST(Autocast, gradients_come_back_in_the_dtype_of_the_leaf) {
  nn::Linear layer(4, 3);
  Tensor x = randn({5, 4}), loss;
  {
    Autocast guard;
    loss = mse_loss(layer(x), zeros({5, 3}));
  }
  EXPECT_EQ(loss.dtype(), kFloat32);
  loss.backward();
  EXPECT_EQ(layer.weight.get().grad().dtype(), kFloat32);
  Tensor expected = layer.weight.get().grad().clone();
  layer.zero_grad();
  mse_loss(layer(x), zeros({5, 3})).backward();
  EXPECT_LT(difference(expected, layer.weight.get().grad()), 3e-2);
}

TEST(Autocast, compiled_functions_are_guarded_by_it) {
  nn::Linear layer(4, 3);
  Tensor x = randn({5, 4});
  for (const char* backend : {"inductor", "aot_eager", "eager"}) {
    auto f = compile([&](Tensor a) { return relu(layer(a)); }, {.backend = backend});
    EXPECT_EQ(f(x).dtype(), kFloat32);
    {
      Autocast guard;
      Tensor expected = relu(layer(x)), found = f(x);
      EXPECT_LT(difference(found.detach(), expected.detach()), 1e-2);
      EXPECT_EQ(f(x).dtype(), kBFloat16);
    }
    EXPECT_EQ(f(x).dtype(), kFloat32);
    EXPECT_EQ(f.compile_count(), 2);
    Explanation explanation = f.explain();
    ASSERT_EQ(explanation.recompiles.size(), 1u);
    EXPECT_THAT(explanation.recompiles[0], HasSubstr("autocast: expected none, got bfloat16"));
    EXPECT_THAT(explanation.entries[1].guards, Contains("autocast to bfloat16"));
  }
}

TEST(Autocast, scopes_inside_of_a_compiled_function) {
  Tensor w = randn({4, 4}), x = randn({3, 4});
  auto function = [&](Tensor a) {
    Tensor first, second;
    {
      Autocast guard;
      first = mm(a, w);
      {
        Autocast off(kBFloat16, false);
        second = mm(a, w);
      }
    }
    return std::tuple(first, second);
  };
  auto f = compile(function);
  auto check = [&] {
    auto [first, second] = function(x);
    auto [found_first, found_second] = f(x);
    EXPECT_LT(difference(found_first, first), 1e-2);
    EXPECT_LT(difference(found_second, second), 1e-6);
    EXPECT_EQ(found_first.dtype(), kBFloat16);
    EXPECT_EQ(found_second.dtype(), kFloat32);
  };
  check();
  check();
  Autocast outside;
  check();
  check();
}

}  // namespace
}  // namespace tenon
