// Seed 002: functions that write to their arguments, to values and through views of either.
#include "aot.h"

#include <tenon/autograd/set.h>

namespace tenon {
namespace {

using testing::error_of;
using testing::HasSubstr;
using testing::on_both_backends;
using testing::same_bits;

TEST(AotAutogradFallbackTests, mutation) {
  auto function = [](Tensor parameter, Tensor y) {
    bool before = autograd::grad_enabled();
    autograd::set_grad_enabled(false);
    parameter.add_(y);
    autograd::set_grad_enabled(before);
    return y;
  };
  on_both_backends([&](const char* backend) {
    Tensor y = randn({4}), x = testing::leaf({4}), expected = (x + y + y).detach();
    auto f = compile(function, {.backend = backend});
    for (int call = 0; call < 2; ++call) {
      EXPECT_TRUE(f(x, y).is(y)) << "a leaf may be written to while grad mode is off";
      EXPECT_TRUE(autograd::grad_enabled());
    }
    EXPECT_TRUE(same_bits(x.detach(), expected));
    EXPECT_TRUE(x.is_leaf() && x.requires_grad());
    EXPECT_EQ(f.compile_count(), 1);
  });
}

// A part of `scores` into the last columns of all but the last block of `stack`, which is then seen in another shape.
Tensor put_scores(const Tensor& stack, const Tensor& scores) {
  stack.slice(1, 0, -1).slice(3, 256).copy_(scores.slice(2, 0, 256).slice(3, 0, 257));
  return stack.view({1, 12, 1024, 513});
}

TEST(AotAutogradFallbackTests, mutation1) {
  auto function = [](Tensor stack, Tensor scores) { return std::tuple(put_scores(stack, scores)); };
  on_both_backends([&](const char* backend) {
    Tensor x = randn({12, 4, 256, 513}), y = randn({12, 3, 512, 513}), other = x.clone();
    auto f = compile(function, {.backend = backend});
    auto [view] = f(x, y);
    auto [expected] = function(other, y);
    EXPECT_TRUE(same_bits(view, expected));
    EXPECT_TRUE(same_bits(x, other));
    EXPECT_TRUE(view.is_same_storage(x)) << "what is returned is a view of the argument";
    EXPECT_EQ(f.compile_count(), 1);
  });
}

TEST(AotAutogradFallbackTests, negative_testing_mutation) {
  auto function = [](Tensor stack, Tensor scores) { return std::tuple(put_scores(stack.sin(), scores)); };
  on_both_backends([&](const char* backend) {
    Tensor x = randn({12, 4, 256, 513}), y = randn({12, 3, 512, 513}), before = x.clone();
    auto f = compile(function, {.backend = backend});
    auto [view] = f(x, y);
    auto [expected] = function(x, y);
    EXPECT_TRUE(same_bits(view, expected));
    EXPECT_TRUE(same_bits(x, before)) << "only the sines were written to";
    EXPECT_EQ(f.compile_count(), 1);
  });
}

TEST(AotAutogradFallbackTests, negative_testing) {
  auto function = [](Tensor x, Tensor y) { return x.sin().add_(y); };
  on_both_backends([&](const char* backend) {
    auto f = compile(function, {.backend = backend});
    Tensor x = randn({4}), y = randn({4}), before = x.clone();
    EXPECT_TRUE(same_bits(f(x, y), function(x, y)));
    EXPECT_TRUE(same_bits(x, before));
    EXPECT_EQ(f.compile_count(), 1);
  });
}

TEST(AotAutogradFallbackTests, alias_inputs) {
  auto function = [] {
    Tensor a = tensor({1});
    a = a.slice(0, 0, 1);
    Tensor b = a.squeeze();
    a[0].fill_(0);
    if ((a[0] < 1e5).item<bool>()) {
    }
    a[0].fill_(2);
    return b;
  };
  on_both_backends([&](const char* backend) {
    auto f = compile(function, {.backend = backend});
    for (int call = 0; call < 2; ++call) {
      Tensor b = f();
      EXPECT_TRUE(same_bits(b, function()));
      EXPECT_EQ(b.item<int64_t>(), 2) << "a view on one side of a break sees what is written on the other";
    }
  });
}

TEST(AotAutogradFallbackTests, aot_grad_mode_mutation) {
  auto function = [](Tensor x) {
    Tensor y = x * x;
    autograd::set_grad_enabled(false);
    return std::tuple(y.clone(), y);
  };
  // What the node of a result gives for this gradient, all inputs together.
  auto pulled_back = [](const Tensor& result) {
    Tensor sum = zeros({3});
    for (const Tensor& each : autograd::grad_fn(result)->apply({tensor({-1.0f, 2.0f, 0.0f})}))
      if (each.defined()) sum = sum + each;
    return sum;
  };
  on_both_backends([&](const char* backend) {
    auto f = compile(function, {.fullgraph = true, .backend = backend});
    for (int call = 0; call < 3; ++call) {
      autograd::set_grad_enabled(true);
      Tensor x = ones({3}).set_requires_grad() * 3;
      auto [expected_copy, expected] = function(x);
      EXPECT_FALSE(autograd::grad_enabled());
      autograd::set_grad_enabled(true);
      auto [copy, y] = f(x);
      EXPECT_FALSE(autograd::grad_enabled()) << "grad mode set inside stays set, at call " << call;
      autograd::set_grad_enabled(true);
      EXPECT_TRUE(same_bits(copy, expected_copy));
      EXPECT_TRUE(same_bits(y.detach(), expected.detach()));
      EXPECT_FALSE(autograd::grad_fn(expected_copy) || autograd::grad_fn(copy));
      ASSERT_TRUE(autograd::grad_fn(expected) && autograd::grad_fn(y));
      NoGrad off;
      EXPECT_TRUE(same_bits(pulled_back(y), pulled_back(expected)));
    }
    EXPECT_EQ(f.compile_count(), 1);
  });
}

TEST(AotAutogradFallbackTests, aot_autograd_raises_invalid_leaf_set) {
  on_both_backends([&](const char* backend) {
    auto f = compile([](Tensor x) { set_(x, ones({2})); }, {.backend = backend});
    Tensor x = ones({2}).set_requires_grad();
    for (int call = 0; call < 2; ++call)
      EXPECT_THAT(error_of([&] { f(x); }), HasSubstr("is being used in an in-place operation"));
  });
}

TEST(AotAutogradFallbackTests, aot_autograd_expand_mutation_functionalizes) {
  auto function = [](Tensor x) {
    Tensor y = x.expand({3, 6});
    y[0][0].add_(5);
    return y;
  };
  on_both_backends([&](const char* backend) {
    auto f = compile(function, {.fullgraph = true, .backend = backend});
    Tensor x = arange(6), other = x.clone();
    for (int call = 0; call < 2; ++call) {
      EXPECT_TRUE(same_bits(f(other), function(x)));
      EXPECT_TRUE(same_bits(other, x));
    }
    EXPECT_EQ(x[0].item<int64_t>(), 10);
  });
}

TEST(AotAutogradFallbackTests, aot_autograd_expand_mutation_backwards) {
  auto function = [](Tensor x, Tensor z) {
    Tensor y = x.expand({3, 6});
    y[1][1].mul_(5);
    return y * z;
  };
  on_both_backends([&](const char* backend) {
    auto f = compile(function, {.fullgraph = true, .backend = backend});
    Tensor x = arange(6, kFloat32), other_x = x.clone();
    Tensor z = x.clone().set_requires_grad(), other_z = x.clone().set_requires_grad();
    Tensor result = f(other_x, other_z), expected = function(x, z);
    EXPECT_TRUE(same_bits(result.detach(), expected.detach()));
    expected.sum().backward();
    result.sum().backward();
    EXPECT_TRUE(same_bits(other_x, x));
    EXPECT_TRUE(same_bits(other_z.grad(), z.grad()));
    EXPECT_EQ(x[1].item<float>(), 5);
  });
}

TEST(AotAutogradFallbackTests, aot_autograd_expand_mutation_error) {
  // Three elements of what is written to are one in memory.
  auto function = [](Tensor x) {
    Tensor y = x.expand({3, 6});
    y.slice(0, 0, 3).select(1, 0).add_(5);
    return y;
  };
  constexpr const char* kWhy = "more than one element of the written-to tensor refers to a single memory location";
  on_both_backends([&](const char* backend) {
    auto f = compile(function, {.backend = backend});
    Tensor x = arange(6), other = x.clone();
    EXPECT_THAT(error_of([&] { function(x); }), HasSubstr(kWhy));
    for (int call = 0; call < 2; ++call) EXPECT_THAT(error_of([&] { f(other); }), HasSubstr(kWhy));
    EXPECT_TRUE(same_bits(other, arange(6)));
  });
}

}  // namespace
}  // namespace tenon
