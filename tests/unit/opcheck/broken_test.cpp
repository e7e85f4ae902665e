// Operators that are broken on purpose: each fault is found by the test that is made for it, which says what is wrong.
#include <tenon/fake/dynamic_size.h>
#include <tenon/fake/fake.h>
#include <tenon/library/define.h>
#include <tenon/opcheck/opcheck.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error_of.h"

namespace tenon::opcheck {
namespace {

using dispatch::Library;
using dispatch::Value;
using library::AutogradContext;
using library::Inputs;
using library::Outputs;
using tenon::testing::error_of;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

Tensor leaf(const Ints& sizes) { return randn(SymInts(sizes.span())).set_requires_grad(); }

// The names of the tests that failed, and what the first of them says.
struct Found {
  std::vector<std::string> tests;
  std::string text;
};
template <typename Op>
Found check(const Op& op, std::initializer_list<Value> args) {
  Found found;
  for (const Outcome& outcome : library::opcheck(op, args, {}, {.tests = all_tests(), .raise = false}).outcomes())
    if (!outcome.ok()) {
      if (found.tests.empty()) found.text = outcome.text;
      found.tests.push_back(outcome.test);
    }
  return found;
}
#define EXPECT_FIRST_FOUND(found, test, matcher)               \
  do {                                                         \
    const Found& result = found;                               \
    ASSERT_FALSE(result.tests.empty()) << "nothing was found"; \
    EXPECT_EQ(result.tests[0], test) << result.text;           \
    EXPECT_THAT(result.text, matcher);                         \
  } while (false)

void write_to(const Tensor& x) {
  for (int64_t at = 0; at < x.numel().plain(); ++at) x.data<float>()[at] += 1;
}
Tensor copy_of(const Tensor& x) { return x.clone(); }

TEST(Broken, mutation_of_an_argument) {
  // By the elements alone: no operator saw it.
  auto op = library::custom_op("broken::writes",
                               [](const Tensor& x) {
                                 write_to(x);
                                 return x.clone();
                               },
                               {.names = "x"});
  op.register_fake(copy_of);
  EXPECT_FIRST_FOUND(check(op, {randn({3})}), "test_schema",
                     AllOf(HasSubstr("[broken::writes] Argument x is not defined as mutable but was mutated"),
                           HasSubstr(".mutates = {\"x\"}")));
}

TEST(Broken, mutation_that_changes_nothing) {
  auto op = library::custom_op("broken::adds_zero",
                               [](const Tensor& x) {
                                 x.add_(0);
                                 return x.clone();
                               },
                               {.names = "x"});
  op.register_fake(copy_of);
  EXPECT_FIRST_FOUND(check(op, {randn({3})}), "test_schema", HasSubstr("Argument x is not defined as mutable"));
}

TEST(Broken, mutation_of_a_list_element) {
  auto op = library::custom_op("broken::writes_list",
                               [](const std::vector<Tensor>& xs) {
                                 write_to(xs[1]);
                                 return xs[0].clone();
                               },
                               {.names = "xs"});
  op.register_fake([](const std::vector<Tensor>& xs) { return xs[0].clone(); });
  std::vector<Tensor> list = {randn({2}), randn({2})};
  EXPECT_FIRST_FOUND(check(op, {Value(list)}), "test_schema",
                     HasSubstr("Argument xs[1] is not defined as mutable but was mutated"));
}

TEST(Broken, mutation_of_an_optional) {
  auto op = library::custom_op("broken::writes_optional",
                               [](const Tensor& x, const std::optional<Tensor>& y) {
                                 if (y) write_to(*y);
                                 return x.clone();
                               },
                               {.names = "x, y=None"});
  op.register_fake([](const Tensor& x, const std::optional<Tensor>&) { return x.clone(); });
  EXPECT_TRUE(check(op, {randn({2})}).tests.empty());
  EXPECT_FIRST_FOUND(check(op, {randn({2}), randn({2})}), "test_schema",
                     HasSubstr("Argument y is not defined as mutable but was mutated"));
}

TEST(Broken, what_is_declared_may_be_written) {
  auto op =
      library::custom_op("broken::declares", [](const Tensor& x) { write_to(x); }, {.mutates = {"x"}, .names = "x"});
  op.register_fake([](const Tensor&) {});
  EXPECT_TRUE(check(op, {randn({3})}).tests.empty());
}

TEST(Broken, alias_and_returned_input) {
  Library lib("broken");
  lib.def("views(Tensor x) -> Tensor");
  lib.impl("views", [](const Tensor& x) { return x.slice(0, 1); }, "CompositeExplicitAutograd");
  EXPECT_FIRST_FOUND(check("broken::views", {randn({3})}), "test_schema",
                     AllOf(HasSubstr("Argument x is not defined to alias output but was aliasing"),
                           HasSubstr("looks into its memory")));
  lib.def("returns(Tensor x) -> Tensor");
  lib.impl("returns", [](const Tensor& x) { return x; }, "CompositeExplicitAutograd");
  EXPECT_FIRST_FOUND(check("broken::returns", {randn({3})}), "test_schema",
                     AllOf(HasSubstr("Argument x is not defined to alias output"), HasSubstr("is that very tensor")));
  lib.def("twins(Tensor x) -> (Tensor, Tensor)");
  lib.impl(
      "twins",
      [](const Tensor& x) {
        Tensor whole = x.clone();
        return std::pair(whole, whole.slice(0, 1));
      },
      "CompositeExplicitAutograd");
  EXPECT_FIRST_FOUND(check("broken::twins", {randn({3})}), "test_schema",
                     HasSubstr("Outputs 0 and 1 alias unexpectedly"));
  // The same, declared.
  lib.def("declared(Tensor(a) x) -> Tensor(a)");
  lib.impl("declared", [](const Tensor& x) { return x.slice(0, 1); }, "CompositeExplicitAutograd");
  EXPECT_TRUE(library::opcheck("broken::declared", {randn({3})}, {}, {.tests = {"test_schema"}}).ok());
}

// An operator that doubles, with this fake.
template <typename Fake>
auto with_fake(Fake fake) {
  auto op = library::custom_op("broken::fake", [](const Tensor& x) { return (x * 2).contiguous(); }, {.names = "x"});
  op.register_fake(fake);
  return op;
}

TEST(Broken, fakes) {
  Tensor x = randn({3, 4});
  EXPECT_FIRST_FOUND(check(with_fake([](const Tensor& t) { return empty({t.size(0), t.size(1) + 1}); }), {x}),
                     "test_faketensor", HasSubstr("Shapes [3, 4] and [3, 5] are not equal!"));
  EXPECT_FIRST_FOUND(check(with_fake([](const Tensor& t) { return empty({t.size(1), t.size(0)}).t(); }), {x}),
                     "test_faketensor", HasSubstr("Strides [4, 1] and [1, 3] are not equal!"));
  EXPECT_FIRST_FOUND(
      check(with_fake([](const Tensor& t) { return empty(t.sym_sizes(), TensorOptions(kFloat64)); }), {x}),
      "test_faketensor", HasSubstr("Dtypes float32 and float64 are not equal!"));
  EXPECT_FIRST_FOUND(
      check(with_fake([](const Tensor& t) { return fake::make(t.sym_sizes(), t.sym_strides(), t.dtype(), kCUDA); }),
            {x}),
      "test_faketensor", HasSubstr("Devices cpu and cuda"));
}

TEST(Broken, fake_with_another_number_of_results) {
  auto op = library::custom_op("broken::pieces", [](const Tensor& x) { return std::vector<Tensor>{x + 1, x + 2}; },
                               {.names = "x"});
  op.register_fake([](const Tensor& x) { return std::vector<Tensor>{empty_like(x)}; });
  EXPECT_FIRST_FOUND(check(op, {randn({3})}), "test_faketensor",
                     HasSubstr("result 0: the kernel gave 2 tensors, the fake implementation 1"));
}

TEST(Broken, dynamic_sizes) {
  auto define = [](auto fake) {
    auto op =
        library::custom_op("broken::some", [](const Tensor& x) { return x.nonzero().view({-1}); }, {.names = "x"});
    op.register_fake(fake);
    return op;
  };
  Tensor x = tensor({0.0, 1.0, 2.0});
  TensorOptions whole(kInt64);
  EXPECT_TRUE(
      check(define([=](const Tensor&) { return empty({fake::new_dynamic_size()}, whole); }), {x}).tests.empty());
  EXPECT_FIRST_FOUND(check(define([=](const Tensor&) { return empty({fake::new_dynamic_size() * 2}, whole); }), {x}),
                     "test_faketensor", HasSubstr("unbound dynamic size u0"));
  EXPECT_FIRST_FOUND(check(define([=](const Tensor&) { return empty({fake::new_dynamic_size(5)}, whole); }), {x}),
                     "test_faketensor", HasSubstr("lies in [5, inf], the kernel gave 2"));
}

TEST(Broken, gradients_from_operators_below) {
  Library lib("broken");
  lib.def("below(Tensor x) -> Tensor");
  lib.impl("below", [](const Tensor& x) { return x.sin(); }, "CPU");
  library::register_fake("broken::below", copy_of, &lib);
  EXPECT_FIRST_FOUND(check("broken::below", {leaf({3})}), "test_autograd_registration",
                     HasSubstr("incorrectly registered"));
  // Nothing is checked where nothing requires grad.
  EXPECT_TRUE(check("broken::below", {randn({3})}).tests.empty());
}

template <typename Backward, typename Setup>
auto with_gradient(Backward backward, Setup setup) {
  auto op = library::custom_op("broken::gradient", [](const Tensor& x) { return x * x; }, {.names = "x"});
  op.register_fake(copy_of);
  op.register_autograd(backward, setup);
  return op;
}

TEST(Broken, a_gradient_of_another_shape) {
  auto op = with_gradient([](AutogradContext&, const Tensor& grad) { return grad.sum(); },
                          [](AutogradContext&, const Inputs&, Outputs) {});
  Found found = check(op, {leaf({3, 2})});
  EXPECT_FIRST_FOUND(found, "test_aot_dispatch_static",
                     AllOf(HasSubstr("broken::gradient"), ContainsRegex("float32\\[3, 2\\]")));
}

TEST(Broken, a_gradient_that_is_wrong) {
  auto op = with_gradient(
      [](AutogradContext& ctx, const Tensor& grad) { return grad * ctx.saved_tensors()[0]; },
      [](AutogradContext& ctx, const Inputs& inputs, Outputs) { ctx.save_for_backward({inputs["x"].tensor()}); });
  EXPECT_TRUE(check(op, {leaf({3})}).tests.empty()) << "both ways are equally wrong";
  EXPECT_THAT(error_of<OpCheckError>([&] { library::opcheck(op, {leaf({3})}, {}, {.gradcheck = true}); }),
              HasSubstr("by finite differences"));
  EXPECT_THAT(error_of<AssertionError>([&] { gradcheck(op, {leaf({3})}); }), HasSubstr("by finite differences"));
}

// Keeps its result for backward.
struct KeepsResult : autograd::Function<KeepsResult> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    Tensor result = x.exp();
    ctx->save_for_backward({result});
    return result;
  }
  static std::vector<Tensor> backward(AutogradContext* ctx, std::vector<Tensor> grads) {
    return {grads[0] * ctx->saved_tensors()[0]};
  }
};

TEST(Broken, a_formula_that_saves_what_is_written) {
  Library lib("broken");
  lib.def("saves(Tensor x) -> Tensor");
  lib.impl("saves", [](const Tensor& x) { return x.exp(); }, "CPU");
  lib.impl("saves", [](const Tensor& x) { return x.exp(); }, "Meta");
  lib.impl(
      "saves",
      [](const Tensor& x) {
        Tensor result = KeepsResult::apply(x);
        result.detach().mul_(2);
        return result;
      },
      "Autograd");
  EXPECT_FIRST_FOUND(check("broken::saves", {leaf({3})}), "test_aot_dispatch_static",
                     AllOf(HasSubstr("modified by an inplace operation"), HasSubstr("KeepsResult")));
}

TEST(Broken, dependence_on_a_global) {
  static int calls = 0;
  auto op = library::custom_op("broken::counts", [](const Tensor& x) { return x * ++calls; }, {.names = "x"});
  op.register_fake(copy_of);
  EXPECT_FIRST_FOUND(check(op, {randn({3})}), "test_aot_dispatch_static",
                     HasSubstr("eager-mode PyTorch vs AOTAutograd"));
}

TEST(Broken, a_compile_per_size) {
  auto op = with_fake([](const Tensor& x) {
    int64_t rows = x.size(0);  // pins it
    return empty({rows, x.size(1)});
  });
  Found found = check(op, {randn({3, 4})});
  EXPECT_EQ(found.tests, std::vector<std::string>{"test_aot_dispatch_dynamic"});
  EXPECT_THAT(found.text, AllOf(HasSubstr("another size needs another compile"), HasSubstr("SymInt")));
}

TEST(Broken, no_fake_at_all) {
  auto op = library::custom_op("broken::no_fake", copy_of, {.names = "x"});
  EXPECT_FIRST_FOUND(check(op, {randn({3})}), "test_faketensor", HasSubstr("register_fake"));
}

TEST(EmptyLike, lies_as_the_result_of_a_pointwise_operator) {
  Tensor x = randn({4, 3}).t();
  EXPECT_EQ(str(empty_like(x).sym_strides()), str((x * 2).sym_strides()));
  EXPECT_TRUE(empty_like(x, {}, MemoryFormat::Contiguous).is_contiguous());
}

// ---- Samples
// ---------------------------------------------------------------------------------------------------------

TEST(Samples, one_line_checks_an_operator) {
  EXPECT_TRUE(library::opcheck("aten::sin").ok());
  EXPECT_TRUE(library::opcheck("aten::mm").ok());
  EXPECT_TRUE(library::opcheck("aten::cat").ok());
  auto good = library::custom_op("broken::good", [](const Tensor& x, double by) { return x * by; }, {.names = "x, by"});
  good.register_fake([](const Tensor& x, double) { return empty_like(x); });
  good.register_autograd(
      [](AutogradContext& ctx, const Tensor& grad) { return grad * ctx.saved_data["by"].real(); },
      [](AutogradContext& ctx, const Inputs& inputs, Outputs) { ctx.saved_data["by"] = inputs["by"].real(); });
  EXPECT_TRUE(library::opcheck(good).ok());
  good.register_fake([](const Tensor& x, double) { return empty({x.numel()}); });
  EXPECT_THAT(error_of<OpCheckError>([&] { library::opcheck(good); }), HasSubstr("Shapes"));
}

TEST(Samples, an_operator_that_takes_none) {
  auto op = library::custom_op("broken::picky",
                               [](const Tensor& x) {
                                 TENON_CHECK(x.dim() == 7, "[picky] expected 7 dimensions");
                                 return x.clone();
                               },
                               {.names = "x"});
  EXPECT_THAT(error_of<ValueError>([&] { library::opcheck(op); }),
              AllOf(HasSubstr("no arguments could be found"), HasSubstr("expected 7 dimensions")));
}

}  // namespace
}  // namespace tenon::opcheck
