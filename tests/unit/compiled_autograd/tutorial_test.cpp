// The programs of docs/autograd.md and docs/compiled_autograd.md.
#include "../capture/testing.h"

#include <tenon/autograd/checkpoint.h>
#include <tenon/autograd/gradcheck.h>
#include <tenon/autograd/vmap.h>

namespace tenon {
namespace {

using testing::same_bits;

TEST(AutogradTutorial, gradients) {
  Tensor w = tensor({1.0f, 2.0f}).set_requires_grad();
  (w * w).sum().backward();
  Tensor slope = autograd::grad({(w * w).sum()}, {w})[0];
  EXPECT_TRUE(same_bits(w.grad(), tensor({2.0f, 4.0f})));
  EXPECT_TRUE(same_bits(slope, w.grad()));
  Tensor first = autograd::grad({w.pow(3).sum()}, {w}, {}, false, true)[0];
  Tensor second = autograd::grad({first.sum()}, {w})[0];
  EXPECT_TRUE(same_bits(second, tensor({6.0f, 12.0f})));
}

TEST(AutogradTutorial, checkpoint) {
  Tensor x = ones({2, 3}), w = ones({3, 3}).set_requires_grad();
  int runs = 0;
  Tensor y = autograd::checkpoint(
      [&](const Tensor& input) {
        ++runs;
        return mm(input, w).relu();
      },
      x);
  y.sum().backward();
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(same_bits(w.grad(), full({3, 3}, 2.0f)));
}

TEST(AutogradTutorial, gradcheck) {
  Tensor w = randn({3}, kFloat64).set_requires_grad();
  EXPECT_TRUE(autograd::gradcheck([](const Tensor& at) { return at.sin() * at; }, {w}));
  EXPECT_TRUE(autograd::gradgradcheck([](const Tensor& at) { return at.sin() * at; }, {w}, {.fast_mode = true}));
}

TEST(AutogradTutorial, vmap) {
  auto distance = [](const Tensor& a, const Tensor& b) { return (a - b).pow(2).sum().sqrt(); };
  Tensor each = autograd::vmap(distance, {ones({5, 3}), zeros({5, 3})})[0];
  Tensor to_one = autograd::vmap(distance, {ones({5, 3}), zeros({3})}, {.in_dims = {0, std::nullopt}})[0];
  EXPECT_TRUE(each.allclose(full({5}, std::sqrt(3.0f))));
  EXPECT_TRUE(same_bits(each, to_one));
  auto slope = [](const Tensor& entry) {
    Tensor at = entry.detach().set_requires_grad();
    return autograd::grad({at.pow(3).sum()}, {at})[0];
  };
  Tensor slopes = autograd::vmap(slope, {ones({5, 3})})[0];
  EXPECT_TRUE(same_bits(slopes, full({5, 3}, 3.0f)));
}

TEST(CompiledAutogradTutorial, turning_it_on) {
  Tensor x = ones({2, 3});
  nn::Linear model(3, 3);
  compiled_autograd::reset();
  int64_t before = counter("compiled_autograd_captures").value();
  compiled_autograd::Enable on;
  model(x).sum().backward();
  model(x).sum().backward();
  EXPECT_EQ(counter("compiled_autograd_captures").value() - before, 1);
  EXPECT_TRUE(same_bits(model.parameters()[0].grad(), full({3, 3}, 4.0f)));
}

TEST(CompiledAutogradTutorial, hooks) {
  Tensor w = ones({3}).set_requires_grad();
  int calls = 0;
  autograd::register_hook(w, [&](const Tensor&) { ++calls; });
  autograd::register_hook(w, autograd::traceable([](const Tensor& gradient) { return gradient * 2; }));
  compiled_autograd::Enable on;
  for (int step = 0; step < 3; ++step) (w * 2).sum().backward();
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(same_bits(w.grad(), full({3}, 12.0f)));
}

TEST(AutogradTutorial, forward_mode) {
  Tensor x = tensor({0.0, 1.0}, kFloat64);
  forward_ad::DualLevel level;
  Tensor angle = forward_ad::make_dual(x, ones_like(x));
  auto [value, slope] = forward_ad::unpack_dual(angle.sin() * 2);
  EXPECT_TRUE(slope.allclose(2 * x.cos()));
}

}  // namespace
}  // namespace tenon
