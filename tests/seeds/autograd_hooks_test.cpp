// The autograd suite: hooks of tensors and of nodes, and gradients that are kept.
#include "autograd.h"

namespace tenon {
namespace {

using namespace testing;
using autograd::grad_fn;
using autograd::gradient_edge;
using autograd::register_hook;
using autograd::register_post_accumulate_grad_hook;
using autograd::register_posthook;
using autograd::register_prehook;

TEST_P(TestAutograd, post_accumulate_grad_hook_on_non_leaf) {
  Tensor leaf = rand({3}).set_requires_grad(), other = 2 * leaf;
  EXPECT_THAT(error_of([&] { register_post_accumulate_grad_hook(other, [](const Tensor&) {}); }),
              HasSubstr("post accumulate grad hooks cannot be registered on non-leaf tensors"));
}

void step_and_zero(const Tensor& tensor) {
  NoGrad off;
  tensor.sub_(tensor.grad());
}

TEST_P(TestAutograd, post_accumulate_grad_hook_multiple_hooks) {
  Tensor tensor = rand({3}).set_requires_grad(), reference = tensor.detach().clone();
  register_post_accumulate_grad_hook(tensor, step_and_zero);
  register_post_accumulate_grad_hook(tensor, [](const Tensor& changed) {
    NoGrad off;
    changed.mul_(4);
  });
  tensor.sum().backward();
  expect_near(tensor, 4 * (reference - 1));
}

TEST_P(TestAutograd, post_accumulate_grad_hook_multiple_tensors) {
  Tensor a = rand({3}).set_requires_grad(), b = rand({5}).set_requires_grad();
  Tensor was_a = a.detach().clone(), was_b = b.detach().clone();
  for (const Tensor& each : {a, b}) register_post_accumulate_grad_hook(each, step_and_zero);
  a.sum().backward();
  b.sum().backward();
  expect_near(a, was_a - 1);
  expect_near(b, was_b - 1);
}

TEST_P(TestAutograd, post_accumulate_grad_hook_gets_cleaned_up) {
  WeakRef<TensorImpl> kept;
  Tensor leaf = rand({3}).set_requires_grad();
  {
    Tensor captured = rand({3});
    kept = WeakRef<TensorImpl>(captured.ref());
    register_post_accumulate_grad_hook(leaf, [captured](const Tensor& changed) {
      NoGrad off;
      changed.sub_(captured);
    });
  }
  leaf.sum().backward();
  EXPECT_FALSE(kept.expired());
  leaf = Tensor();
  EXPECT_TRUE(kept.expired());
}

TEST_P(TestAutograd, post_accumulate_grad_hook_ordering) {
  Tensor tensor = rand({3}).set_requires_grad();
  register_hook(tensor, [](const Tensor& gradient) { return gradient - 2; });
  Ref<autograd::Node> end = gradient_edge(tensor).node;
  register_prehook(end, [](Tensors& gradients) { gradients[0] = gradients[0] / 5; });
  register_post_accumulate_grad_hook(tensor, [](const Tensor& changed) { changed.grad().add_(0.5); });
  register_posthook(end, [&tensor](Tensors& leaving, const Tensors& arrived) {
    EXPECT_TRUE(leaving.empty());
    EXPECT_EQ(arrived.size(), 1u);
    tensor.set_grad(10 * tensor.grad());
  });
  tensor.sum().backward();
  expect_near(tensor.grad(), full({3}, 3.0f));
}

struct CallableHook {
  int* calls;
  Tensor operator()(const Tensor& gradient) {
    ++*calls;
    return gradient;
  }
};

TEST_P(TestAutograd, hook_with_no_name) {
  int calls = 0;
  Tensor x = rand({3}).set_requires_grad(), y = x.clone();
  register_hook(y, CallableHook{&calls});
  y.sum().backward();
  EXPECT_EQ(calls, 1);
}

TEST_P(TestAutograd, retains_grad_can_always_observe_tensor_prehook) {
  auto twice = [](const Tensor& gradient) { return gradient * 2; };
  Tensor a = tensor(1.0f).set_requires_grad(), b = a.clone();
  register_hook(b, twice);
  b.retain_grad();
  register_hook(b, twice);
  b.clone().backward();
  expect_filled(b.grad(), 4);

  a = tensor(1.0f).set_requires_grad();
  b = a.clone();
  b.retain_grad();
  register_hook(b, twice);
  b.clone().backward();
  expect_filled(b.grad(), 2);
}

TEST_P(TestAutograd, accumulate_grad_posthooks_can_observe_tensor_prehook) {
  Tensor a = tensor(1.0f).set_requires_grad();
  register_hook(a, [](const Tensor& gradient) { return gradient * 2; });
  Tensor b = a.clone();
  Ref<autograd::Node> end = gradient_edge(a).node;
  int calls = 0;
  register_prehook(end, [&](Tensors& gradients) {
    ++calls;
    EXPECT_EQ(gradients.size(), 1u);
    expect_filled(gradients[0], 2);
  });
  register_posthook(end, [&](Tensors& leaving, const Tensors& arrived) {
    ++calls;
    EXPECT_TRUE(leaving.empty());
    EXPECT_EQ(arrived.size(), 1u);
    expect_filled(arrived[0], 2);
  });
  b.backward();
  EXPECT_EQ(calls, 2);
}

TEST_P(TestAutograd, accumulate_grad_posthooks_should_not_execute) {
  Tensor a = tensor(1.0f).set_requires_grad(), b = tensor(2.0f).set_requires_grad();
  register_hook(a, [](const Tensor&) { throw std::runtime_error("tensor hook"); });
  Ref<autograd::Node> end = gradient_edge(a).node;
  register_posthook(end, [](Tensors&, const Tensors&) { throw std::runtime_error("post hook"); });
  Tensor out = a + b + a.clone();
  autograd::backward({out.sum()}, {}, false, false, {b});
  expect_filled(b.grad(), 1);
}

TEST_P(TestAutograd, hooks) {
  Tensor x = ones({5, 5}).set_requires_grad(), y = full({5, 5}, 4.0f).set_requires_grad();
  int counter = 0;
  auto bump = [&](int by) { return [&counter, by](const Tensor&) { counter += by; }; };
  Tensor z = x * x + x * 2 + x * y + y;
  register_hook(x, [](const Tensor&) {});
  autograd::HookHandle first = register_hook(z, bump(1));
  z.backward(ones({5, 5}), true);
  EXPECT_EQ(counter, 1);
  autograd::HookHandle second = register_hook(z, bump(2));
  z.backward(ones({5, 5}), true);
  EXPECT_EQ(counter, 4);
  second.remove();
  z.backward(ones({5, 5}), true);
  EXPECT_EQ(counter, 5);
  y.set_grad(zeros({5, 5}));
  register_hook(z, [](const Tensor& gradient) { return gradient * 2; });
  z.backward(ones({5, 5}), true);
  expect_near(y.grad(), (x + 1) * 2);
  y.set_grad(zeros({5, 5}));
  register_hook(y, [](const Tensor& gradient) { return gradient * 2; });
  z.backward(ones({5, 5}));
  expect_near(y.grad(), (x + 1) * 4);
}

TEST_P(TestAutograd, retain_grad) {
  Tensor input = rand({1, 3}).set_requires_grad(), h1 = input * 3, out = (h1 * h1).sum();
  h1.retain_grad();
  h1.retain_grad();
  out.backward(std::nullopt, true);
  expect_near(h1.grad(), h1 * 2);
  out.backward(std::nullopt, true);
  expect_near(h1.grad(), h1 * 4);
  {
    NoGrad off;
    input.grad().zero_();
  }
  input.retain_grad();
  input.retain_grad();
  out.backward();
  expect_near(input.grad(), input * 18);
}

TEST_P(TestAutograd, retain_grad_cycle) {
  Tensor x = ones({5, 5}).set_requires_grad();
  WeakRef<TensorImpl> weak;
  Tensor z;
  {
    Tensor y = x * 2;
    y.retain_grad();
    weak = WeakRef<TensorImpl>(y.ref());
    z = y / 2;
  }
  EXPECT_TRUE(weak.expired());
  z.sum().backward();
  expect_filled(x.grad(), 1);
}

TEST_P(TestAutograd, tensor_hooks_inplace) {
  int first = 0, second = 0;
  Tensor a = ones({3}).set_requires_grad(), b = a.clone();
  register_hook(b, [&](const Tensor& gradient) {
    ++first;
    expect_filled(gradient, 4);
    return gradient * 2;
  });
  b.mul_(2);
  register_hook(b, [&](const Tensor& gradient) {
    ++second;
    expect_filled(gradient, 1);
    return gradient * 2;
  });
  b.sum().backward();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
  expect_filled(a.grad(), 8);

  int once = 0;
  a = ones({3}).set_requires_grad();
  b = a.clone();
  register_hook(b, [&](const Tensor& gradient) {
    ++once;
    expect_filled(gradient, 4);
    return gradient * 2;
  });
  b.mul_(2);
  b.mul_(2);
  b.sum().backward();
  EXPECT_EQ(once, 1);
  expect_filled(a.grad(), 8);
}

TEST_P(TestAutograd, reentrant_with_non_leaf_variable_hook) {
  Tensor param = rand({10}).set_requires_grad(), tmp = param * param;
  autograd::HookHandle handle(nullptr, 0);
  handle = register_hook(tmp, [&](const Tensor& gradient) {
    handle.remove();
    EnableGrad on;
    Tensor g = gradient.detach().clone().set_requires_grad();
    (g * 2 + 5).sum().backward();
    return (g.grad() + gradient).detach();
  });
  tmp.sum().backward();
  expect_near(param.grad(), param * 6);
}

TEST_P(TestAutograd, will_engine_execute_node) {
  int called = 0;
  Tensor a = tensor(1.0f).set_requires_grad(), b = tensor(2.0f).set_requires_grad(),
         c = tensor(3.0f).set_requires_grad();
  Tensor ab = a * b, bc = b * c, out = ab * bc;
  Ref<autograd::Node> end_a = gradient_edge(a).node, end_b = gradient_edge(b).node, end_c = gradient_edge(c).node;
  std::vector<Ref<autograd::Node>> runs, rests;
  register_hook(ab, [&](const Tensor&) {
    ++called;
    for (const Ref<autograd::Node>& node : runs) EXPECT_TRUE(autograd::will_execute(*node)) << node->name();
    for (const Ref<autograd::Node>& node : rests) EXPECT_FALSE(autograd::will_execute(*node)) << node->name();
  });
  runs = {end_a, end_b, grad_fn(ab), grad_fn(bc)};
  rests = {end_c};
  autograd::backward({out}, {}, true, false, {a, b});
  runs = {end_a, end_b, end_c, grad_fn(ab), grad_fn(bc)};
  rests = {};
  out.backward(std::nullopt, true);
  EXPECT_EQ(called, 2);
  Tensor d = a * 2, e = d * 3;
  register_hook(d, [&](const Tensor&) { (void)autograd::will_execute(*end_a); });
  EXPECT_THAT(error_of([&] { autograd::grad({e}, {a}); }), HasSubstr("are currently running autograd.grad()"));
  EXPECT_THAT(error_of([&] { (void)autograd::will_execute(*end_a); }), HasSubstr("during the backward pass"));
}

TEST_P(TestAutograd, callback_adds_callback) {
  struct Queues : Function<Queues> {
    static Tensor forward(AutogradContext*, const Tensor& x) { return x; }
    static Tensors backward(AutogradContext*, Tensors gradients) {
      autograd::queue_callback([] {
        ++called();
        autograd::queue_callback([] { ++called(); });
      });
      return gradients;
    }
    static int& called() {
      static int count = 0;
      return count;
    }
  };
  Queues::called() = 0;
  Tensor a = rand({3, 3}).set_requires_grad();
  Queues::apply(a).sum().backward();
  EXPECT_EQ(Queues::called(), 2);
}

TEST_P(TestAutograd, full_backward_hook_double_backward) {
  Tensor x = rand({1}).set_requires_grad(), y = rand_like(x);
  nn::MSELoss loss;
  int calls = 0;
  loss.register_full_backward_hook(
      [&](const nn::Module&, const std::vector<Tensor>&, const std::vector<Tensor>&) -> std::vector<Tensor> {
        ++calls;
        return {};
      });
  Tensor gradient = autograd::grad({loss(x, y)}, {x}, {}, true, true)[0];
  EXPECT_EQ(calls, 1);
  expect_filled(autograd::grad({gradient}, {x})[0], 2);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace tenon
