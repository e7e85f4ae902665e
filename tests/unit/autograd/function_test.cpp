#include "helpers.h"

#include <tenon/autograd/checkpoint.h>
#include <tenon/autograd/function.h>
#include <tenon/compat/torch.h>

#include <gmock/gmock.h>

namespace tenon::testing {
namespace {

using autograd::AutogradContext;
using ::testing::HasSubstr;

struct Product : autograd::Function<Product> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& y, double scale) {
    EXPECT_FALSE(autograd::grad_enabled());
    ctx->save_for_backward({x, y});
    ctx->saved_data["scale"] = scale;
    return x * y * scale;
  }
  static std::vector<Tensor> backward(AutogradContext* ctx, std::vector<Tensor> grads) {
    std::vector<Tensor> saved = ctx->saved_tensors();
    double scale = ctx->saved_data["scale"].real();
    Tensor x_grad = ctx->needs_input_grad(0) ? grads[0] * saved[1] * scale : Tensor();
    Tensor y_grad = ctx->needs_input_grad(1) ? grads[0] * saved[0] * scale : Tensor();
    return {x_grad, y_grad, Tensor()};
  }
};

TEST(Function, gradients_and_second_derivatives) {
  Tensor x = leaf({2, 3}), y = leaf({5, 7});
  Tensor z = Product::apply(x, y, 2.0);
  expect_near(z, {20, 42});
  std::vector<Tensor> first = autograd::grad({z.sum()}, {x, y}, {}, true, true);
  expect_near(first[0], {10, 14});
  expect_near(first[1], {4, 6});
  // d/dy of 2y summed
  expect_near(autograd::grad({first[0].sum()}, {y})[0], {2, 2});
}

TEST(Function, only_what_is_needed) {
  Tensor x = leaf({2, 3}), y = real({5, 7});
  Product::apply(x, y, 1.0).sum().backward();
  expect_near(x.grad(), {5, 7});
  EXPECT_FALSE(y.grad().defined());
  NoGrad off;
  EXPECT_FALSE(Product::apply(x, y, 1.0).requires_grad());
}

TEST(Function, saved_tensors_are_watched) {
  Tensor x = leaf({2, 3}), y = real({5, 7});
  Tensor z = Product::apply(x, y, 1.0);
  y.add_(1);
  EXPECT_THAT(error_of([&] { z.sum().backward(); }), HasSubstr("modified by an inplace operation"));
  Tensor w = Product::apply(x, y, 1.0).sum();
  w.backward();
  EXPECT_THAT(error_of([&] { w.backward(); }), HasSubstr("retain_graph"));
}

// The exponential, whose gradient is itself: saves its result.
struct Exponential : autograd::Function<Exponential> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    Tensor y = x.exp();
    ctx->save_for_backward({y});
    return y;
  }
  static std::vector<Tensor> backward(AutogradContext* ctx, std::vector<Tensor> grads) {
    return {grads[0] * ctx->saved_tensors()[0]};
  }
};

TEST(Function, a_saved_result_keeps_its_history) {
  Tensor x = leaf({0.5});
  Tensor y = Exponential::apply(x);
  Tensor first = autograd::grad({y}, {x}, {}, true, true)[0];
  expect_near(first, {std::exp(0.5)});
  expect_near(autograd::grad({first}, {x})[0], {std::exp(0.5)});
}

struct DoubleInPlace : autograd::Function<DoubleInPlace> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    x.mul_(2);
    ctx->mark_dirty({x});
    return x;
  }
  static std::vector<Tensor> backward(AutogradContext*, std::vector<Tensor> grads) { return {grads[0] * 2}; }
};

TEST(Function, mark_dirty) {
  Tensor x = leaf({1, 2});
  Tensor y = x * 3;
  Tensor z = DoubleInPlace::apply(y);
  EXPECT_TRUE(z.is(y));
  expect_near(y, {6, 12});
  y.sum().backward();
  expect_near(x.grad(), {6, 6});
  EXPECT_THAT(error_of([&] { DoubleInPlace::apply(x); }), HasSubstr("in-place operation"));
}

// Two results, of which the second carries no gradient.
struct Split : autograd::Function<Split> {
  static inline bool materialize = true;
  static inline bool second_defined = false;
  static std::vector<Tensor> forward(AutogradContext* ctx, const Tensor& x) {
    ctx->set_materialize_grads(materialize);
    Tensor sign = x.sign();
    ctx->mark_non_differentiable({sign});
    return {x.abs(), sign, x.clone()};
  }
  static std::vector<Tensor> backward(AutogradContext*, std::vector<Tensor> grads) {
    second_defined = grads[2].defined();
    return {grads[0]};
  }
};

TEST(Function, non_differentiable_and_materialized_gradients) {
  for (bool materialize : {true, false}) {
    Split::materialize = materialize;
    Tensor x = leaf({1, -2});
    std::vector<Tensor> parts = Split::apply(x);
    EXPECT_TRUE(parts[0].requires_grad());
    EXPECT_FALSE(parts[1].requires_grad());
    parts[0].sum().backward();
    EXPECT_EQ(Split::second_defined, materialize);
  }
}

struct TooFew : autograd::Function<TooFew> {
  static Tensor forward(AutogradContext*, const Tensor& x, const Tensor& y) { return x + y; }
  static std::vector<Tensor> backward(AutogradContext*, std::vector<Tensor> grads) { return {grads[0]}; }
};

TEST(Function, wrong_number_of_gradients) {
  Tensor x = leaf({1}), y = leaf({1});
  EXPECT_THAT(error_of([&] { TooFew::apply(x, y).backward(); }),
              HasSubstr("incorrect number of gradients (expected 2, got 1)"));
}

// In the words of libtorch: everything that a context may keep.
struct Keeper : public torch::autograd::Function<Keeper> {
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, const torch::Tensor& x,
                               const torch::Tensor& fixed) {
    ctx->save_for_backward({x});
    ctx->saved_data["fixed"] = fixed;
    ctx->saved_data["flag"] = true;
    ctx->saved_data["number"] = 3;
    c10::List<std::string> words({"one"});
    ctx->saved_data["words"] = std::move(words);
    c10::Dict<std::string, double> table;
    table.insert("key", 1.5);
    ctx->saved_data["table"] = std::move(table);
    return x;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    const auto& saved = ctx->get_saved_variables();
    TORCH_CHECK(saved.size() == 1);
    torch::Tensor fixed = ctx->saved_data["fixed"].toTensor();
    EXPECT_TRUE(ctx->saved_data["flag"].isBool());
    auto number = ctx->saved_data["number"].toInt();
    c10::List<c10::IValue> words = ctx->saved_data["words"].toList();
    EXPECT_EQ(words.size(), 1u);
    EXPECT_EQ(words.get(0).toStringRef(), "one");
    c10::Dict<c10::IValue, c10::IValue> table = ctx->saved_data["table"].toGenericDict();
    EXPECT_TRUE(table.at("key") == 1.5);
    torch::autograd::variable_list gradients(2);
    gradients[0] = grads[0] * (saved[0] + torch::sum(fixed) + number);
    return gradients;
  }
};

TEST(Compat, check_joins_its_words) {
  EXPECT_EQ(error_of([] { TORCH_CHECK(1 == 2, "expected ", 3, " words"); }), "expected 3 words");
  EXPECT_EQ(error_of([] { TORCH_CHECK(1 == 2); }), "expected 1 == 2 to be true");
}

TEST(Compat, everything_that_a_context_keeps) {
  Tensor x = leaf({1, 2});
  Keeper::apply(x, real({10, 20})).sum().backward();
  expect_near(x.grad(), {34, 35});
}

// What forward saves of its results does not hold the node that they lead to, however its call ended.
struct SavesResults : autograd::Function<SavesResults> {
  static inline std::vector<WeakRef<TensorImpl>> made;
  static std::vector<Tensor> forward(AutogradContext* ctx, const Tensor& x) {
    std::vector<Tensor> results = {x.exp(), x * 2};
    ctx->save_for_backward(results);
    ctx->save_for_forward(results);
    for (const Tensor& each : results) made.emplace_back(each.ref());
    return results;
  }
  static std::vector<Tensor> backward(AutogradContext* ctx, std::vector<Tensor> grads) {
    std::vector<Tensor> saved = ctx->saved_tensors();
    return {grads[0] * saved[0] + grads[1] * 2};
  }
};

TEST(Function, results_that_were_saved_are_freed) {
  auto all_are_gone = [] {
    bool gone = !SavesResults::made.empty();
    for (const WeakRef<TensorImpl>& each : SavesResults::made) gone &= each.expired();
    SavesResults::made.clear();
    return gone;
  };
  Tensor x = leaf({0, 1});
  SavesResults::apply(x)[1].sum().backward();
  EXPECT_TRUE(all_are_gone());
  // A checkpoint that computes them again stops as soon as all is there that it needs: in the middle of saving.
  auto run = [](const Tensor& at) { return SavesResults::apply(at)[0]; };
  autograd::checkpoint(run, x).sum().backward();
  EXPECT_TRUE(all_are_gone());
}

}  // namespace
}  // namespace tenon::testing
