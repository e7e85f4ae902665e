// `autograd::Function` inside compiled functions: one graph, with the user's backward.
#include <tenon/compat/torch.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends.h"

namespace tenon::library {
namespace {

using autograd::AutogradContext;
using tenon::testing::kBackends;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<double> values(const Tensor& tensor) {
  NoGrad off;
  Tensor plain = tensor.detach().to(kFloat64).contiguous();
  return {plain.data<double>(), plain.data<double>() + plain.numel().plain()};
}

// The function on its own and compiled by every backend, in one graph: results and gradients agree.
template <typename F>
void expect_same(F f, const std::vector<Tensor>& inputs) {
  auto fresh = [&] {
    std::vector<Tensor> leaves;
    for (const Tensor& input : inputs) {
      leaves.push_back(input.clone());
      if (input.requires_grad()) leaves.back() = leaves.back().detach().set_requires_grad();
    }
    return leaves;
  };
  auto run = [&](auto&& function, std::vector<Tensor> leaves) {
    Tensor result = function(leaves);
    std::vector<std::vector<double>> found{values(result)};
    if (result.requires_grad()) result.sum().backward();
    for (const Tensor& leaf : leaves) {
      found.push_back(values(leaf));
      found.push_back(leaf.grad().defined() ? values(leaf.grad()) : std::vector<double>{});
    }
    return found;
  };
  auto expected = run(f, fresh());
  for (const char* backend : kBackends) {
    auto compiled = compile(f, {.fullgraph = true, .backend = backend});
    for (int round = 0; round < 2; ++round) EXPECT_EQ(run(compiled, fresh()), expected) << backend;
    EXPECT_EQ(compiled.compile_count(), 1) << backend;
  }
}

Tensor leaf(std::initializer_list<float> numbers) { return tensor(numbers).set_requires_grad(); }

// A backward that no formula of an operator would give.
struct Twice : autograd::Function<Twice> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 2; }
  static std::vector<Tensor> backward(AutogradContext*, std::vector<Tensor> grads) { return {grads[0] * 10}; }
};

TEST(CompiledFunction, keeps_the_backward_of_the_user) {
  expect_same([](std::vector<Tensor> in) { return Twice::apply(in[0] + 1).sin(); }, {leaf({1, 2})});
  auto f = compile([](Tensor x) { return Twice::apply(x).sum(); }, {.fullgraph = true});
  Tensor x = leaf({1, 1});
  f(x).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{10, 10}));
  // Nothing to record: plain operators.
  EXPECT_EQ(f(tensor({1.f, 1.f})).item<double>(), 4);
}

struct Everything : autograd::Function<Everything> {
  static std::vector<Tensor> forward(AutogradContext* ctx, const Tensor& x, double scale,
                                     const std::optional<Tensor>& y, const std::vector<Tensor>& list,
                                     const std::string& mode) {
    Tensor z = (x * scale).exp(), count = list[0] > 0;
    ctx->save_for_backward({x, z, Tensor(), list[1]});
    ctx->mark_non_differentiable({count});
    ctx->set_materialize_grads(false);
    ctx->saved_data["scale"] = scale;
    ctx->saved_data["mode"] = mode;
    ctx->saved_data["sizes"] = AnyValue::List{AnyValue(x.size(0)), AnyValue(true), AnyValue()};
    ctx->saved_data["dict"] = AnyValue::Dict{{"x", x * 3}, {2, -0.25}};
    EXPECT_EQ(ctx->needs_input_grads(3), (std::vector<bool>{true, false}));
    return {y ? z + *y : z, count, list[0] * list[1]};
  }
  static std::vector<Tensor> backward(AutogradContext* ctx, std::vector<Tensor> grads) {
    std::vector<Tensor> saved = ctx->saved_tensors();
    EXPECT_FALSE(saved[2].defined());
    EXPECT_FALSE(grads[1].defined());
    EXPECT_FALSE(grads[2].defined());  // nobody used the third result
    EXPECT_EQ(ctx->saved_data["mode"].string(), "a mode: with spaces");
    EXPECT_TRUE(ctx->saved_data["sizes"].list()[1].boolean());
    EXPECT_TRUE(ctx->saved_data["sizes"].list()[2].is_none());
    const AnyValue& dict = ctx->saved_data["dict"];
    Tensor x_grad =
        grads[0] * saved[1] * ctx->saved_data["scale"].real() + dict.find("x")->tensor() * dict.find(2)->real();
    return {x_grad * Scalar(ctx->saved_data["sizes"].list()[0].sym_int()),
            Tensor(),
            grads[0] * saved[3],
            saved[0],
            Tensor(),
            Tensor()};
  }
};

TEST(CompiledFunction, context_reaches_backward) {
  auto f = [](std::vector<Tensor> in) {
    std::vector<Tensor> out = Everything::apply(in[0], 0.5, std::optional<Tensor>(in[1]),
                                                std::vector<Tensor>{in[2], in[3]}, std::string("a mode: with spaces"));
    return out[0] * 2 + out[1].to(kFloat32);
  };
  expect_same(f, {leaf({1, 2, 3}), leaf({4, 5, 6}), leaf({7, -8, 9}), tensor({1.f, 2.f, 3.f})});
}

// Sizes that are symbols when it is captured.
TEST(CompiledFunction, takes_symbolic_sizes) {
  struct Mean : autograd::Function<Mean> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x) {
      ctx->saved_data["count"] = x.size(0);
      ctx->save_for_backward({x});
      return x.sum() / Scalar(x.size(0));
    }
    static std::vector<Tensor> backward(AutogradContext* ctx, std::vector<Tensor> grads) {
      return {(grads[0] * Scalar(ctx->saved_data["count"].sym_int())).expand({ctx->saved_tensors()[0].size(0)})};
    }
  };
  for (const char* backend : kBackends) {
    auto f = compile([](Tensor x) { return Mean::apply(x * 2); },
                     {.fullgraph = true, .dynamic = Dynamic::On, .backend = backend});
    for (int64_t count : {3, 5, 6}) {
      Tensor x = ones({count}).set_requires_grad();
      Tensor y = f(x);
      EXPECT_EQ(y.item<double>(), 2) << backend;
      y.backward();
      EXPECT_EQ(values(x.grad()), std::vector<double>(static_cast<size_t>(count), 2.0 * static_cast<double>(count)))
          << backend;
    }
    EXPECT_EQ(f.compile_count(), 1) << backend;
  }
}

struct DoubleInPlace : autograd::Function<DoubleInPlace> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    x.mul_(2);
    ctx->mark_dirty({x});
    return x;
  }
  static std::vector<Tensor> backward(AutogradContext*, std::vector<Tensor> grads) { return {grads[0] * 7}; }
};

TEST(CompiledFunction, writes_to_its_argument) {
  expect_same(
      [](std::vector<Tensor> in) {
        Tensor x = in[0] * 1;
        DoubleInPlace::apply(x);
        return x.sin();
      },
      {leaf({1, 2})});
}

// Returns its argument as it is, and a view of it.
struct Pass : autograd::Function<Pass> {
  static std::vector<Tensor> forward(AutogradContext*, const Tensor& x) { return {x, x.view({-1})}; }
  static std::vector<Tensor> backward(AutogradContext*, std::vector<Tensor> grads) {
    return {grads[0] * 5 + grads[1].view({2, 1})};
  }
};

TEST(CompiledFunction, returns_its_argument) {
  expect_same(
      [](std::vector<Tensor> in) {
        std::vector<Tensor> out = Pass::apply(in[0] * 2);
        return out[0].sum() + (out[1] * 3).sum();
      },
      {leaf({1, 2}).detach().view({2, 1}).set_requires_grad()});
}

// Reads a tensor that is no argument, and calls another function.
TEST(CompiledFunction, reaches_outside) {
  static Tensor outside;
  outside = tensor({3.f, 4.f});
  struct Outside : autograd::Function<Outside> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x) {
      ctx->saved_data["outside"] = outside;
      return Twice::apply(x) * outside;
    }
    static std::vector<Tensor> backward(AutogradContext* ctx, std::vector<Tensor> grads) {
      return {Twice::apply(grads[0]) * ctx->saved_data["outside"].tensor()};
    }
  };
  expect_same([](std::vector<Tensor> in) { return Outside::apply(in[0]).cos(); }, {leaf({1, 2})});
  outside = Tensor();
}

TEST(CompiledFunction, stands_in_the_graph_by_name) {
  struct Halved : autograd::Function<Halved> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x) {
      ctx->saved_data["by"] = 0.5;
      return x / 2;
    }
    static std::vector<Tensor> backward(AutogradContext*, std::vector<Tensor> grads) { return {grads[0].sin()}; }
  };
  auto f = compile([](Tensor x) { return Halved::apply(x); }, {.fullgraph = true});
  f(leaf({1, 2}));
  Explanation::Entry entry = f.explain().entries.at(0);
  EXPECT_EQ(
      entry.captured,
      "graph(%arg0: float32[2])\n"
      "  %1 = aten::div.Scalar(%arg0, 2) : float32[2]  [no_grad]\n"
      "  %2 = tenon::function.Halved([%arg0], [%1], [], [1], \"l7 l1 # l0 l0 l0 t d1 s2:by r0x1p-1 t\") : float32[2]\n"
      "  return (%2)\n");
  EXPECT_THAT(entry.joint, HasSubstr("aten::sin(%tangent0)"));
  EXPECT_THAT(entry.joint, Not(HasSubstr("tenon::function")));
}

}  // namespace
}  // namespace tenon::library
