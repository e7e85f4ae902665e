// Seed 002: mutation, identity of arguments, and guards that say why they failed.
#include "../unit/capture/testing.h"

#include <tenon/capture/trace.h>

namespace tenon {
namespace {

using testing::error_of;
using testing::same_bits;

std::string last_reason(const Explanation& explanation) {
  return explanation.recompiles.empty() ? "" : explanation.recompiles.back();
}

Tensor input() { return randn({3, 3}).set_requires_grad(); }

TEST(AotAutogradFallbackTests, mutation) {
  auto function = [](Tensor x, Tensor y) {
    Tensor sum = x + y;
    sum.slice(0, 1, 3).mul_(2);
    return std::tuple(sum.t().add_(1), sum);
  };
  auto f = compile(function, {.backend = "aot_eager"});
  Tensor x = randn({4, 3}), y = randn({4, 3});
  auto [a, b] = f(x, y);
  auto [c, d] = function(x, y);
  EXPECT_TRUE(same_bits(a, c));
  EXPECT_TRUE(same_bits(b, d));
  EXPECT_TRUE(a.is_same_storage(b)) << "results that share memory in eager share it here";
}

TEST(AotAutogradFallbackTests, mutation1) {
  auto function = [](Tensor whole, Tensor part) {
    Tensor padded = whole.clone();
    padded.slice(1, 0, 3).slice(2, 2).copy_(part);
    return padded.view({1, 4, 32});
  };
  auto f = compile(function, {.backend = "aot_eager"});
  Tensor whole = randn({4, 4, 8}), part = randn({4, 3, 6});
  EXPECT_TRUE(same_bits(f(whole, part), function(whole, part)));
}

TEST(AotAutogradFallbackTests, negative_testing_mutation) {
  auto function = [](Tensor x, Tensor y) {
    Tensor wave = x.sin();
    wave.slice(0, 0, 2).zero_();
    return wave.add_(y);
  };
  auto f = compile(function, {.backend = "aot_eager"});
  Tensor x = randn({4}), y = randn({4});
  EXPECT_TRUE(same_bits(f(x, y), function(x, y)));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(AotAutogradFallbackTests, negative_testing) {
  auto function = [](Tensor x, Tensor y) { return x.sin().add_(y); };
  auto f = compile(function, {.backend = "aot_eager"});
  Tensor x = randn({4}), y = randn({4}), before = x.clone();
  EXPECT_TRUE(same_bits(f(x, y), function(x, y)));
  EXPECT_TRUE(same_bits(x, before));
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(AotAutogradFallbackTests, call_fn_with_non_const_inputs_aot_unsafe) {
  // A parameter changed with grad mode off, by a function that takes it as an argument.
  auto function = [](Tensor parameter, Tensor y) {
    {
      NoGrad off;
      parameter.add_(y);
    }
    return y;
  };
  auto f = compile(function, {.backend = "aot_eager"});
  Tensor parameter = randn({4}).set_requires_grad(), y = randn({4});
  Tensor expected = (parameter + y).detach();
  EXPECT_TRUE(f(parameter, y).is(y));
  EXPECT_TRUE(same_bits(parameter.detach(), expected));
  EXPECT_TRUE(parameter.is_leaf());
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(AotAutogradFallbackTests, call_fn_with_non_const_inputs_aot_safe) {
  // A function of a module's own that takes its parameters as arguments: traced, run as a graph, and compiled.
  auto forward = [](Tensor image, Tensor weight, Tensor bias) { return conv2d(image, weight, bias); };
  Tensor image = randn({2, 3, 10, 10}), weight = randn({20, 3, 5, 5}), bias = randn({20});
  Tensor expected = forward(image, weight, bias);
  graph::Graph graph = trace(forward, Tracing::Fake, image, weight, bias);
  const Tensor inputs[] = {image, weight, bias};
  EXPECT_LT(testing::difference(graph::interpret(graph, inputs)[0].tensor(), expected), 1e-5);
  auto f = compile(forward, {.backend = "aot_eager"});
  EXPECT_LT(testing::difference(f(image, weight, bias), expected), 1e-5);
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(AotAutogradFallbackTests, call_fn_with_non_const_inputs_aot_unsafe_control_flow) {
  auto branch = [](Tensor parameter, Tensor y) {
    if (bool(y[0][0].item<SymFloat>() < 3.0)) return y + parameter;
    return parameter * y;
  };
  auto function = [&](Tensor x, Tensor y) {
    Tensor a = x * y;
    a = branch(a, a);
    return a * (x + y);
  };
  auto f = compile(function, {.backend = "aot_eager"});
  Tensor x = ones({2, 2}).set_requires_grad(), y = randn({2, 2});
  for (double first : {1.0, 2.5, 4.0, -1.0, 7.0}) {
    y[0][0].fill_(first);
    EXPECT_TRUE(same_bits(f(x, y), function(x, y)));
  }
  Explanation explanation = f.explain();
  EXPECT_EQ(explanation.entries.size(), 3u) << "what comes before the question, and one graph for each answer";
  EXPECT_EQ(explanation.breaks.size(), 1u);
  EXPECT_EQ(f.compile_count(), 3);
}

TEST(AotAutogradFallbackTests, requires_grad_fake_via_dynamo_recompiles) {
  auto f = compile([](Tensor x, Tensor y) { return x + y; }, {.backend = "aot_eager"});
  f(randn({3, 3}), randn({3, 3}).set_requires_grad());
  f(randn({3, 3}), randn({3, 3}).set_requires_grad());
  EXPECT_EQ(f.compile_count(), 1);
  f(randn({3, 3}), randn({3, 3}));
  EXPECT_EQ(f.compile_count(), 2);
  EXPECT_EQ(last_reason(f.explain()), "tensor 'arg1' requires_grad mismatch. expected requires_grad=1");
}

TEST(AotAutogradFallbackTests, double_backward_errors) {
  const std::string refusal = "torch.compile with aot_autograd does not currently support double backward";
  for (const char* backend : {"aot_eager", "inductor"})
    for (bool with_gradient : {true, false}) {
      CompileOptions options{.backend = backend, .double_backward = DoubleBackward::Refuse};
      Tensor given = ones({}).set_requires_grad(), x = ones({}).set_requires_grad();
      auto slope = [&](const Tensor& y, const Tensor& of, bool create_graph) {
        std::vector<Tensor> gradients;
        if (with_gradient) gradients.push_back(given);
        return autograd::grad(std::vector{y}, std::vector{of}, gradients, create_graph, create_graph)[0];
      };
      auto refused = [&](auto&& action) {
        std::string error = error_of(action);
        EXPECT_NE(error.find(refusal), std::string::npos) << error;
      };
      // All of it inside the compiled function.
      auto f1 = [&](Tensor a) {
        Tensor gx = slope(a.sin().exp(), a, true);
        autograd::grad({gx}, {a});
        return gx;
      };
      f1(x);
      refused([&] { compile(f1, options)(x); });
      // The second half outside.
      Tensor gx = compile([&](Tensor a) { return slope(a.sin().exp(), a, true); }, options)(x);
      refused([&] { autograd::grad({gx}, {x}); });
      // All of it outside.
      auto f3 = compile([](Tensor a) { return a.sin().exp(); }, options);
      Tensor outside = slope(f3(x), x, true);
      refused([&] { autograd::grad({outside}, {x}); });
      // Once is allowed.
      Tensor expected = slope(x.sin().exp(), x, false);
      EXPECT_LT(testing::difference(slope(f3(x), x, false), expected), 1e-6);
    }
}

TEST(AotAutogradFallbackTests, arg_dupe_via_dynamo_recompiles) {
  auto function = [](Tensor x, Tensor y) {
    x.trunc_();
    y.trunc_();
    return x + y;
  };
  auto f = compile(function, {.backend = "aot_eager"});
  Tensor x = input(), y = input();
  auto eager = [&](Tensor a, Tensor b) { return function(a, b); };
  f(x.clone(), y.clone());
  f(x.clone(), y.clone());
  EXPECT_EQ(f.compile_count(), 1);
  EXPECT_EQ(last_reason(f.explain()), "");
  Tensor twice = x.clone(), again = x.clone();
  EXPECT_TRUE(same_bits(f(twice, twice).detach(), eager(again, again).detach()));
  EXPECT_EQ(f.compile_count(), 2);
  EXPECT_EQ(last_reason(f.explain()), "arg0 is arg1");
  f(x.clone(), y.clone());
  EXPECT_EQ(f.compile_count(), 2) << "the first graph still serves";
}

TEST(AotAutogradFallbackTests, arg_dupe_via_dynamo_recompiles_many_args) {
  auto f = compile(
      [](Tensor a, Tensor b, Tensor c, Tensor d) {
        a.trunc_();
        b.trunc_();
        c.trunc_();
        d.trunc_();
        return a + b + c + d;
      },
      {.backend = "aot_eager"});
  Tensor a1 = input().clone(), a2 = input().clone(), b2 = input().clone();
  f(a1, a1, a1, a1);
  f(a2, b2, b2, b2);
  EXPECT_EQ(f.compile_count(), 2);
  EXPECT_EQ(last_reason(f.explain()), "arg0 is not arg1");
  Tensor a3 = input().clone(), b3 = input().clone();
  Tensor expected = a3.detach().trunc() + b3.detach().trunc() * 3;
  EXPECT_LT(testing::difference(f(a3, b3, b3, b3).detach(), expected), 1e-6);
  EXPECT_EQ(f.compile_count(), 2);
  Tensor a4 = input().clone(), b4 = input().clone();
  f(a4, b4, a4, b4);
  EXPECT_EQ(f.compile_count(), 3);
}

struct Shifted : nn::Module {
  Cell<Tensor> mean = parameter("mean", randn({3, 3}));
  Tensor operator()(const Tensor& a, const Tensor& b) const {
    a.trunc_();
    b.trunc_();
    return a + b + mean.get();
  }
};

TEST(AotAutogradFallbackTests, arg_dupe_via_dynamo_recompiles_many_args_param) {
  Shifted module;
  auto f = compile([&](Tensor a, Tensor b) { return module(a, b); }, {.backend = "aot_eager"});
  Tensor a1 = input().clone(), a2 = input().clone(), b2 = input().clone();
  f(a1, a1);
  f(a2, b2);
  EXPECT_EQ(f.compile_count(), 2);
  EXPECT_EQ(last_reason(f.explain()), "arg0 is not arg1");
}

TEST(AotAutogradFallbackTests, arg_dupe_via_dynamo_recompiles_many_args_param_non_tensor_arg) {
  Shifted module;
  auto f =
      compile([&](Tensor a, Tensor b, int64_t e, int64_t g) { return module(a, b) * e * g; }, {.backend = "aot_eager"});
  Tensor a1 = input().clone(), a2 = input().clone(), b2 = input().clone();
  f(a1, a1, int64_t{2}, int64_t{2});
  f(a2, b2, int64_t{2}, int64_t{2});
  EXPECT_EQ(f.compile_count(), 2);
  EXPECT_EQ(last_reason(f.explain()), "arg0 is not arg1");
  f(input().clone(), input().clone(), int64_t{3}, int64_t{2});
  EXPECT_EQ(f.compile_count(), 3);
  EXPECT_EQ(last_reason(f.explain()), "number 0: expected 2, got 3");
}

TEST(AotAutogradFallbackTests, arg_dupe_via_dynamo_recompiles_many_args_param_non_tensor_arg_list) {
  Shifted module;
  using Numbers = std::vector<int64_t>;
  std::string reason;
  CompileOptions options{.backend = "aot_eager"};
  options.guard_fail = [&](const std::string& why) { reason = why; };
  options.argument_names = {"a", "b"};
  auto f = compile([&](Numbers e, Numbers g, Tensor a, Tensor b) { return module(a, b) * e[0] * g[0]; }, options);
  Tensor a1 = input().clone(), a2 = input().clone(), b2 = input().clone();
  f(Numbers{3, 2, 1}, Numbers{4, 5, 6}, a1, a1);
  EXPECT_EQ(reason, "");
  f(Numbers{3, 2, 1}, Numbers{4, 5, 6}, a2, b2);
  EXPECT_EQ(f.compile_count(), 2);
  EXPECT_EQ(reason, "a is not b");
  f.reset();
  f(Numbers{3, 2, 1}, Numbers{4, 5, 6}, input().clone(), input().clone());
  Tensor same = input().clone();
  f(Numbers{3, 2, 1}, Numbers{4, 5, 6}, same, same);
  EXPECT_EQ(f.compile_count(), 2);
  EXPECT_EQ(reason, "a is b");
}

TEST(AotAutogradFallbackTests, arg_dupe_via_dynamo_recompiles_many_with_global) {
  Shifted module;
  Tensor global = input();
  auto f = compile([&](Tensor a, Tensor b, int64_t e, int64_t g) { return (module(a, b) + global) * e * g; },
                   {.backend = "aot_eager"});
  {
    Tensor a1 = input().clone(), a2 = input().clone(), b2 = input().clone();
    f(a1, a1, int64_t{2}, int64_t{2});
    f(a2, b2, int64_t{2}, int64_t{2});
    EXPECT_EQ(f.compile_count(), 2);
    EXPECT_EQ(last_reason(f.explain()), "arg0 is not arg1");
  }
  // The global given as an argument is the same tensor under two names, and another graph.
  Tensor changed = input().clone();
  global = changed;
  Tensor b3 = input().clone();
  Tensor expected = (changed.detach().trunc() * 2 + b3.detach().trunc() + module.mean.get().detach()) * 4;
  EXPECT_LT(testing::difference(f(changed, b3, int64_t{2}, int64_t{2}).detach(), expected), 1e-6);
  EXPECT_EQ(f.compile_count(), 3);
}

TEST(AotAutogradFallbackTests, aot_grad_mode_mutation) {
  // Grad mode at the call decides; a change inside the function is part of the graph and ends with it.
  auto f = compile(
      [](Tensor x) {
        Tensor y = x * 2;
        {
          NoGrad off;
          y = y * 3;
        }
        return y;
      },
      {.backend = "aot_eager"});
  Tensor x = randn({3}).set_requires_grad();
  EXPECT_FALSE(f(x).requires_grad());
  EXPECT_TRUE(autograd::grad_enabled());
  {
    NoGrad off;
    EXPECT_FALSE(f(x).requires_grad());
    EXPECT_FALSE(autograd::grad_enabled());
  }
  EXPECT_EQ(f.compile_count(), 2);
}

TEST(AotAutogradFallbackTests, data_ptr_access_fails_in_forward) {
  auto f = compile(
      [](Tensor x) {
        x.raw_data();
        return x.clone();
      },
      {.backend = "aot_eager"});
  EXPECT_EQ(error_of([&] { f(randn({3})); }), "[data] a fake tensor float32[3] has no data");
}

}  // namespace
}  // namespace tenon
