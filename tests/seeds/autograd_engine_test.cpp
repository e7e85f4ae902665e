// The autograd suite: what a walk computes, what is asked of it, and what it refuses.
#include "autograd.h"

namespace tenon {
namespace {

using namespace testing;
using autograd::grad_fn;

// For the cases of all files.
INSTANTIATE_TEST_SUITE_P(Walks, TestAutograd, ::testing::Values(false, true), walk_name);

TEST_P(TestAutograd, accumulate_grad) {
  for (bool create_graph : {false, true}) {
    Tensor x = randn({5, 5}).set_requires_grad(), y = x + 2, go = ones({5, 5});
    y.backward(go, true);
    Tensor held = x.grad(), copy = held.clone();
    y.backward(go, false, create_graph);
    expect_near(held, create_graph ? copy : copy * 2);
    expect_filled(x.grad(), 2);
  }
}

TEST_P(TestAutograd, accumulate_grad_with_zero_numel_grad) {
  Tensor a = rand({4, 0}).set_requires_grad(), b = rand({4, 1}).set_requires_grad(), c = a + b;
  EXPECT_EQ(c.description(), a.description());
  c.sum().backward();
  EXPECT_TRUE(same_bits(b.grad(), zeros({4, 1})));
  EXPECT_TRUE(same_bits(a.grad(), zeros({4, 0})));
}

TEST_P(TestAutograd, hessian_vector) {
  Tensor x = randn({2, 2}).set_requires_grad(), y = randn({2, 2}).set_requires_grad();
  ForgetsGradients in_the_end({x, y});
  Tensor z = x.pow(2) + y * x + y.pow(2);
  z.backward(ones({2, 2}), false, true);
  Tensor gx = x.grad(), gy = y.grad();
  expect_near(gx, 2 * x + y);
  expect_near(gy, x + 2 * y);
  Tensor old_x = gx.detach().clone(), old_y = gy.detach().clone();
  (2 * gx + gy).backward(ones({2, 2}), false, true);
  expect_near(x.grad(), old_x + 5);
  expect_near(y.grad(), old_y + 4);
}

TEST_P(TestAutograd, grad) {
  Tensor x = randn({2, 2}).set_requires_grad(), y = randn({2, 2}).set_requires_grad();
  ForgetsGradients in_the_end({x, y});
  Tensor z = x.pow(2) + y * x + y.pow(2);
  z.backward(ones({2, 2}), false, true);
  Tensor gx = x.grad(), gy = y.grad(), was = gx.detach().clone();
  Tensor sum = 2 * gx + gy;
  expect_filled(autograd::grad({sum}, {x}, {ones({2, 2})}, false, true)[0], 5);
  expect_near(x.grad(), was);
  expect_near(x.grad(), 2 * x + y);
  Tensor out = x * y;
  EXPECT_THAT(error_of([&] { autograd::grad({out}, {x}, {ones({2})}); }),
              HasSubstr("Mismatch in shape: grad_output[0] has a shape of [2] and output[0] has a shape of [2, 2]."));
}

TEST_P(TestAutograd, grad_nonleaf) {
  Tensor first = randn({2, 2}).set_requires_grad(), x = first, y = randn({2, 2}).set_requires_grad(), go = ones({2, 2});
  auto f = [&](const Tensor& at) { return at.pow(2) + y * at + y.pow(2); };
  for (int round = 0; round < 5; ++round) {
    Tensor gx = autograd::grad({f(x)}, {x}, {go}, false, true)[0];
    expect_near(gx, 2 * x + y);
    EXPECT_FALSE(y.grad().defined());
    EXPECT_FALSE(first.grad().defined());
    x = x + 0.05 * gx;
  }
  EXPECT_GT(f(x).sum().item<double>(), f(first).sum().item<double>());
  x.backward(go);
  EXPECT_TRUE(y.grad().defined() && first.grad().defined());
}

TEST_P(TestAutograd, sharded_grad) {
  std::vector<Tensor> leaves, intermediates;
  for (int at = 0; at < 10; ++at) {
    leaves.push_back(zeros({5, 5}).set_requires_grad());
    intermediates.push_back(leaves[at] * at + leaves[at] * leaves[at]);
  }
  Tensor loss = zeros({});
  for (int at = 0; at < 10; ++at) loss = loss + (intermediates[at] * at).sum();
  std::vector<Tensor> gradients;
  for (size_t at = 0; at < 10; at += 2)
    for (const Tensor& each : autograd::grad(std::vector{loss}, std::vector{intermediates[at], intermediates[at + 1]}))
      gradients.push_back(each);
  autograd::backward(intermediates, gradients);
  for (int at = 0; at < 10; ++at) expect_near(leaves[at].grad() + 1, at * at * (1 + leaves[at].detach()) + 1);
}

TEST_P(TestAutograd, backward_badcalls) {
  EXPECT_THAT(error_of([] { ones({1}).backward(); }), HasSubstr("does not require grad"));
}

TEST_P(TestAutograd, grad_badcalls) {
  Tensor x = ones({1}), y = x.pow(2);
  EXPECT_THAT(error_of([&] { autograd::grad({x}, {y}); }), HasSubstr("does not require grad"));
  EXPECT_THAT(error_of([&] { autograd::grad({y}, {x}); }), HasSubstr("does not require grad"));
  x = ones({1}).set_requires_grad();
  y = x.pow(2);
  expect_filled(autograd::grad({y}, {x})[0], 2);
}

TEST_P(TestAutograd, grad_empty_inputs) {
  Tensor x = tensor({1.0f}).set_requires_grad(), y = 2 * x;
  EXPECT_THAT(error_of([&] { autograd::grad({y}, {}, {tensor({1.0f})}); }),
              HasSubstr("grad requires non-empty inputs."));
}

TEST_P(TestAutograd, grad_unreachable) {
  Tensor x = ones({1}).set_requires_grad(), y = ones({1}).set_requires_grad();
  Tensor z = x * 2, w = y * 2;
  Tensors found = autograd::grad({x * 2}, {x, y}, {}, false, false, true);
  expect_filled(found[0], 2);
  EXPECT_FALSE(found[1].defined());
  Tensor fresh = ones({1}).set_requires_grad();
  found = autograd::grad({x * 2}, {x, fresh}, {}, false, false, true);
  expect_filled(found[0], 2);
  EXPECT_FALSE(found[1].defined());
  EXPECT_THAT(error_of([&] { autograd::grad({x * 2}, {x, y}); }), HasSubstr("Set allow_unused=True"));
}

struct MustNotRun : Function<MustNotRun> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.clone(); }
  static Tensors backward(AutogradContext*, Tensors) { throw std::runtime_error("should not be called"); }
};

TEST_P(TestAutograd, grad_unreachable_discovery) {
  Tensor x = MustNotRun::apply(randn({}).set_requires_grad()), y = randn({}).set_requires_grad();
  EXPECT_FALSE(autograd::grad({x}, {y}, {}, false, false, true)[0].defined());
  x = MustNotRun::apply(randn({}).set_requires_grad());
  Tensor z = randn({}).set_requires_grad();
  Tensors found = autograd::grad({x + z}, {y, z}, {}, false, false, true);
  EXPECT_FALSE(found[0].defined());
  EXPECT_TRUE(found[1].defined());
  x = MustNotRun::apply(randn({}).set_requires_grad());
  y = randn({}).set_requires_grad();
  autograd::backward({x}, {}, false, false, {y});
  EXPECT_FALSE(y.grad().defined());
}

TEST_P(TestAutograd, backward) {
  Tensor v = randn({5, 5}).set_requires_grad(), g = randn({5, 5});
  v.backward(g);
  EXPECT_TRUE(same_bits(v.grad(), g));
  Tensor x = randn({5, 5}).set_requires_grad(), y = (rand({5, 5}) + 0.1).set_requires_grad();
  Tensor z = randn({5, 5}).set_requires_grad(), go = randn({5, 5});
  Tensor a = x + (y * z) + 4 * z.pow(2) * x / y;
  a.backward(go);
  Tensor xd = x.detach(), yd = y.detach(), zd = z.detach();
  expect_near(x.grad(), (4 * zd.pow(2) / yd + 1) * go, 1e-5);
  expect_near(y.grad(), (zd - 4 * xd * zd.pow(2) / yd.pow(2)) * go, 1e-5);
  expect_near(z.grad(), (8 * xd * zd / yd + yd) * go, 1e-5);
}

TEST_P(TestAutograd, multi_backward) {
  Tensor x = randn({5, 5}).set_requires_grad(), y = randn({5, 5}).set_requires_grad();
  Tensor q = randn({5, 5}).set_requires_grad(), a = randn({5, 5}).set_requires_grad();
  Tensor b = randn({5, 5}).set_requires_grad(), q2 = q * 2, z = x + y + q2, c = a * b + q2;
  Tensor gz = randn({5, 5}), gc = randn({5, 5});
  autograd::backward({z, c}, {gz, gc});
  expect_near(x.grad(), gz);
  expect_near(y.grad(), gz);
  expect_near(a.grad(), gc * b.detach());
  expect_near(b.grad(), gc * a.detach());
  expect_near(q.grad(), (gc + gz) * 2);
}

TEST_P(TestAutograd, multi_backward_no_grad) {
  Tensor x = randn({5, 5}).set_requires_grad(), y = randn({5, 5}), z = x + y, q = y * 2;
  EXPECT_NE(error_of([&] { autograd::backward({z, q}, {ones({5, 5}), ones({5, 5})}); }), "no error");
}

TEST_P(TestAutograd, dependent_backward) {
  Tensor x = randn({10}).set_requires_grad(), y = x.pow(2), z = y.pow(3), gy = randn({10}), gz = randn({10});
  autograd::backward({y, z}, {gy, gz});
  Tensor xd = x.detach();
  expect_near(x.grad(), 2 * xd * gy + 6 * xd.pow(5) * gz, 1e-5);
}

TEST_P(TestAutograd, duplicate_backward_root) {
  Tensor a = randn({5, 5}).set_requires_grad(), b = randn({5, 5}).set_requires_grad(), x = a * b, g = randn({5, 5});
  autograd::backward({x, x}, {g, g});
  expect_near(a.grad(), b.detach() * g * 2);
  expect_near(b.grad(), a.detach() * g * 2);
}

TEST_P(TestAutograd, backward_no_grad) {
  Tensor b = randn({5, 5}).set_requires_grad() + 2;
  EXPECT_NE(error_of([&] { autograd::backward({b}, {Tensor()}); }), "no error");
}

TEST_P(TestAutograd, backward_twice_without_saved_values) {
  Tensor b = rand({3}, kFloat64).set_requires_grad(), c = b + 1;
  c.backward(ones({3}, kFloat64));
  c.backward(ones({3}, kFloat64));
  expect_filled(b.grad(), 2);
}

TEST_P(TestAutograd, inplace) {
  auto version_error = HasSubstr("has been modified by an inplace operation");
  Tensor x = ones({5, 5}).set_requires_grad(), y = full({5, 5}, 4.0f).set_requires_grad();
  Tensor z = x * y, q = z + y, w = z * y;
  z.add_(2);
  q.backward(ones({5, 5}), true);
  EXPECT_THAT(error_of([&] { w.backward(ones({5, 5})); }), version_error);

  z = x * y;
  q = z * y;
  Tensor r = z + y;
  w = z.add_(y);
  w.backward(ones({5, 5}), true);
  r.backward(ones({5, 5}), true);
  EXPECT_THAT(error_of([&] { q.backward(ones({5, 5})); }), version_error);

  {
    NoGrad off;
    x.grad().zero_();
  }
  Tensor m = x / 2;
  z = m + y / 8;
  q = z * y;
  r = z + y;
  int64_t before = z.version();
  w = z.exp_();
  EXPECT_NE(z.version(), before);
  r.backward(ones({5, 5}), true);
  expect_filled(x.grad(), 0.5);
  w.backward(ones({5, 5}), true);
  expect_filled(x.grad(), (1 + std::exp(1.0)) / 2);
  EXPECT_THAT(error_of([&] { q.backward(ones({5, 5})); }), version_error);

  Tensor leaf = ones({5, 5}).set_requires_grad(), changed = leaf.clone();
  changed.add_(10);
  expect_filled(changed, 11);
  (changed * 1.0).backward(ones({5, 5}));
  expect_filled(leaf.grad(), 1);

  x = ones({5, 5}).set_requires_grad();
  y = x + 2;
  z = y * y;
  y.add_(1);
  EXPECT_THAT(error_of([&] { z.sum().backward(); }), version_error);
}

TEST_P(TestAutograd, free_deep_graph) {
  Tensor x = randn({1}).set_requires_grad();
  {
    Tensor y = x.clone();
    for (int at = 0; at < 150000; ++at) y = y + y * 0.000001;
  }
  SUCCEED();
}

TEST_P(TestAutograd, no_grad) {
  Tensor x = ones({5, 5}).set_requires_grad(), y = full({5, 5}, 4.0f);
  Tensor w;
  {
    NoGrad off;
    w = x + y;
    auto inner = [](const Tensor& a) {
      NoGrad again;
      return a * 2;
    };
    EXPECT_FALSE(inner(x).requires_grad());
    EXPECT_FALSE(autograd::grad_enabled());
  }
  EXPECT_FALSE(w.requires_grad());
  EXPECT_FALSE(grad_fn(w));
  EXPECT_NE(error_of([&] { w.backward(ones({5, 5})); }), "no error");
}

TEST_P(TestAutograd, set_grad_generator_functions_recursive) {
  std::function<void(int)> on, off;
  on = [&](int depth) {
    EnableGrad scope;
    EXPECT_TRUE(autograd::grad_enabled());
    if (depth > 0) off(depth - 1);
    EXPECT_TRUE(autograd::grad_enabled());
  };
  off = [&](int depth) {
    NoGrad scope;
    EXPECT_FALSE(autograd::grad_enabled());
    if (depth > 0) on(depth - 1);
    EXPECT_FALSE(autograd::grad_enabled());
  };
  for (bool mode : {true, false}) {
    autograd::SetGradMode scope(mode);
    on(10);
    off(10);
    EXPECT_EQ(autograd::grad_enabled(), mode);
  }
}

TEST_P(TestAutograd, requires_grad) {
  Tensor x = randn({5, 5}), y = randn({5, 5}), z = randn({5, 5}).set_requires_grad(), a = x + y, b = a + z;
  EXPECT_FALSE(a.requires_grad());
  EXPECT_TRUE(b.requires_grad());
  b.backward(ones({5, 5}));
  EXPECT_FALSE(x.grad().defined() || y.grad().defined() || a.grad().defined());
  expect_filled(z.grad(), 1);
}

TEST_P(TestAutograd, requires_grad_) {
  Tensor x = randn({5, 5}), y = randn({5, 5}).set_requires_grad();
  EXPECT_TRUE(x.set_requires_grad().is(x));
  EXPECT_TRUE(x.requires_grad());
  EXPECT_TRUE(y.set_requires_grad().requires_grad());
  Tensor z = x * y;
  EXPECT_NE(error_of([&] { z.set_requires_grad(false); }), "no error");
  EXPECT_TRUE(z.set_requires_grad().requires_grad());
  EXPECT_FALSE(x.set_requires_grad(false).requires_grad());
  EXPECT_FALSE(y.set_requires_grad(false).requires_grad());
}

TEST_P(TestAutograd, requires_grad_inplace) {
  Tensor a = randn({5, 5}), b = randn({5, 5}).set_requires_grad();
  a.add_(b);
  EXPECT_TRUE(a.requires_grad());
  a = randn({5, 5}) + 0;
  a.add_(b);
  EXPECT_TRUE(a.requires_grad());
}

TEST_P(TestAutograd, no_requires_grad_inplace) {
  Tensor a = randn({2, 3});
  a.add_(5);
  a.set_requires_grad();
  a.sum().backward();
  expect_filled(a.grad(), 1);
  a = randn({2, 3});
  Tensor b = a.view({-1});
  b.add_(5);
  a.set_requires_grad();
  a.sum().backward();
  expect_filled(a.grad(), 1);
  a = randn({2, 3});
  b = a.view({-1});
  a.set_requires_grad();
  EXPECT_NE(error_of([&] { a.add_(5); }), "no error");
  EXPECT_NE(error_of([&] { b.add_(5); }), "no error");
}

TEST_P(TestAutograd, detach_then_inplace_raises_in_autograd) {
  Tensor x = randn({}).set_requires_grad(), y = x.pow(2), z = x.detach();
  z.zero_();
  EXPECT_THAT(error_of([&] { y.backward(); }), HasSubstr("has been modified by an inplace operation"));
}

TEST_P(TestAutograd, no_grad_modifies_version) {
  Tensor x = randn({5}).set_requires_grad(), y = randn({5}).set_requires_grad(), z = (x * y).sum();
  {
    NoGrad off;
    x.mul_(2);
  }
  EXPECT_THAT(error_of([&] { z.backward(); }), HasSubstr("modified by an inplace operation"));
}

TEST_P(TestAutograd, shape) {
  Tensor x = randn({3, 4});
  EXPECT_EQ(x.sizes().size(), 2u);
  EXPECT_EQ(x.sizes()[0], 3);
  EXPECT_EQ(x.sizes()[1], 4);
}

TEST_P(TestAutograd, backward_copy) {
  Tensor x = zeros({5, 5}).set_requires_grad(), y = zeros({5, 5}).set_requires_grad();
  Tensor a = x + 2, b = y + 2, c = x + 2, added = a + b + c;
  for (int at = 0; at < 4; ++at) {
    a = a * 2;
    b = b * 2;
    c = c * 2;
  }
  (added + (a + b + c)).backward(ones({5, 5}));
  expect_filled(x.grad(), 34);
  expect_filled(y.grad(), 17);
}

TEST_P(TestAutograd, no_unnecessary_save) {
  Tensor mu = ones({1}).set_requires_grad(), x = empty({1}), loss = zeros({});
  for (int at = 0; at < 3; ++at) {
    x = x.detach();
    x.copy_(mu + at);
    Tensor factor = tensor({static_cast<float>(at)});
    loss = loss + (x * factor).sum();
  }
  loss.backward();
  expect_filled(mu.grad(), 3);
}

TEST_P(TestAutograd, leaf_assignment) {
  Tensor x = randn({5, 5}), y = randn({5}).set_requires_grad(), z = randn({5}).set_requires_grad();
  x.select(0, 0).copy_(y);
  x.select(0, 1).copy_(2 * z);
  EXPECT_TRUE(x.requires_grad());
  EXPECT_TRUE(grad_fn(x));
  x.sum().backward();
  expect_filled(y.grad(), 1);
  expect_filled(z.grad(), 2);
}

TEST_P(TestAutograd, no_grad_assignment) {
  Tensor x = randn({5, 5}).set_requires_grad(), y = randn({5});
  {
    NoGrad off;
    x.select(0, 0).copy_(y);
  }
  EXPECT_TRUE(x.requires_grad());
  EXPECT_FALSE(grad_fn(x));
}

TEST_P(TestAutograd, select_expanded_v) {
  Tensor v = rand({10}).expand({10, 10}), a = rand({10, 10, 10}).set_requires_grad();
  Tensor found = autograd::grad({a.select(0, 0)}, {a}, {v})[0], expected = zeros({10, 10, 10});
  expected.select(0, 0).copy_(v);
  EXPECT_TRUE(same_bits(found, expected));
}

TEST_P(TestAutograd, pow_zero_tensor_gradient) {
  for (const SymInts& sizes : {SymInts{10}, SymInts{10, 10}}) {
    Tensor input = zeros(sizes).set_requires_grad();
    input.pow(zeros(sizes)).sum().backward();
    EXPECT_EQ(input.grad().abs().sum().item<double>(), 0);
    input = zeros(sizes).set_requires_grad();
    input.pow(0).sum().backward();
    EXPECT_EQ(input.grad().abs().sum().item<double>(), 0);
  }
}

TEST_P(TestAutograd, set_grad_enabled) {
  Tensor x = tensor({1.0f}).set_requires_grad();
  {
    autograd::SetGradMode off(false);
    EXPECT_FALSE((x * 2).requires_grad());
  }
  {
    autograd::SetGradMode on(true);
    EXPECT_TRUE((x * 2).requires_grad());
  }
  autograd::SetGradMode off(false);
  autograd::set_grad_enabled(true);
  EXPECT_TRUE((x * 2).requires_grad());
}

}  // namespace
}  // namespace tenon
