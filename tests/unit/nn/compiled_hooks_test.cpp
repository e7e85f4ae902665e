// Hooks that come and go after a function was compiled: it follows, as eager does.
#include <tenon/nn/modules.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends.h"
#include "error_of.h"
#include "values_of.h"

namespace tenon {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::values;
using Tensors = std::vector<Tensor>;

TEST(CompiledHooks, forward_hooks_come_and_go) {
  nn::Sequential model(nn::Linear(3, 4), nn::Tanh());
  auto twice = [](const nn::Module&, const Tensor&, const Tensor& output) { return output * 2; };
  auto moved = [](const nn::Module&, const Tensor& input) { return input + 1; };
  Tensor x = randn({2, 3});
  for (const char* backend : testing::kBackends) {
    auto f = compile([&](Tensor given) { return model(given); }, {.backend = backend});
    auto expect_eager = [&](int64_t compiles) {
      for (int call = 0; call < 2; ++call) EXPECT_TRUE(allclose(f(x), model(x), 1e-6, 1e-6)) << backend;
      EXPECT_EQ(f.compile_count(), compiles) << backend;
    };
    expect_eager(1);
    auto remove = model.children()[0].second.register_forward_hook(twice);
    expect_eager(2);
    auto also = model.children()[1].second.register_forward_pre_hook(moved);
    expect_eager(3);
    // What was compiled for fewer hooks serves again.
    also();
    expect_eager(3);
    remove();
    expect_eager(3);
    // The same function registered again is another hook: traced, and found to give a graph that there is already.
    auto again = model.children()[0].second.register_forward_hook(twice);
    expect_eager(3);
    again();
    expect_eager(3);
  }
}

TEST(CompiledHooks, backward_hooks_come_and_go) {
  nn::Linear layer(3, 2);
  int calls = 0;
  auto hook = [&](const nn::Module&, const Tensors& grad_input, const Tensors&) {
    ++calls;
    return Tensors{grad_input[0] * 10};
  };
  auto gradient_of = [](const auto& function) {
    Tensor x = ones({4, 3}).set_requires_grad();
    function(x).sum().backward();
    return values(x.grad());
  };
  for (const char* backend : testing::kBackends) {
    auto f = compile([&](Tensor given) { return layer(given); }, {.backend = backend});
    EXPECT_EQ(gradient_of(f), gradient_of(layer)) << backend;
    auto remove = layer.register_full_backward_hook(hook);
    for (int call = 0; call < 2; ++call) {
      calls = 0;
      EXPECT_EQ(gradient_of(f), gradient_of(layer)) << backend;
      EXPECT_EQ(calls, 2) << backend;
    }
    remove();
    calls = 0;
    EXPECT_EQ(gradient_of(f), gradient_of(layer)) << backend;
    EXPECT_EQ(calls, 0) << backend;
  }
}

// As in eager, each call adds one more, and the calls behind it see them all.
TEST(CompiledHooks, registered_by_the_function_itself) {
  for (const char* backend : testing::kBackends) {
    nn::Identity layer;
    auto f = compile(
        [&](Tensor x) {
          Tensor y = layer(x);
          layer.register_forward_hook([](const nn::Module&, const Tensor&, const Tensor& out) { return out * 2; });
          return y;
        },
        {.backend = backend});
    for (double expected : {1, 2, 4, 8}) EXPECT_EQ(values(f(ones({1})))[0], expected) << backend;
  }
}

TEST(CompiledHooks, removed_by_the_function) {
  for (const char* backend : testing::kBackends) {
    nn::Identity layer;
    std::function<void()> remove;
    auto f = compile(
        [&](Tensor x) {
          Tensor y = layer(x);
          remove();
          return y + layer(x);
        },
        {.backend = backend});
    for (int call = 0; call < 3; ++call) {
      remove = layer.register_forward_hook([](const nn::Module&, const Tensor&, const Tensor& out) { return out * 2; });
      EXPECT_EQ(values(f(ones({1})))[0], 3) << backend;
      EXPECT_EQ(values(layer(ones({1})))[0], 1);
    }
    auto both = compile(
        [&](Tensor x) {
          layer.register_forward_hook([](const nn::Module&, const Tensor&, const Tensor& out) { return out; })();
          return layer(x);
        },
        {.backend = backend});
    EXPECT_THAT(error_of([&] { both(ones({1})); }),
                HasSubstr("removes a hook of a module that it has registered itself: do one of them outside of it"));
  }
}

// The reason of a compile names the module, and a clone has hooks of its own.
TEST(CompiledHooks, are_named_and_cloned) {
  nn::Sequential model(nn::Linear(3, 4), nn::Tanh());
  auto f = compile([&](Tensor x) { return model(x); });
  f(ones({1, 3}));
  nn::Sequential copy = nn::clone(model);
  copy.children()[0].second.register_forward_hook(
      [](const nn::Module&, const Tensor&, const Tensor& output) { return output * 2; });
  f(ones({1, 3}));
  EXPECT_EQ(f.compile_count(), 1);
  model.children()[0].second.register_forward_hook(
      [](const nn::Module&, const Tensor&, const Tensor& output) { return output * 2; });
  f(ones({1, 3}));
  EXPECT_EQ(f.compile_count(), 2);
  ASSERT_EQ(f.explain().recompiles.size(), 1u);
  EXPECT_THAT(f.explain().recompiles[0], HasSubstr("'0.hooks' changed"));
}

}  // namespace
}  // namespace tenon
