// Custom operators inside compiled functions.
#include <tenon/dispatch/registration.h>
#include <tenon/library/custom_op.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends.h"
#include "error_of.h"
#include "values_of.h"

namespace tenon::library {
namespace {

using tenon::testing::kBackends;
using ::testing::HasSubstr;

using tenon::testing::error_of;
using tenon::testing::values;

Tensor add_plainly(const Tensor& x, double by) {
  Tensor from = x.contiguous(), to = empty_like(from);
  for (int64_t at = 0; at < from.numel().plain(); ++at)
    to.data<float>()[at] = from.data<float>()[at] + static_cast<float>(by);
  return to;
}

TEST(CompiledCustomOp, trains_through_its_formula) {
  auto cube = custom_op("compiled_test::cube",
                        [](const Tensor& x) {
                          Tensor from = x.contiguous(), to = empty_like(from);
                          for (int64_t at = 0; at < from.numel().plain(); ++at) {
                            float each = from.data<float>()[at];
                            to.data<float>()[at] = each * each * each;
                          }
                          return to;
                        },
                        {.names = "x"});
  cube.register_fake([](const Tensor& x) { return empty_like(x.contiguous()); });
  cube.register_autograd(
      [](AutogradContext& ctx, const Tensor& grad) {
        Tensor x = ctx.saved_tensors()[0];
        return grad * x * x * 3;
      },
      [](AutogradContext& ctx, const Inputs& inputs, Outputs) { ctx.save_for_backward({inputs["x"].tensor()}); });
  auto f = [&](Tensor x) { return (cube(x * 2) + x).sum(); };
  Tensor expected = tensor({0.5f, -1.f, 2.f}).set_requires_grad();
  f(expected).backward();
  // d/dx (8x³ + x) = 24x² + 1
  EXPECT_EQ(values(expected.grad()), (std::vector<double>{7, 25, 97}));
  for (const char* backend : kBackends) {
    Tensor x = tensor({0.5f, -1.f, 2.f}).set_requires_grad();
    auto compiled = compile(f, {.fullgraph = true, .backend = backend});
    Tensor y = compiled(x);
    EXPECT_EQ(y.item<double>(), f(expected).item<double>()) << backend;
    y.backward();
    EXPECT_EQ(values(x.grad()), values(expected.grad())) << backend;
  }
}

TEST(CompiledCustomOp, mutation_reaches_the_caller) {
  auto bump =
      custom_op("compiled_test::bump",
                [](const Tensor& x, const std::optional<Tensor>& y, const std::vector<Tensor>& list, double by) {
                  x.copy_(add_plainly(x, by));
                  if (y) y->copy_(add_plainly(*y, 2 * by));
                  for (const Tensor& each : list) each.copy_(add_plainly(each, 3 * by));
                  return add_plainly(x, 100);
                },
                {.mutates = {"x", "y", "list"}, .names = "x, y, list, by"});
  bump.register_fake(
      [](const Tensor& x, const std::optional<Tensor>&, const std::vector<Tensor>&, double) { return empty_like(x); });
  for (bool with_optional : {true, false})
    for (const char* backend : kBackends) {
      auto f = compile(
          [&](Tensor x, Tensor y, Tensor z) {
            Tensor w = z * 1;
            Tensor result =
                bump(x, with_optional ? std::optional<Tensor>(y) : std::nullopt, std::vector<Tensor>{z, w}, 1.0);
            return std::pair<Tensor, Tensor>(result + x, w);
          },
          {.fullgraph = true, .backend = backend});
      Tensor x = zeros({2}), y = zeros({2}), z = zeros({2});
      auto [sum, w] = f(x, y, z);
      EXPECT_EQ(values(x), (std::vector<double>{1, 1})) << backend;
      EXPECT_EQ(values(y), (with_optional ? std::vector<double>{2, 2} : std::vector<double>{0, 0})) << backend;
      EXPECT_EQ(values(z), (std::vector<double>{3, 3})) << backend;
      EXPECT_EQ(values(w), (std::vector<double>{3, 3})) << backend;
      EXPECT_EQ(values(sum), (std::vector<double>{102, 102})) << backend;
    }
}

TEST(CompiledCustomOp, result_unlike_its_fake_is_an_error) {
  auto op = custom_op("compiled_test::wrong", [](const Tensor& x) { return x.t().clone(); }, {.names = "x"});
  op.register_fake([](const Tensor& x) { return empty({x.size(1), x.size(0)}); });
  auto f = compile([&](Tensor x) { return op(x) + 1; });
  // A clone keeps the transposed strides, the fake said that the result is contiguous.
  std::string message = error_of([&] { f(randn({2, 3})); });
  EXPECT_THAT(message,
              HasSubstr("[compiled_test::wrong] result 0 has strides [1, 3], but its fake implementation said [2, 1]"));
  auto size = custom_op("compiled_test::wrong_size", [](const Tensor& x) { return x.clone(); }, {.names = "x"});
  size.register_fake([](const Tensor& x) { return empty({x.size(0) + 1}); });
  auto g = compile([&](Tensor x) { return size(x) + 1; });
  EXPECT_THAT(error_of([&] { g(randn({2})); }),
              HasSubstr("result 0 is float32[2], but its fake implementation said float32[3]"));
}

TEST(CompiledCustomOp, lists_and_dynamic_sizes) {
  auto both = custom_op("compiled_test::both",
                        [](const std::vector<std::optional<Tensor>>& xs, SymInt by) {
                          std::vector<Tensor> list;
                          for (const auto& x : xs)
                            if (x) list.push_back(add_plainly(*x, static_cast<double>(int64_t(by))));
                          return list;
                        },
                        {.names = "xs, by"});
  both.register_fake([](const std::vector<std::optional<Tensor>>& xs, SymInt) {
    std::vector<Tensor> list;
    for (const auto& x : xs)
      if (x) list.push_back(empty_like(*x));
    return list;
  });
  auto f = compile(
      [&](Tensor x, Tensor y) {
        std::vector<Tensor> list = both(std::vector<std::optional<Tensor>>{x.sin(), std::nullopt, y}, x.size(0));
        return list[0] + list[1];
      },
      {.fullgraph = true, .dynamic = Dynamic::On});
  for (int64_t count : {3, 5, 7}) {
    Tensor x = randn({count}), y = randn({count});
    EXPECT_EQ(values(f(x, y)),
              values(add_plainly(x.sin(), static_cast<double>(count)) + add_plainly(y, static_cast<double>(count))));
  }
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(CompiledCustomOp, goes_with_its_graph) {
  EXPECT_EQ(dispatch::retired_count(), 0u);  // of tests before
  size_t before = dispatch::operator_count();
  Tensor x = zeros({2});
  {
    // The compiled function outlives the operator's definition, and says so when it is called.
    std::function<Tensor(Tensor)> f;
    {
      auto bump = custom_op("compiled_test::gone", [](const Tensor& t) { t.copy_(add_plainly(t, 1)); },
                            {.mutates = {"t"}, .names = "t"});
      bump.register_fake([](const Tensor&) {});
      f = compile([op = dispatch::OperatorRef(bump.op())](Tensor t) {
        const dispatch::Value args[] = {dispatch::Value(t)};
        dispatch::call_boxed(*op, args);
        return t + 1;
      });
      EXPECT_EQ(values(f(x)), (std::vector<double>{2, 2}));
      destroy_custom_op("compiled_test::gone");
    }
    EXPECT_THAT(error_of([&] { f(x); }), HasSubstr("[compiled_test::gone] was removed"));
  }
  EXPECT_EQ(dispatch::retired_count(), 0u);
  EXPECT_EQ(dispatch::operator_count(), before);
}

}  // namespace
}  // namespace tenon::library
