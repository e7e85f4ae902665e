// Formulas of custom operators: lists, optional tensors, several results, and what is refused.
#include <tenon/library/custom_op.h>
#include <tenon/opcheck/opcheck.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "error_of.h"
#include "values_of.h"

namespace tenon::library {
namespace {

using ::testing::HasSubstr;

using tenon::testing::error_of;
using tenon::testing::values;

Tensor leaf(float value) { return tensor({value}).set_requires_grad(); }

// The sum of a list times a number, and its elements one by one.
auto make_gather() {
  return custom_op("formula_test::gather",
                   [](const std::vector<Tensor>& xs, const std::optional<Tensor>& bias, double by) {
                     Tensor sum = xs[0] * by;
                     std::vector<Tensor> each;
                     for (size_t at = 1; at < xs.size(); ++at) sum = sum + xs[at] * by;
                     for (const Tensor& x : xs) each.push_back(x * by);
                     return std::tuple<Tensor, std::vector<Tensor>>(bias ? sum + *bias : sum, each);
                   },
                   {.names = "xs, bias, by"});
}

TEST(Formula, lists_in_and_out) {
  auto gather = make_gather();
  std::vector<bool> needed;
  gather.register_autograd(
      [&](AutogradContext& ctx, const std::vector<AnyValue>& grads) {
        needed = ctx.needs_input_grads(0);
        EXPECT_TRUE(grads[0].is_tensor());
        double by = ctx.saved_data["by"].real();
        AnyValue::List lists;
        for (const AnyValue& grad : grads[1].list()) lists.emplace_back((grads[0].tensor() + grad.tensor()) * by);
        return std::vector<AnyValue>{AnyValue(lists), grads[0]};
      },
      [](AutogradContext& ctx, const Inputs& inputs, Outputs outputs) {
        EXPECT_EQ(outputs.size(), 2u);
        ctx.saved_data["by"] = inputs["by"].real();
      });
  Tensor a = leaf(1), b = tensor({2.f}), c = leaf(3), bias = leaf(10);
  auto [sum, each] = gather(std::vector<Tensor>{a, b, c}, bias, 5.0);
  EXPECT_EQ(values(sum), std::vector<double>{40});
  (sum * 2 + each[2] * 7).sum().backward();
  EXPECT_EQ(values(a.grad()), std::vector<double>{10});
  EXPECT_EQ(values(c.grad()), std::vector<double>{45});
  EXPECT_EQ(values(bias.grad()), std::vector<double>{2});
  EXPECT_EQ(needed, (std::vector<bool>{true, false, true}));
}

TEST(Formula, wrong_gradients_are_refused) {
  auto gather = make_gather();
  auto run = [&](std::vector<AnyValue> result) {
    gather.register_autograd([result](AutogradContext&, const std::vector<AnyValue>&) { return result; });
    Tensor a = leaf(1), b = leaf(2);
    auto [sum, each] = gather(std::vector<Tensor>{a, b}, std::nullopt, 5.0);
    return error_of([&] { sum.backward(); });
  };
  Tensor g = tensor({1.f});
  auto list = [](std::initializer_list<AnyValue> items) { return AnyValue(AnyValue::List(items)); };
  EXPECT_THAT(run({AnyValue(g), AnyValue()}), HasSubstr("expected a list of gradients"));
  EXPECT_THAT(run({list({AnyValue(g)}), AnyValue()}), HasSubstr("expected a list of 2 gradients but got 1"));
  EXPECT_THAT(run({list({AnyValue(g), AnyValue(3)}), AnyValue()}), HasSubstr("expected a tensor or nothing"));
  EXPECT_THAT(run({list({AnyValue(g), AnyValue()})}), HasSubstr("incorrect number of gradients (expected 3, got 1)"));
  EXPECT_THAT(run({list({AnyValue(g), AnyValue()}), AnyValue(), AnyValue(g)}), HasSubstr("'by', which is no tensor"));
  EXPECT_EQ(run({list({AnyValue(g), AnyValue()}), AnyValue()}), "no error");
}

TEST(Formula, of_operators_that_cannot_have_one) {
  dispatch::Library lib("formula_test");
  auto formula = [](AutogradContext&, const Tensor& grad) { return grad; };
  for (const char* schema : {"f(Tensor(a!) x) -> Tensor", "g(Tensor(a) x) -> Tensor(a)", "h(Tensor x) -> ()"}) {
    auto& op = lib.def(schema);
    EXPECT_THAT(error_of([&] { register_autograd(op, formula, &lib); }), HasSubstr("non-functional")) << schema;
  }
}

TEST(Formula, gradients_in_a_tuple) {
  auto op = custom_op("formula_test::times", [](const Tensor& x, const Tensor& y, double by) { return x * y * by; });
  op.register_autograd(
      [](AutogradContext& ctx, const Tensor& grad) {
        std::vector<Tensor> saved = ctx.saved_tensors();
        return std::tuple(grad * saved[1] * 2, grad * saved[0] * 2, AnyValue());
      },
      [](AutogradContext& ctx, const Inputs& inputs, Outputs) {
        ctx.save_for_backward({inputs[0].tensor(), inputs[1].tensor()});
      });
  Tensor x = leaf(3), y = leaf(5);
  op(x, y, 2.0).backward();
  EXPECT_EQ(values(x.grad()), std::vector<double>{10});
  EXPECT_EQ(values(y.grad()), std::vector<double>{6});
}

TEST(Formula, differentiates_twice) {
  auto square = custom_op("formula_test::square", [](const Tensor& x) { return x * x; }, {.names = "x"});
  square.register_autograd(
      [](AutogradContext& ctx, const Tensor& grad) { return grad * ctx.saved_tensors()[0] * 2; },
      [](AutogradContext& ctx, const Inputs& inputs, Outputs) { ctx.save_for_backward({inputs[0].tensor()}); });
  Tensor x = leaf(3);
  Tensor first = autograd::grad({square(x)}, {x}, {}, true, true)[0];
  EXPECT_EQ(values(first), std::vector<double>{6});
  EXPECT_EQ(values(autograd::grad({first}, {x})[0]), std::vector<double>{2});
}

TEST(CustomOp, is_replaced_while_others_call) {
  auto number = [](double result) { return [result](const Tensor& x) { return x * 0 + result; }; };
  auto op = custom_op("autograd_test::replaced", number(1), {.names = "x"});
  auto backward = [](double factor) {
    return [factor](AutogradContext&, const Tensor& grad) { return grad * factor; };
  };
  op.register_fake([](const Tensor& x) { return empty_like(x); });
  op.register_autograd(backward(1));
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0}, calls{0};
  std::vector<std::jthread> callers;
  struct Stop {  // before they are waited for, however this ends
    std::atomic<bool>& stop;
    ~Stop() { stop = true; }
  } stopping{stop};
  for (int thread = 0; thread < 2; ++thread)
    callers.emplace_back([&] {
      while (!stop) {
        Tensor x = ones({2}).set_requires_grad();
        Tensor y = op(x).sum();
        y.backward();
        double got = y.item<double>(), slope = x.grad().sum().item<double>();
        wrong += (got != 2 && got != 4) || (slope != 2 && slope != 4);
        ++calls;
      }
    });
  for (int round = 0; round < 200; ++round) {
    op.register_kernel("default", number(round % 2 + 1));
    op.register_autograd(backward(round % 2 + 1));
    op.register_fake([](const Tensor& x) { return empty_like(x); });
  }
  while (calls < 20) std::this_thread::yield();
  stop = true;
  for (std::jthread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
  destroy_custom_op("autograd_test::replaced");
  EXPECT_EQ(dispatch::retired_count(), 0u);
}

// An operator without a formula may differentiate what it computes for itself.
TEST(CustomOp, a_kernel_differentiates) {
  dispatch::Library lib("formula_test");
  lib.def("slope(Tensor x) -> Tensor");
  lib.impl(
      "slope",
      [](const Tensor& x) {
        EnableGrad on;
        Tensor t = x.detach().clone().set_requires_grad();
        return autograd::grad({(t * t * t).sum()}, {t})[0];
      },
      dispatch::KernelKey::CPU);
  Tensor x = tensor({1.f, 2.f});
  auto slope = [](const Tensor& t) {
    return dispatch::call_by_name("formula_test::slope", {dispatch::Value(t)})[0].take_tensor();
  };
  EXPECT_EQ(values(slope(x)), (std::vector<double>{3, 12}));
  EXPECT_FALSE(slope(x).requires_grad());
  NoGrad off;
  EXPECT_EQ(values(slope(x)), (std::vector<double>{3, 12}));
}

// The same under `compile`, whichever key the kernel has, and whether or not an argument requires grad: the operator
// has no gradient, also where what its kernel calls has one.
TEST(CustomOp, a_kernel_differentiates_within_a_compiled_function) {
  dispatch::Library lib("formula_test");
  lib.def("pull(Tensor x, float k) -> Tensor");
  lib.def("everywhere(Tensor x, float k) -> Tensor");
  auto pull = [](const Tensor& x, double k) {
    EnableGrad on;
    Tensor at = x.detach().set_requires_grad();
    return x.sin() - autograd::grad({(at.square() * k + at.cos()).sum()}, {at})[0];
  };
  lib.impl("pull", pull, dispatch::KernelKey::CPU);
  lib.impl("everywhere", pull, dispatch::KernelKey::CompositeExplicitAutograd);
  library::register_fake("formula_test::pull", [](const Tensor& x, double) { return empty_like(x); }, &lib);
  for (const char* name : {"formula_test::pull", "formula_test::everywhere"}) {
    auto f = [name](const Tensor& x) {
      return dispatch::call_by_name(name, {dispatch::Value(x * 2), dispatch::Value(0.5)})[0].take_tensor() + x;
    };
    for (const char* backend : {"inductor", "aot_eager", "eager"}) {
      auto compiled = compile(f, {.fullgraph = true, .backend = backend});
      for (int64_t n : {3, 5, 3}) {
        Tensor x = linspace(0, 1, n), y = x.clone().set_requires_grad();
        EXPECT_EQ(values(compiled(x)), values(f(x))) << name << " " << backend;
        Tensor result = compiled(y);
        EXPECT_EQ(values(result), values(f(y))) << name << " " << backend;
        EXPECT_EQ(values(autograd::grad({result.sum()}, {y})[0]), std::vector<double>(static_cast<size_t>(n), 1.0));
      }
    }
    EXPECT_FALSE(dispatch::call_by_name(name, {dispatch::Value(ones({2}).set_requires_grad()), dispatch::Value(0.5)})[0]
                     .tensor()
                     .requires_grad());
    library::opcheck(name, {dispatch::Value(linspace(0, 1, 4)), dispatch::Value(0.5)});
  }
}

TEST(CustomOp, a_removed_one_raises) {
  auto op = custom_op("formula_test::gone", [](const Tensor& x) { return x.clone(); });
  destroy_custom_op("formula_test::gone");
  EXPECT_THAT(error_of([&] { op(tensor({1.f})); }), HasSubstr("was removed"));
}

TEST(CustomOp, numbers_become_what_the_schema_says) {
  auto op = custom_op("formula_test::numbers",
                      [](const Tensor& x, double a, int64_t b, std::string_view text) {
                        return std::tuple<double, int64_t, std::string>(a + static_cast<double>(x.dim()), b + 1,
                                                                        std::string(text) + "!");
                      },
                      {.names = "x, a, b=4, text=\"hi\""});
  EXPECT_EQ(op(tensor({1.f}), 2, 3, "ho"), (std::tuple<double, int64_t, std::string>(3, 4, "ho!")));
  EXPECT_EQ(op(tensor({1.f}), 2), (std::tuple<double, int64_t, std::string>(3, 5, "hi!")));
  EXPECT_THAT(error_of([&] { op(tensor({1.f})); }), HasSubstr("argument 'a' is missing"));
}

}  // namespace
}  // namespace tenon::library
