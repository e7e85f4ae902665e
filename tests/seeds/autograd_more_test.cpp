// The autograd suite: hooks that are removed, walks inside walks, deep graphs, checkpoints that go wrong.
#include "autograd.h"

#include <tenon/autograd/checkpoint.h>

namespace tenon {
namespace {

using namespace testing;
using autograd::grad_fn;
using autograd::register_posthook;
using autograd::register_prehook;
using autograd::SavedTensorHooks;
using autograd::SavedTensorHooksGuard;

struct Doubles : Function<Doubles> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 2; }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0] * 2}; }
};

Tensor doubled(const Tensor& x, bool custom) { return custom ? Doubles::apply(x) : x * 2; }

TEST_P(TestAutograd, grad_fn_prehooks) {
  for (bool custom : {true, false}) {
    Tensor a = tensor({1.0f}).set_requires_grad(), b = doubled(a, custom);
    int posts = 0, pres = 0;
    auto post = [&](Tensors& leaving, const Tensors& arrived) {
      ++posts;
      expect_filled(arrived[0], 8);
      expect_filled(leaving[0], 16);
    };
    auto doubling = [&](Tensors& gradients) {
      ++pres;
      gradients[0] = gradients[0] * 2;
    };
    auto identity = [](Tensors&) {};
    register_posthook(grad_fn(b), post);
    register_prehook(grad_fn(b), doubling);
    register_prehook(grad_fn(b), identity);
    register_prehook(grad_fn(b), doubling);
    register_prehook(grad_fn(b), identity);
    register_prehook(grad_fn(b), doubling);
    register_posthook(grad_fn(b), post);
    b.sum().backward();
    EXPECT_EQ(posts, 2);
    EXPECT_EQ(pres, 3);
    Tensor c = tensor({1.0f}).set_requires_grad(), d = doubled(c, custom);
    register_prehook(grad_fn(d), [&](Tensors&) { ++pres; });
    d.sum().backward();
    EXPECT_EQ(pres, 4);
    expect_filled(c.grad(), 2);
  }
}

TEST_P(TestAutograd, grad_fn_prehooks_remove_hooks) {
  for (bool custom : {true, false}) {
    // One of two.
    Tensor a = rand({3, 3}).set_requires_grad(), b = doubled(a, custom);
    int calls = 0;
    auto hook = [&](Tensors&) { ++calls; };
    autograd::NodeHookHandle first = register_prehook(grad_fn(b), hook);
    register_prehook(grad_fn(b), hook);
    first.remove();
    b.sum().backward();
    EXPECT_EQ(calls, 1);
    expect_filled(a.grad(), 2);
    // Removed by one before it, in the walk: it still runs this time.
    a = rand({3, 3}).set_requires_grad();
    b = doubled(a, custom);
    calls = 0;
    std::optional<autograd::NodeHookHandle> later;
    register_prehook(grad_fn(b), [&](Tensors&) { later->remove(); });
    later = register_prehook(grad_fn(b), hook);
    b.sum().backward();
    EXPECT_EQ(calls, 1);
    later->remove();
    expect_filled(a.grad(), 2);
  }
}

struct PassesBoth : Function<PassesBoth> {
  static Tensors forward(AutogradContext* ctx, const Tensor& x, const Tensor& y) {
    EXPECT_TRUE(ctx->needs_input_grad(0));
    EXPECT_FALSE(ctx->needs_input_grad(1));
    return {x, y};
  }
  static Tensors backward(AutogradContext*, Tensors gradients) { return gradients; }
};

TEST_P(TestAutograd, hook_none) {
  int calls = 0;
  auto hook = [&](const Tensor& gradient) {
    ++calls;
    EXPECT_TRUE(gradient.defined());
  };
  Tensor x = randn({5, 5}).set_requires_grad(), y = randn({5, 5});
  Tensors out = PassesBoth::apply(x, y);
  autograd::register_hook(out[0], hook);
  autograd::register_hook(out[1], hook);
  (out[0] + out[1]).sum().backward();
  EXPECT_GE(calls, 1);
}

// Callbacks that are queued in a walk (depth 0) and in one that it starts (depth 1) run once, when all is over.
struct Callbacks {
  static inline int outer = 0, inner = 0;
  static inline bool at_0 = false, at_1 = false;
};
struct InnerQueues : Function<InnerQueues> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x; }
  static Tensors backward(AutogradContext*, Tensors gradients) {
    if (Callbacks::at_1) autograd::queue_callback([] { ++Callbacks::inner; });
    return gradients;
  }
};
struct OuterQueues : Function<OuterQueues> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    EnableGrad on;
    Tensor inner = x.detach().set_requires_grad();
    ctx->saved_data["graph"] = AnyValue(InnerQueues::apply(inner * inner).sum());
    return x * 1.0;
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    if (Callbacks::at_0) autograd::queue_callback([] { ++Callbacks::outer; });
    EnableGrad on;
    ctx->saved_data["graph"].tensor().backward();
    EXPECT_EQ(Callbacks::inner, 0);
    return gradients;
  }
};

void check_callbacks(bool at_0, bool at_1) {
  Callbacks::outer = Callbacks::inner = 0;
  Callbacks::at_0 = at_0;
  Callbacks::at_1 = at_1;
  Tensor t1 = rand({3, 3}).set_requires_grad(), t2 = rand({3, 3}).set_requires_grad();
  OuterQueues::apply(mm(t1, t2)).sum().backward();
  EXPECT_EQ(Callbacks::outer, at_0 ? 1 : 0);
  EXPECT_EQ(Callbacks::inner, at_1 ? 1 : 0);
}

TEST_P(TestAutograd, reentrant_with_callbacks_depth_0) { check_callbacks(true, false); }
TEST_P(TestAutograd, reentrant_with_callbacks_depth_1) { check_callbacks(false, true); }
TEST_P(TestAutograd, reentrant_with_callbacks_both_depths) { check_callbacks(true, true); }

struct KeepsModes : Function<KeepsModes> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x.sqrt();
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    bool original = autograd::grad_enabled();
    Tensor found;
    {
      EnableGrad on;
      Tensor x = ctx->saved_tensors()[0].detach().set_requires_grad();
      EXPECT_TRUE(autograd::grad_enabled());
      found = autograd::grad({x.sqrt()}, {x}, {gradients[0].detach()})[0];
      EXPECT_TRUE(autograd::grad_enabled());
    }
    EXPECT_EQ(autograd::grad_enabled(), original);
    return {found};
  }
};

TEST_P(TestAutograd, grad_mode_restored_reentrant) {
  Tensor x = tensor({4.0f}).set_requires_grad();
  ForgetsGradients in_the_end({x});
  KeepsModes::apply(x).backward();
  expect_filled(x.grad(), 0.25);
  x.set_grad(Tensor());
  KeepsModes::apply(x).backward(std::nullopt, false, true);
  expect_filled(x.grad().detach(), 0.25);
}

struct LocalInplace : Function<LocalInplace> {
  static Tensor forward(AutogradContext*, const Tensor& x, bool inplace) {
    Tensor view = x.clone().narrow(0, 0, 3);
    if (inplace) view.add_(2);
    return view;
  }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0], Tensor()}; }
};

TEST_P(TestAutograd, custom_function_local_inplace) {
  Tensor base = rand({10}).set_requires_grad();
  for (bool inplace : {false, true})
    EXPECT_EQ(grad_fn(LocalInplace::apply(base, inplace))->name(), "LocalInplaceBackward");
}

TEST_P(TestAutograd, free_deep_graph_complicated) {
  Tensor x = randn({1}).set_requires_grad();
  {
    Tensor y = x.clone();
    std::vector<Tensor> before(3);
    for (int at = 0; at < 100000; ++at) {
      y = y + y * 0.000001;
      if (at % 7 == 0 && before[static_cast<size_t>(at % 3)].defined()) y = y + before[static_cast<size_t>(at % 3)];
      before[static_cast<size_t>(at % 3)] = y;
    }
  }
  SUCCEED();
}

struct Adds : Function<Adds> {
  static Tensor forward(AutogradContext*, const Tensor& x, const Tensor& y) { return x + y; }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0], gradients[0]}; }
};

TEST_P(TestAutograd, free_deep_graph_pyfunction) {
  Tensor x = randn({1}).set_requires_grad();
  {
    Tensor y = x.clone();
    for (int at = 0; at < 150000; ++at) y = Adds::apply(y, y);
  }
  SUCCEED();
}

TEST_P(TestAutograd, wrapped_number_saved_variable_hooks) {
  SavedTensorHooks throwing{
      [](const Tensor&) -> std::any { throw std::runtime_error("this hook should not be called"); },
      [](const std::any&) -> Tensor { throw std::runtime_error("this hook should not be called"); }};
  Tensor a = randn({5}).set_requires_grad(), y;
  {
    SavedTensorHooksGuard guard(throwing);
    y = a * 3;
  }
  y.sum().backward();
  expect_filled(a.grad(), 3);
}

struct KeepsIntermediate : Function<KeepsIntermediate> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    Tensor intermediate = x.exp();
    ctx->save_for_backward({intermediate.clone().detach().set_requires_grad()});
    return x.exp();
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) { return {gradients[0] * ctx->saved_tensors()[0]}; }
};

TEST_P(TestAutograd, saved_tensor_hooks_custom_function_intermediates) {
  SavedTensorHooksGuard guard({[](const Tensor& tensor) { return std::any(tensor); },
                               [](const std::any& packed) { return std::any_cast<Tensor>(packed); }});
  Tensor a = tensor(1.0f).set_requires_grad();
  KeepsIntermediate::apply(a).backward();
  expect_filled(a.grad(), std::exp(1.0));
}

TEST_P(TestAutograd, checkpoint_valid_reset_on_error) {
  auto exponential = [](const Tensor& x) { return x.exp(); };
  Tensor a = randn({2, 2}).set_requires_grad();
  Tensor b = autograd::checkpoint(exponential, a, {.use_reentrant = true}).sum();
  EXPECT_THAT(error_of([&] { autograd::grad({b}, {a}); }), HasSubstr("torch.utils.checkpoint is incompatible"));
  autograd::checkpoint(exponential, a, {.use_reentrant = true}).sum().backward();
  expect_near(a.grad(), a.detach().exp());
}

}  // namespace
}  // namespace tenon
