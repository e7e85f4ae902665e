#include "unit/autograd/helpers.h"

namespace tenon::testing {
namespace {

TEST(Engine, DiamondsAddUp) {
  Tensor x = leaf({3.0});
  Tensor a = x * 2;
  Tensor b = a * a, c = a + 1;
  (b * c).backward();  // 4x²(2x + 1): 24x² + 8x
  expect_near(x.grad(), {24 * 9 + 24});
}

TEST(Engine, GradientsAccumulateInTheLeaf) {
  Tensor x = leaf({1.0, 2.0});
  (x * 3).sum().backward();
  Tensor kept = x.grad();
  (x * 4).sum().backward();
  expect_near(x.grad(), {7, 7});
  EXPECT_TRUE(kept.is(x.grad())) << "added in place";
  x.set_grad(Tensor());
  EXPECT_FALSE(x.grad().defined());
}

TEST(Engine, KeptGradientsAreTheLeafsOwn) {
  Tensor a = leaf({1.0, 2.0}), b = leaf({3.0, 4.0});
  (a + b).backward(real({1, 1}));  // both formulas give the same tensor
  EXPECT_FALSE(a.grad().is_same_storage(b.grad()));
  Tensor c = leaf({1.0, 2.0, 3.0});
  c.sum().backward();  // an expanded gradient
  EXPECT_TRUE(c.grad().is_contiguous());
  expect_near(c.grad(), {1, 1, 1});
  Tensor seed = real({5, 6});
  a.backward(seed);
  Tensor d = leaf({1.0, 2.0});
  d.backward(seed);
  EXPECT_FALSE(d.grad().is_same_storage(seed));
}

TEST(Engine, RootsWithGradients) {
  Tensor x = leaf({1.0, 2.0});
  Tensor y = x * x;
  y.backward(real({10, 100}));
  expect_near(x.grad(), {20, 400});
}

TEST(Engine, SeveralRootsOneInsideTheOther) {
  Tensor x = leaf({2.0});
  Tensor a = x * x, b = a * 3;
  autograd::backward({a, b});
  expect_near(x.grad(), {4 + 12});
}

TEST(Engine, SelectedInputs) {
  Tensor x = leaf({2.0}), w = leaf({5.0});
  autograd::backward({x * w}, {}, false, false, {w});
  EXPECT_FALSE(x.grad().defined());
  expect_near(w.grad(), {2});
}

TEST(Engine, GradOfInnerTensors) {
  Tensor x = leaf({2.0});
  Tensor a = x * x, b = a * a;
  std::vector<Tensor> got = autograd::grad({b}, {a, x, b});
  expect_near(got[0], {8});
  expect_near(got[1], {32});
  expect_near(got[2], {1});
  EXPECT_FALSE(x.grad().defined());
}

TEST(Engine, UnusedInputs) {
  Tensor x = leaf({2.0}), other = leaf({1.0, 1.0});
  EXPECT_EQ(error_of([&] { autograd::grad({x * 2}, {x, other}); }),
            "[grad] input 1 (float64[2]) seems to not have been used in the graph of the outputs. Set "
            "allow_unused=True if that is meant");
  std::vector<Tensor> got = autograd::grad({x * 2}, {x, other}, {}, false, false, true);
  expect_near(got[0], {2});
  EXPECT_FALSE(got[1].defined());
}

TEST(Engine, TheGraphIsFreed) {
  Tensor x = leaf({2.0});
  Tensor y = x.sin();
  y.backward({}, true);
  y.backward();
  expect_near(x.grad(), {2 * std::cos(2.0)});
  EXPECT_EQ(error_of([&] { y.backward(); }),
            "[backward] the graph was freed: SinBackward0 cannot run a second time (or directly access saved tensors "
            "after they have "
            "already been freed). Specify retain_graph=True in the first backward");
  expect_near(x.grad(), {2 * std::cos(2.0)});
}

TEST(Engine, Errors) {
  Tensor x = leaf({1.0, 2.0, 3.0});
  EXPECT_EQ(error_of([&] { (x * 2).backward(); }),
            "[backward] grad can be implicitly created only for scalar outputs, got float64[3]");
  EXPECT_EQ(error_of([&] { real({1}).backward(); }), "[backward] root 0 does not require grad: float64[1]");
  EXPECT_EQ(error_of([&] { (x * 2).backward(real({1, 2})); }),
            "[backward] Mismatch in shape: grad_output[0] has a shape of [2] and output[0] has a shape of [3].");
  EXPECT_EQ(error_of([&] { autograd::backward({x * 2}, {x, x}); }),
            "[backward] expected 1 gradients, one per root, got 2");
  EXPECT_EQ(error_of([&] { autograd::grad({x.sum()}, {real({1})}); }),
            "[grad] input 0 does not require grad: float64[1]");
  EXPECT_EQ(error_of([&] { tensor({1, 2}).set_requires_grad(); }),
            "[set_requires_grad] only floating point tensors can require grad, got int64[2]");
  EXPECT_EQ(error_of([&] { (x * 2).set_requires_grad(false); }),
            "[set_requires_grad] float64[3] is the result of MulBackward1 and requires grad: use detach() for one that "
            "does not");
  EXPECT_EQ(error_of([&] { x.set_grad(real({1})); }),
            "[set_grad] expected a gradient float64[3] on cpu, got float64[1] on cpu");
  EXPECT_EQ(error_of([&] { Tensor().backward(); }), "[backward] expected a tensor, got an undefined one");
}

TEST(Engine, AnErrorLeavesThingsUsable) {
  Tensor x = leaf({2.0});
  Tensor y = x.sin();
  auto handle = autograd::register_hook(y, [](const Tensor&) -> Tensor { throw std::runtime_error("stop"); });
  EXPECT_THROW(y.backward({}, true), std::runtime_error);
  EXPECT_TRUE(autograd::grad_enabled());
  handle.remove();
  y.backward();
  expect_near(x.grad(), {std::cos(2.0)});
}

TEST(Engine, NoGradRecordsNothing) {
  Tensor x = leaf({2.0});
  {
    NoGrad off;
    EXPECT_FALSE((x * 2).requires_grad());
    EnableGrad on;
    EXPECT_TRUE((x * 2).requires_grad());
  }
  EXPECT_TRUE((x * 2).requires_grad());
}

TEST(Engine, DeepChains) {
  // Views: no kernels to launch, and a node each.
  Tensor x = leaf({1.0, 2.0});
  constexpr int kDepth = 100'000;
  {
    Tensor y = x;
    for (int i = 0; i < kDepth; ++i) y = alias(y);
    y.sum().backward();
    expect_near(x.grad(), {1, 1});
    Tensor dropped = x;
    for (int i = 0; i < kDepth; ++i) dropped = alias(dropped);
  }
  // Saved tensors on the way down.
  Tensor z = x;
  for (int i = 0; i < 20'000; ++i) z = z.sin();
  z = Tensor();
}

TEST(Engine, Hooks) {
  Tensor x = leaf({1.0, 2.0});
  Tensor y = x * 3;
  std::vector<double> seen;
  autograd::register_hook(y, [&](const Tensor& g) { seen = values(g); });
  auto doubling = autograd::register_hook(y, [](const Tensor& g) { return g * 2; });
  autograd::register_hook(x, [](const Tensor& g) { return g + 1; });
  y.backward(real({1, 10}), true);
  EXPECT_EQ(seen, (std::vector<double>{1, 10}));
  expect_near(x.grad(), {7, 61});
  doubling.remove();
  x.set_grad(Tensor());
  y.backward(real({1, 10}));
  expect_near(x.grad(), {4, 31});
  EXPECT_EQ(error_of([] { autograd::register_hook(real({1}), [](const Tensor&) {}); }),
            "[register_hook] expected a tensor that requires grad, got float64[1]");
}

TEST(Engine, NodeHooks) {
  Tensor x = leaf({1.0});
  Tensor y = x * 3;
  autograd::grad_fn(y)->add_pre_hook([](std::vector<Tensor>& g) { g[0] = g[0] * 10; });
  autograd::grad_fn(y)->add_post_hook(
      [](std::vector<Tensor>& leaving, const std::vector<Tensor>& arrived) { leaving[0] = leaving[0] + arrived[0]; });
  y.backward();
  expect_near(x.grad(), {40});
}

TEST(Engine, RetainedGradients) {
  Tensor x = leaf({1.0, 2.0});
  Tensor y = x * 3;
  y.retain_grad();
  Tensor z = y * y;
  z.sum().backward();
  expect_near(y.grad(), {6, 12});
  expect_near(x.grad(), {18, 36});
}

TEST(Engine, BackwardInsideAHook) {
  Tensor x = leaf({2.0}), w = leaf({3.0});
  Tensor y = x * x;
  autograd::register_hook(y, [&](const Tensor&) {
    EnableGrad on;
    (w * w).backward();
  });
  y.backward();
  expect_near(w.grad(), {6});
  expect_near(x.grad(), {4});
}

TEST(Engine, GradientsOfTheWrongShapeNameTheNode) {
  Tensor x = leaf({1.0, 2.0, 3.0});
  Tensor y = x.sin();
  autograd::grad_fn(y)->add_post_hook(
      [](std::vector<Tensor>& leaving, const std::vector<Tensor>&) { leaving[0] = real({1, 2}); });
  EXPECT_EQ(error_of([&] { y.sum().backward(); }),
            "[backward] SinBackward0 gave a gradient float64[2] for its input 0, expected shape float64[3]");
  Tensor z = x.sin();
  autograd::grad_fn(z)->add_post_hook(
      [](std::vector<Tensor>& leaving, const std::vector<Tensor>&) { leaving[0] = real({1, 1, 1, 2, 2, 2}, {2, 3}); });
  z.sum().backward();
  expect_near(x.grad(), {3, 3, 3});
}

TEST(Engine, TheInterceptorSeesTheWalk) {
  Tensor x = leaf({2.0});
  Tensor y = x * x;
  size_t roots = 0;
  {
    autograd::InterceptWalks asked([&](const autograd::Walk& walk) -> std::optional<std::vector<Tensor>> {
      roots = walk.roots.size();
      if (!walk.captures.empty()) return std::vector{real({42})};
      return std::nullopt;
    });
    expect_near(autograd::grad({y}, {x})[0], {42});
    y.backward();
  }
  EXPECT_EQ(roots, 1u);
  expect_near(x.grad(), {4});
}

TEST(Engine, CreateGraphMakesGradientsDifferentiable) {
  Tensor x = leaf({3.0});
  (x * x).backward({}, false, true);
  EXPECT_TRUE(x.grad().requires_grad());
  Tensor g = x.grad();
  x.set_grad(Tensor());
  (g * g).backward();  // (2x)²: 8x
  expect_near(x.grad(), {24});
}

// A leaf that is dense has a gradient that lies as it does, whoever made the gradient; any other has a contiguous one.
TEST(Engine, gradients_lie_as_their_leaves) {
  for (bool create_graph : {false, true}) {
    Tensor turned = ones({5, 3}).t().set_requires_grad(), part = ones({4, 6}).slice(1, 0, 3).set_requires_grad();
    for (const auto& f : {std::function<Tensor(Tensor)>([](Tensor x) { return x.sum(); }),
                          std::function<Tensor(Tensor)>([](Tensor x) { return (x * ones(x.sizes())).sum(); }),
                          std::function<Tensor(Tensor)>([](Tensor x) { return (x.t() * ones(x.t().sizes())).sum(); })})
      for (const Tensor& leaf : {turned, part}) {
        leaf.set_grad(Tensor());
        f(leaf).backward(Tensor(), false, create_graph);
        Tensor expected = leaf.is(turned) ? ones({5, 3}).t() : ones({4, 3});
        EXPECT_EQ(leaf.grad().strides(), expected.strides()) << create_graph;
        EXPECT_TRUE(leaf.grad().detach().equal(expected));
        leaf.set_grad(Tensor());
      }
  }
}

}  // namespace
}  // namespace tenon::testing
