// The autograd suite: functions with a backward of their own, saved tensors and their hooks, checkpointing.
#include "autograd.h"

#include <tenon/autograd/checkpoint.h>

namespace tenon {
namespace {

using namespace testing;
using autograd::grad_fn;
using autograd::SavedTensorHooks;
using autograd::SavedTensorHooksGuard;

struct Twice : Function<Twice> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x; }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0] * 2}; }
};

TEST_P(TestAutograd, function_returns_input) {
  for (const SymInts& sizes : {SymInts{1}, SymInts{}}) {
    Tensor v = ones(sizes).set_requires_grad();
    Twice::apply(v).backward();
    expect_filled(v.grad(), 2);
    {
      NoGrad off;
      v.grad().zero_();
    }
    Twice::apply(v.clone()).backward();
    expect_filled(v.grad(), 2);
  }
}

struct NoGradient : Function<NoGradient> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 2; }
  static Tensors backward(AutogradContext*, Tensors) { return {Tensor()}; }
};

TEST_P(TestAutograd, function_returns_undefined_tensor) {
  Tensor x = ones({1}).set_requires_grad();
  NoGradient::apply(x).backward();
  EXPECT_FALSE(x.grad().defined());
  NoGradient::apply(x.pow(2)).backward();
  EXPECT_FALSE(x.grad().defined());
  NoGradient::apply(x).sum().backward();
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(autograd::grad({NoGradient::apply(x)}, {x}, {}, false, false, true)[0].defined());
}

struct SeesZeros : Function<SeesZeros> {
  static inline bool seen = false;
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 2; }
  static Tensors backward(AutogradContext*, Tensors gradients) {
    seen = true;
    EXPECT_TRUE(same_bits(gradients[0], zeros({1})));
    return gradients;
  }
};
struct SeesNothing : Function<SeesNothing> {
  static inline bool seen = false;
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->set_materialize_grads(false);
    return x * 2;
  }
  static Tensors backward(AutogradContext*, Tensors gradients) {
    seen = true;
    EXPECT_FALSE(gradients[0].defined());
    return gradients;
  }
};

TEST_P(TestAutograd, materialize_grads) {
  SeesZeros::seen = false;
  Tensor x = ones({1}).set_requires_grad();
  NoGradient::apply(SeesZeros::apply(x)).backward();
  EXPECT_TRUE(SeesZeros::seen);
}

TEST_P(TestAutograd, dont_materialize_grads) {
  SeesNothing::seen = false;
  Tensor x = ones({1}).set_requires_grad();
  NoGradient::apply(SeesNothing::apply(x)).backward();
  EXPECT_TRUE(SeesNothing::seen);
}

struct Throws : Function<Throws> {
  static Tensor forward(AutogradContext*, const Tensor& x, const Tensor& y) { return x + y; }
  static Tensors backward(AutogradContext*, Tensors) { throw std::runtime_error("Simulate error on backward pass"); }
};

TEST_P(TestAutograd, custom_function_exception) {
  Tensor a = rand({3, 3}).set_requires_grad(), b = rand({3, 3}).set_requires_grad();
  Tensor loss = Throws::apply(a, b).sum();
  EXPECT_THAT(thrown_by([&] { loss.backward(); }), HasSubstr("Simulate error on backward pass"));
}

struct SavesNone : Function<SavesNone> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({Tensor(), x, Tensor()});
    return x * x;
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    Tensors saved = ctx->saved_tensors();
    EXPECT_FALSE(saved[0].defined() || saved[2].defined());
    return {2 * saved[1] * gradients[0]};
  }
};

TEST_P(TestAutograd, save_none_for_backward) {
  Tensor x = randn({5, 5}).set_requires_grad();
  SavesNone::apply(x).sum().backward();
  expect_near(x.grad(), 2 * x);
}

struct TooMany : Function<TooMany> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x; }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0], Tensor(), Tensor()}; }
};

TEST_P(TestAutograd, too_many_grads) {
  Tensor x = randn({5, 5}).set_requires_grad();
  TooMany::apply(x).sum().backward();
  expect_filled(x.grad(), 1);
}

struct WithRandom : Function<WithRandom> {
  static Tensors forward(AutogradContext* ctx, const Tensor& x) {
    Tensor out = randn({3, 3});
    ctx->mark_non_differentiable({out});
    return {x, out};
  }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0]}; }
};
struct TakesFirst : Function<TakesFirst> {
  static Tensor forward(AutogradContext*, const Tensor& x, const Tensor&) { return x; }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0], Tensor()}; }
};

TEST_P(TestAutograd, dep_nograd) {
  Tensor x = randn({5}).set_requires_grad();
  Tensors both = WithRandom::apply(x);
  Tensor b = both[1] + 1;
  EXPECT_FALSE(b.requires_grad());
  EXPECT_TRUE(both[0].requires_grad());
  TakesFirst::apply(both[0], b).backward(ones({5}));
  expect_filled(x.grad(), 1);
}

struct Mask : Function<Mask> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    Tensor mask = x > 0;
    ctx->mark_non_differentiable({mask});
    return mask;
  }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0] * 0}; }
};

TEST_P(TestAutograd, mark_non_differentiable) {
  Tensor x = randn({5, 5}).set_requires_grad(), mask = Mask::apply(x);
  EXPECT_FALSE(mask.requires_grad());
  x.masked_fill(mask, 0).sum().backward();
  EXPECT_TRUE(x.grad().defined());
}

struct OneMarked : Function<OneMarked> {
  static Tensors forward(AutogradContext* ctx, const Tensor& x) {
    Tensor a = x + 1, b = x + 2;
    ctx->mark_non_differentiable({a});
    return {a, b};
  }
  static Tensors backward(AutogradContext*, Tensors gradients) {
    expect_filled(gradients[0] + 1, 1);
    expect_filled(gradients[1], 1);
    return {gradients[1]};
  }
};

TEST_P(TestAutograd, mark_non_differentiable_mixed) {
  Tensor x = randn({5, 5}).set_requires_grad();
  Tensors both = OneMarked::apply(x);
  EXPECT_FALSE(both[0].requires_grad());
  EXPECT_TRUE(both[1].requires_grad());
  both[1].sum().backward();
  expect_filled(x.grad(), 1);
}

struct MarkedNone : Function<MarkedNone> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    Tensor out = x.clone();
    ctx->mark_non_differentiable({out});
    return out;
  }
  static Tensors backward(AutogradContext*, Tensors) { return {Tensor()}; }
};

TEST_P(TestAutograd, mark_non_differentiable_none) {
  Tensor x = randn({5, 5}).set_requires_grad(), r = MarkedNone::apply(x * x);
  (r * x).sum().backward();
  EXPECT_TRUE(x.grad().defined());
}

struct LeafAndSum : Function<LeafAndSum> {
  static Tensors forward(AutogradContext*, const Tensor& a, const Tensor& b) { return {a, a + b}; }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0] + gradients[1], gradients[1]}; }
};

TEST_P(TestAutograd, return_leaf) {
  bool called = false;
  Tensor x = randn({5, 5}).set_requires_grad(), y = randn({5, 5}).set_requires_grad();
  Tensors out = LeafAndSum::apply(x, y);
  autograd::register_hook(out[0], [&](const Tensor& gradient) {
    called = true;
    expect_filled(gradient, 1);
  });
  (out[0] + out[1] + x).sum().backward();
  expect_filled(x.grad(), 3);
  expect_filled(y.grad(), 1);
  EXPECT_TRUE(called);
}

TEST_P(TestAutograd, no_grad_input) {
  Tensor x = ones({1}).set_requires_grad(), y;
  {
    NoGrad off;
    y = Twice::apply(x);
  }
  EXPECT_TRUE(x.requires_grad());
  EXPECT_FALSE(grad_fn(y));
}

TEST_P(TestAutograd, no_grad_python_function) {
  Tensor x = ones({5, 5}).set_requires_grad(), y;
  {
    NoGrad off;
    y = NoGradient::apply(x);
  }
  EXPECT_FALSE(y.requires_grad());
}

// Keeps a graph of its own from forward, and walks it in backward.
struct Reenters : Function<Reenters> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& y) {
    EnableGrad on;
    Tensor inner_x = x.detach().set_requires_grad(), inner_y = y.detach().set_requires_grad();
    Tensor out = (inner_x * inner_y).sum();
    ctx->saved_data["x"] = AnyValue(inner_x);
    ctx->saved_data["out"] = AnyValue(out);
    return out.detach();
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    {
      EnableGrad on;
      ctx->saved_data["out"].tensor().backward();
    }
    return {ctx->saved_data["x"].tensor().grad() * gradients[0], Tensor()};
  }
};

TEST_P(TestAutograd, simple_reentrant) {
  Tensor x = randn({2, 2}).set_requires_grad(), y = randn({2, 2});
  Reenters::apply(x, y).sum().backward();
  expect_near(x.grad(), y);
}

struct ReentersThrowing : Function<ReentersThrowing> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.clone(); }
  static Tensors backward(AutogradContext*, Tensors gradients) {
    EnableGrad on;
    Tensor a = rand({3, 3}).set_requires_grad(), b = rand({3, 3}).set_requires_grad();
    Throws::apply(a, b).sum().backward();
    return gradients;
  }
};

TEST_P(TestAutograd, reentrant_child_error) {
  Tensor d = rand({3, 3}).set_requires_grad(), loss = ReentersThrowing::apply(d).sum();
  EXPECT_THAT(thrown_by([&] { loss.backward(); }), HasSubstr("Simulate error"));
}

struct TwoOutputs : Function<TwoOutputs> {
  static Tensors forward(AutogradContext*, const Tensor& x) { return {x + 1, x + 2}; }
  static Tensors backward(AutogradContext*, Tensors gradients) { return {gradients[0] + gradients[1]}; }
};
struct SavesSecond : Function<SavesSecond> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x + 1;
  }
  static Tensors backward(AutogradContext* ctx, Tensors gradients) {
    EnableGrad on;
    EXPECT_EQ(ctx->saved_tensors()[0].output_nr(), 1);
    return gradients;
  }
};

TEST_P(TestAutograd, save_output_nr) {
  Tensor x = randn({5, 5}).set_requires_grad();
  Tensors both = TwoOutputs::apply(x);
  EXPECT_EQ(both[1].output_nr(), 1);
  SavesSecond::apply(both[1]).sum().backward();
  expect_filled(x.grad(), 1);
}

SavedTensorHooks scaled(double packs, double unpacks) {
  return {[packs](const Tensor& tensor) { return std::any(tensor * packs); },
          [unpacks](const std::any& packed) { return std::any_cast<const Tensor&>(packed) * unpacks; }};
}

TEST_P(TestAutograd, setting_default_saved_variable_hooks_twice_should_not_fail) {
  SavedTensorHooksGuard outer(scaled(1, 1)), inner(scaled(1, 1));
}

TEST_P(TestAutograd, setting_default_saved_variable_hooks_twice_should_use_inner) {
  Tensor a = randn({5}).set_requires_grad(), b = randn({5}).set_requires_grad(), y, z;
  {
    SavedTensorHooksGuard outer(scaled(3, 3));
    {
      SavedTensorHooksGuard inner(scaled(5, 5));
      y = (a * a).sum();
    }
    z = (b * b).sum();
  }
  y.backward();
  z.backward();
  expect_near(a.grad(), 2 * 25 * a);
  expect_near(b.grad(), 2 * 9 * b);
}

TEST_P(TestAutograd, unpack_hooks_exec_count) {
  int packs = 0, unpacks = 0;
  Tensor x = ones({5}).set_requires_grad(), y = rand({5}), loss;
  {
    SavedTensorHooksGuard guard({[&](const Tensor& tensor) {
                                   ++packs;
                                   return std::any(tensor);
                                 },
                                 [&](const std::any& packed) {
                                   ++unpacks;
                                   return std::any_cast<Tensor>(packed);
                                 }});
    loss = (x * y).sum();
    EXPECT_EQ(packs, 1);
    EXPECT_EQ(unpacks, 0);
  }
  loss.backward();
  EXPECT_EQ(packs, 1);
  EXPECT_EQ(unpacks, 1);
}

struct PackError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

TEST_P(TestAutograd, saved_tensor_hooks_custom_error_propagaation) {
  Tensor a = randn({5}).set_requires_grad();
  {
    SavedTensorHooksGuard guard({[](const Tensor&) -> std::any { throw PackError("pack"); },
                                 [](const std::any& packed) { return std::any_cast<Tensor>(packed); }});
    EXPECT_THROW(a.sin(), PackError);
  }
  Tensor b;
  {
    SavedTensorHooksGuard guard({[](const Tensor& tensor) { return std::any(tensor); },
                                 [](const std::any&) -> Tensor { throw PackError("unpack"); }});
    b = a.sin();
  }
  EXPECT_THROW(b.sum().backward(), PackError);
}

TEST_P(TestAutograd, saved_variable_packing_unpacking_did_not_save_original_with_default_hooks) {
  Tensor a = randn({5}).set_requires_grad(), y;
  {
    SavedTensorHooksGuard guard({[](const Tensor& tensor) { return std::any(tensor); },
                                 [](const std::any& packed) { return std::any_cast<Tensor>(packed); }});
    y = a.exp();
  }
  y.sum().backward();
  expect_near(a.grad(), y);
}

TEST_P(TestAutograd, default_saved_variable_hooks_double_backward) {
  // The factor of a in the second derivative of a³, with hooks in forward and in backward that double what they pack.
  auto second = [](bool doubles_forward, bool doubles_backward) {
    Tensor a = randn({5}).set_requires_grad(), y, g;
    {
      SavedTensorHooksGuard guard(scaled(doubles_forward ? 2 : 1, 1));
      y = a.pow(3).sum();
    }
    {
      SavedTensorHooksGuard guard(scaled(doubles_backward ? 2 : 1, 1));
      g = autograd::grad({y}, {a}, {}, false, true)[0];
    }
    g.sum().backward();
    return (a.grad() / a.detach()).mean().item<double>();
  };
  EXPECT_NEAR(second(false, false), 6, 1e-4);
  EXPECT_NEAR(second(true, false), 12, 1e-4);
  EXPECT_NEAR(second(false, true), 24, 1e-4);
  EXPECT_NEAR(second(true, true), 48, 1e-4);
}

TEST_P(TestAutograd, checkpointing_without_reentrant_correct_grad) {
  Tensor a = randn({2, 2}).set_requires_grad();
  a.exp().sum().backward();
  Tensor expected = a.grad();
  a.set_grad(Tensor());
  auto exponential = [](const Tensor& x) { return x.exp(); };
  autograd::checkpoint(exponential, a).sum().backward();
  EXPECT_TRUE(same_bits(a.grad(), expected));
  EXPECT_TRUE(same_bits(autograd::grad({autograd::checkpoint(exponential, a).sum()}, {a})[0], expected));
}

TEST_P(TestAutograd, checkpointing_without_reentrant_parameter_used_in_an_out) {
  Tensor w = randn({10, 10}).set_requires_grad(), x = rand({10, 10}).set_requires_grad();
  int calls = 0;
  autograd::register_hook(w, [&](const Tensor&) { ++calls; });
  Tensor h = w * x;
  Tensor out = autograd::checkpoint([&](const Tensor& input) { return (input * w).relu(); }, h);
  (out + h).sum().backward();
  EXPECT_EQ(calls, 1);
}

TEST_P(TestAutograd, checkpointing_without_reentrant_detached_tensor) {
  struct Detached {
    nn::Linear layer{10, 10};
    Tensor operator()(const Tensor& x) const {
      NoGrad off;
      return layer(x).relu();
    }
  };
  for (bool reentrant : {true, false}) {
    Tensor a = rand({10, 10}).set_requires_grad(), y = a;
    for (int round = 0; round < 3; ++round) y = autograd::checkpoint(Detached(), y, {.use_reentrant = reentrant}) + a;
    Tensor loss = y.mean();
    if (reentrant)
      EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr("none of output has requires_grad=True"));
    else
      loss.backward();
  }
}

}  // namespace
}  // namespace tenon
