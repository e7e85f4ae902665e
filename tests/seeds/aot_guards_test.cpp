// Seed 002: a call that a compiled graph does not fit is compiled anew, and says why: `requires_grad`, and one tensor
// given as two arguments.
#include "aot.h"

namespace tenon {
namespace {

using testing::copy_of;
using testing::HasSubstr;
using testing::leaf;
using testing::on_both_backends;
using testing::Reason;
using testing::same_bits;

// Results and gradients of both functions on copies of these inputs.
template <typename F, typename G>
void expect_same_results_and_gradients(const F& function, const G& compiled, const std::vector<Tensor>& inputs) {
  auto run = [&](const auto& which) {
    std::vector<Tensor> fresh, found;
    for (const Tensor& input : inputs) fresh.push_back(input.detach().clone().set_requires_grad(input.requires_grad()));
    auto [result] = which(fresh[0], fresh[1]);
    result.sum().backward();
    found.push_back(result.detach());
    for (const Tensor& each : fresh) found.push_back(each.requires_grad() ? each.grad() : each);
    return found;
  };
  std::vector<Tensor> expected = run(function), found = run(compiled);
  for (size_t at = 0; at < expected.size(); ++at) EXPECT_TRUE(same_bits(found[at], expected[at]));
}

TEST(AotAutogradFallbackTests, requires_grad_fake_via_dynamo_recompiles) {
  auto function = [](Tensor x, Tensor y) { return std::tuple(x + y); };
  on_both_backends([&](const char* backend) {
    Tensor x = leaf({3, 3}), y = leaf({3, 3}), z = randn({3, 3});
    Reason reason;
    auto fxy = compile(function, reason.options(backend, {"x", "y"}));
    expect_same_results_and_gradients(function, fxy, {x, y});
    expect_same_results_and_gradients(function, fxy, {x, z});
    EXPECT_THAT(reason.text, HasSubstr("tensor 'y' requires_grad mismatch. expected requires_grad=1"));
    EXPECT_EQ(fxy.compile_count(), 2);

    reason.text.clear();
    auto fxz = compile(function, reason.options(backend, {"x", "y"}));
    expect_same_results_and_gradients(function, fxz, {x, z});
    expect_same_results_and_gradients(function, fxz, {x, z});
    EXPECT_EQ(fxz.compile_count(), 1);
    EXPECT_EQ(reason.text, "");
  });
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
        std::string error = testing::error_of(action);
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
    x = x.trunc_();
    y = y.trunc_();
    return std::tuple(x + y);
  };
  on_both_backends([&](const char* backend) {
    Tensor x = leaf({3, 3}), y = leaf({3, 3});
    Reason reason;
    auto fxy = compile(function, reason.options(backend, {"x", "y"}));
    fxy(copy_of(x), copy_of(y));
    fxy(copy_of(x), copy_of(y));
    EXPECT_EQ(reason.text, "");
    EXPECT_EQ(fxy.compile_count(), 1);

    auto fxx = compile(function, reason.options(backend, {"x", "y"}));
    Tensor x3 = copy_of(x), again = copy_of(x), x4 = copy_of(x), y4 = copy_of(y);
    EXPECT_TRUE(same_bits(std::get<0>(fxx(x3, x3)).detach(), std::get<0>(function(again, again)).detach()));
    EXPECT_TRUE(same_bits(std::get<0>(fxx(x4, y4)).detach(), x.detach().trunc() + y.detach().trunc()));
    EXPECT_EQ(fxx.compile_count(), 2);
    EXPECT_THAT(reason.text, HasSubstr("x is y"));
  });
}

TEST(AotAutogradFallbackTests, arg_dupe_via_dynamo_recompiles_many_args) {
  auto function = [](Tensor a, Tensor b, Tensor c, Tensor d) {
    for (const Tensor& each : {a, b, c, d}) each.trunc_();
    return std::tuple(a + b + c + d);
  };
  on_both_backends([&](const char* backend) {
    Tensor a = leaf({3, 3}), b = leaf({3, 3}), c = leaf({3, 3}), d = leaf({3, 3});
    auto cut = [](const Tensor& tensor) { return tensor.detach().trunc(); };
    Reason reason;
    auto f = compile(function, reason.options(backend, {"a", "b", "c", "d"}));
    Tensor a1 = copy_of(a), a2 = copy_of(a), b2 = copy_of(b);
    EXPECT_TRUE(same_bits(std::get<0>(f(a1, a1, a1, a1)).detach(), cut(a) * 4));
    EXPECT_TRUE(same_bits(std::get<0>(f(a2, b2, b2, b2)).detach(), cut(a) + cut(b) + cut(b) + cut(b)));
    EXPECT_EQ(f.compile_count(), 2);
    EXPECT_THAT(reason.text, HasSubstr("a is b"));

    f = compile(function, reason.options(backend, {"a", "b", "c", "d"}));
    Tensor c3 = copy_of(c);
    EXPECT_TRUE(same_bits(std::get<0>(f(copy_of(a), copy_of(b), c3, c3)).detach(), cut(a) + cut(b) + cut(c) + cut(c)));
    EXPECT_TRUE(same_bits(std::get<0>(f(copy_of(a), copy_of(b), copy_of(c), copy_of(d))).detach(),
                          cut(a) + cut(b) + cut(c) + cut(d)));
    EXPECT_EQ(f.compile_count(), 2);
    EXPECT_THAT(reason.text, HasSubstr("c is d"));
  });
}

struct Shifted : nn::Module {
  Cell<Tensor> mean = parameter("mean", randn({3, 3}));
  Tensor operator()(const Tensor& a, const Tensor& b) const {
    a.trunc_();
    b.trunc_();
    return a + b + mean.get();
  }
};

// Twice, with other tensors: one tensor as both arguments, then two. `call(f, a, b)` makes the call.
template <typename Make, typename Call>
void expect_two_compiles(const char* backend, Make make, Call call) {
  for (int round = 0; round < 2; ++round) {
    Reason reason;
    Shifted module;
    auto f = make(module, reason.options(backend, {"a", "b"}));
    Tensor a = leaf({3, 3}), b = leaf({3, 3}), both = copy_of(a);
    EXPECT_EQ(reason.text, "");
    call(module, f, both, both);
    call(module, f, copy_of(a), copy_of(b));
    EXPECT_EQ(f.compile_count(), 2);
    EXPECT_THAT(reason.text, HasSubstr("a is b"));
  }
}

// What the module gives, by its definition; both arguments have been cut by the call.
Tensor shifted(const Shifted& module, const Tensor& a, const Tensor& b) { return (a + b + module.mean.get()).detach(); }

TEST(AotAutogradFallbackTests, arg_dupe_via_dynamo_recompiles_many_args_param) {
  on_both_backends([](const char* backend) {
    expect_two_compiles(
        backend,
        [](Shifted& module, CompileOptions options) {
          return compile([module](Tensor a, Tensor b) { return module(a, b); }, options);
        },
        [](const Shifted& module, auto& f, const Tensor& a, const Tensor& b) {
          Tensor result = f(a, b).detach();
          EXPECT_TRUE(same_bits(result, shifted(module, a, b)));
        });
  });
}

TEST(AotAutogradFallbackTests, arg_dupe_via_dynamo_recompiles_many_args_param_non_tensor_arg) {
  on_both_backends([](const char* backend) {
    int64_t factor = 2;  // 3 in the second round, as two compiles of their own
    expect_two_compiles(
        backend,
        [](Shifted& module, CompileOptions options) {
          return compile([module](Tensor a, Tensor b, int64_t e, int64_t g) { return module(a, b) * e * g; }, options);
        },
        [&](const Shifted& module, auto& f, const Tensor& a, const Tensor& b) {
          Tensor result = f(a, b, factor, factor).detach();
          EXPECT_TRUE(same_bits(result, shifted(module, a, b) * factor * factor));
          factor += a.is(b) ? 0 : 1;
        });
  });
}

TEST(AotAutogradFallbackTests, arg_dupe_via_dynamo_recompiles_many_args_param_non_tensor_arg_list) {
  using Numbers = std::vector<int64_t>;
  on_both_backends([](const char* backend) {
    expect_two_compiles(
        backend,
        [](Shifted& module, CompileOptions options) {
          return compile([module](Numbers e, Numbers g, Tensor a, Tensor b) { return module(a, b) * e[0] * g[0]; },
                         options);
        },
        [](const Shifted& module, auto& f, const Tensor& a, const Tensor& b) {
          Tensor result = f(Numbers{3, 2, 1}, Numbers{4, 5, 6}, a, b).detach();
          EXPECT_TRUE(same_bits(result, shifted(module, a, b) * 3 * 4));
        });
  });
}

TEST(AotAutogradFallbackTests, arg_dupe_via_dynamo_recompiles_many_with_global) {
  on_both_backends([](const char* backend) {
    Tensor a = leaf({3, 3}), b = leaf({3, 3});
    Tensor global = a;
    Shifted module;
    Reason reason;
    auto f = compile(
        [&](Tensor x, Tensor y, int64_t e, int64_t g) {
          x.trunc_();
          y.trunc_();
          return (x + y + global + module.mean.get()) * e * g;
        },
        reason.options(backend, {"a", "b"}));
    EXPECT_EQ(reason.text, "");
    auto expected = [&](const Tensor& x, const Tensor& y) {
      return ((x + y + global + module.mean.get()) * 2 * 2).detach();
    };
    Tensor a1 = copy_of(a), a2 = copy_of(a), b2 = copy_of(b);
    Tensor same = f(a1, a1, int64_t{2}, int64_t{2}).detach();
    EXPECT_TRUE(same_bits(same, expected(a1, a1)));
    Tensor apart = f(a2, b2, int64_t{2}, int64_t{2}).detach();
    EXPECT_TRUE(same_bits(apart, expected(a2, b2)));
    EXPECT_EQ(f.compile_count(), 2);
    EXPECT_THAT(reason.text, HasSubstr("a is b"));
  });
}

}  // namespace
}  // namespace tenon
