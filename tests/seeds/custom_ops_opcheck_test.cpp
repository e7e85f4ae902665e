// What `opcheck` finds in operators that are registered wrongly, and that it finds nothing in good ones.
#include "seeds/custom_ops.h"

#include <tenon/opcheck/opcheck.h>

namespace tenon::testing {
namespace {

using autograd::Function;
using library::opcheck;
using tenon::opcheck::aot_autograd_check;
using tenon::opcheck::AssertionError;
using tenon::opcheck::autograd_registration_check;
using tenon::opcheck::CheckGradients;
using tenon::opcheck::OpCheckError;

const std::string kNs = "_test_custom_op";
constexpr double kThirdOfPi = 3.14159 / 3;

// The operator that the functions below call underneath themselves.
const dispatch::Operator* foo = nullptr;

Tensor call_below_autograd(const Tensor& x, KeySet besides = {}) {
  dispatch::ExcludeKeys below(KeySet{DispatchKey::Autograd} | besides);
  const Value args[] = {Value(x)};
  return dispatch::call_boxed(*foo, args)[0].take_tensor();
}

// Calls the kernel, and passes the gradient on, times a factor.
template <int Factor, bool BelowViews = false>
struct Foo : Function<Foo<Factor, BelowViews>> {
  static Tensor forward(AutogradContext*, const Tensor& x) {
    return call_below_autograd(x, BelowViews ? KeySet{DispatchKey::ADInplaceOrView} : KeySet{});
  }
  static std::vector<Tensor> backward(AutogradContext*, std::vector<Tensor> grads) {
    return {Factor == 1 ? grads[0] : grads[0] * Factor};
  }
};
template <typename F>
Tensor apply(const Tensor& x) {
  return F::apply(x);
}

class TestCustomOpTesting : public ::testing::Test {
 protected:
  explicit TestCustomOpTesting() : lib(kNs) {}
  void define(const char* schema) { foo = &lib.def(schema); }
  template <typename F>
  void impl(F function, std::initializer_list<const char*> keys) {
    for (const char* key : keys) lib.impl("foo", function, key);
  }
  std::string check(const Tensor& x) {
    return error_of<OpCheckError>([&] { opcheck(*foo, {x}, {}); });
  }
  Library lib;
};

TEST_F(TestCustomOpTesting, aot_autograd_check_degenerate_cases) {
  for (bool dynamic : {true, false})
    for (CheckGradients gradients : {CheckGradients::No, CheckGradients::Auto}) {
      tenon::opcheck::AotCheck how{.dynamic = dynamic, .check_gradients = gradients};
      auto simple = [](const Tensor& x) { return x.clone(); };
      // Neither inputs nor outputs require grad.
      aot_autograd_check(simple, {randn({3})}, how);
      // Inputs do, outputs do not.
      auto outputs_dont_require_grad = [](const Tensor& x) { return x.detach(); };
      aot_autograd_check(outputs_dont_require_grad, {leaf({3})}, how);
      aot_autograd_check(simple, {leaf({3})}, how);
      // No outputs at all.
      auto no_outputs = [](const Tensor& x) { x.detach(); };
      aot_autograd_check(no_outputs, {leaf({3})}, how);
      aot_autograd_check(no_outputs, {randn({3})}, how);
    }
}

TEST_F(TestCustomOpTesting, incorrect_schema_mutation) {
  define("foo(Tensor x) -> Tensor");
  impl(apply<Foo<1>>, {"Autograd"});
  impl(
      [](const Tensor& x) {
        x.sin_();
        return x.clone();
      },
      {"CPU", "CUDA"});
  Tensor x = tensor(kThirdOfPi).set_requires_grad();
  EXPECT_THAT(check(x), HasSubstr("Argument x is not defined as mutable but was mutated"));
  EXPECT_NEAR(x.item<double>(), kThirdOfPi, 1e-6) << "the caller's tensor stays as it is";
}

TEST_F(TestCustomOpTesting, incorrect_schema_view) {
  define("foo(Tensor x) -> Tensor");
  impl(apply<Foo<1, true>>, {"Autograd"});
  impl([](const Tensor& x) { return x.view(x.sym_sizes()); }, {"CPU", "Meta"});
  EXPECT_THAT(check(tensor(kThirdOfPi).set_requires_grad()),
              HasSubstr("Argument x is not defined to alias output but was aliasing"));
}

TEST_F(TestCustomOpTesting, missing_abstract_impl) {
  define("foo(Tensor x) -> Tensor");
  impl(apply<Foo<2>>, {"Autograd"});
  impl(
      [](const Tensor& x) {
        Tensor from = x.contiguous(), to = empty_like(from);
        for (int64_t at = 0; at < from.numel().plain(); ++at)
          to.data<float>()[at] = from.data<float>()[at] * from.data<float>()[at];
        return to;
      },
      {"CPU", "CUDA"});
  std::string message = check(tensor({0.0, 1.0}).set_requires_grad());
  EXPECT_THAT(message, ContainsRegex("_test_custom_op.foo.default"));
  EXPECT_THAT(message, HasSubstr("register_fake"));
}

TEST_F(TestCustomOpTesting, incorrect_abstract_impl) {
  define("foo(Tensor x) -> Tensor");
  impl(apply<Foo<1, true>>, {"Autograd"});
  impl([](const Tensor& x) { return x * x; }, {"CPU", "CUDA"});
  impl([](const Tensor& x) { return x.unsqueeze(1) * x.unsqueeze(1); }, {"Meta"});
  EXPECT_THAT(check(tensor({0.0, 1.0}).set_requires_grad()), ContainsRegex("Shapes .* are not equal"));
}

// Says that its argument was changed.
struct DirtyFoo : Function<DirtyFoo> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->mark_dirty({x});
    return call_below_autograd(x);
  }
  static std::vector<Tensor> backward(AutogradContext*, std::vector<Tensor> grads) { return grads; }
};

TEST_F(TestCustomOpTesting, missing_functionalization) {
  define("foo(Tensor(a!) x) -> Tensor(a!)");
  impl(apply<DirtyFoo>, {"Autograd"});
  impl([](const Tensor& x) { return x.sin_(); }, {"CPU", "CUDA"});
  impl([](const Tensor& x) { return x; }, {"Meta"});
  EXPECT_THAT(check(tensor({0.0, 1.0}).clone()),
              HasSubstr("We only support functionalizing operators whose outputs do not have alias annotations"));
}

struct HalfGradient : Function<HalfGradient> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.clone(); }
  static std::vector<Tensor> backward(AutogradContext*, std::vector<Tensor> grads) { return {grads[0] * 0.5}; }
};

TEST_F(TestCustomOpTesting, autograd_registered_at_backend) {
  define("foo(Tensor x) -> Tensor");
  impl(apply<HalfGradient>, {"CPU", "CUDA"});
  impl([](const Tensor& x) { return x.clone(); }, {"Meta"});
  EXPECT_THAT(check(leaf({})), HasSubstr("does not have an autograd kernel"));
}

struct Invoked : Function<Invoked> {
  static inline int invoked = 0;
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.clone() * ++invoked; }
  static std::vector<Tensor> backward(AutogradContext*, std::vector<Tensor> grads) { return grads; }
};

TEST_F(TestCustomOpTesting, global_state_mutation) {
  define("foo(Tensor x) -> Tensor");
  Invoked::invoked = 0;
  impl(apply<Invoked>, {"CompositeImplicitAutograd"});
  EXPECT_THAT(check(tensor(kThirdOfPi).set_requires_grad()), HasSubstr("eager-mode PyTorch vs AOTAutograd"));
}

TEST_F(TestCustomOpTesting, opcheck_opinfo) {
  auto check_all = [](const auto& op, const std::vector<std::vector<Value>>& samples) {
    for (const std::vector<Value>& args : samples) EXPECT_TRUE(opcheck(op, args).ok());
  };
  auto floats = [](const Ints& sizes) { return Value(leaf(sizes)).own(); };
  check_all(sample_cube(), {{floats({3})}, {floats({2, 3})}, {floats({})}});
  check_all(sample_mul(), {{floats({4}), floats({4})}, {floats({2, 3}), floats({2, 3})}});
  check_all(sample_sort(), {{floats({5}), Value(0)}, {floats({3, 4}), Value(1)}});
  Tensor x = leaf({3, 4}), index = x.argsort(1), inverse = index.argsort(1);
  check_all(sample_take(), {{Value(x), Value(index), Value(inverse), Value(1)}});
  check_all(sample_nonzero(), {{Value(tensor({0, 1, 2, 0, 0}))}, {Value(tensor({1.0, 0.0, 3.0}))}});
  const int64_t two_by_six[] = {2, 6};
  check_all(sample_view_copy(), {{floats({3, 4}), Value(std::span<const int64_t>(two_by_six)).own()}});
  std::vector<Tensor> list = {leaf({2, 3}), leaf({4, 3}), leaf({1, 3})};
  check_all(sample_cat(), {{Value(list).own(), Value(0)}});
  const int64_t places[] = {1, 3};
  check_all(sample_split_copy(), {{floats({5, 2}), Value(std::span<const int64_t>(places)).own(), Value(0)}});
  check_all(sample_split_copy_with_int(), {{floats({5, 2}), Value(std::span<const int64_t>(places)).own(), Value(0)}});
  Tensor corners = rand({4, 2});
  check_all(sample_nms(), {{Value(cat(std::vector<Tensor>{corners, corners + 1}, 1)), Value(rand({4})), Value(0.5)}});
}

TEST_F(TestCustomOpTesting, opcheck_fails_basic) {
  legacy::custom_op<Tensor(const Tensor&)>(kNs + "::foo", {.names = "x"});
  legacy::impl(kNs + "::foo", [](const Tensor& x) { return x.sum(); }, {"cpu", "cuda"});
  foo = &legacy::get_op(kNs + "::foo");
  EXPECT_THAT(check(leaf({3})), HasSubstr("Autograd has not been implemented for operator"));
  legacy::destroy(kNs + "::foo");
}

TEST_F(TestCustomOpTesting, autograd_registration_check_autograd_kernel) {
  define("foo(Tensor x) -> Tensor");
  impl(apply<Foo<1>>, {"Autograd"});
  impl([](const Tensor& x) { return x.sin(); }, {"CPU", "CUDA"});
  autograd_registration_check(*foo, {leaf({3})});
}

TEST_F(TestCustomOpTesting, autograd_registration_check_compositeimplicitautograd) {
  define("foo(Tensor x) -> Tensor");
  impl([](const Tensor& x) { return x.sin().cos(); }, {"CompositeImplicitAutograd"});
  autograd_registration_check(*foo, {leaf({3})});
}

TEST_F(TestCustomOpTesting, autograd_registration_check_incorrect_composite) {
  define("foo(Tensor x) -> Tensor");
  impl([](const Tensor& x) { return x.sin().cos(); }, {"CompositeExplicitAutograd"});
  EXPECT_THAT(error_of<AssertionError>([] { autograd_registration_check(*foo, {leaf({3})}); }),
              HasSubstr("incorrectly registered"));
}

struct SineBelow : Function<SineBelow> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.sin(); }
  static std::vector<Tensor> backward(AutogradContext*, std::vector<Tensor> grads) { return grads; }
};

TEST_F(TestCustomOpTesting, autograd_registration_check_incorrect) {
  define("foo(Tensor x) -> Tensor");
  impl(apply<SineBelow>, {"CPU", "CUDA"});
  EXPECT_THAT(error_of<AssertionError>([] { autograd_registration_check(*foo, {leaf({3})}); }),
              HasSubstr("incorrectly registered"));
}

TEST_F(TestCustomOpTesting, assert_raises_regex) {
  using tenon::opcheck::assert_raises;
  assert_raises<RuntimeError>("c", [] { throw RuntimeError("abcd"); });
  assert_raises<RuntimeError>("c.*", [] { throw RuntimeError("abcd"); });
  auto complaint = [](auto run) { return error_of<AssertionError>(run); };
  EXPECT_THAT(complaint([] { assert_raises<RuntimeError>("c.*", [] { throw ValueError("abcd"); }); }),
              HasSubstr("instead got"));
  EXPECT_THAT(complaint([] { assert_raises<RuntimeError>("c.*", [] {}); }), HasSubstr("Expected exception"));
  EXPECT_THAT(complaint([] { assert_raises<RuntimeError>("f", [] { throw RuntimeError("abcd"); }); }),
              HasSubstr("to match regex"));
}

// ---- opcheck itself
// --------------------------------------------------------------------------------------------------

using Texts = std::map<std::string, std::string>;
Texts texts(const tenon::opcheck::Report& report) {
  Texts made;
  for (const auto& outcome : report.outcomes()) made[outcome.test] = outcome.str();
  return made;
}

TEST(TestGenerateOpcheckTests, opcheck) {
  Tensor x = leaf({3});
  auto sine = [](const Tensor& t) { return t.sin(); };
  EXPECT_THAT(error_of<ValueError>([&] { opcheck(sine, {x}); }), HasSubstr("OpOverload"));
  EXPECT_THAT(error_of<ValueError>([&] { opcheck("aten::sin", {x}, {}, {.tests = {"blah"}}); }),
              HasSubstr("test_utils to be subset of"));
  EXPECT_EQ(texts(opcheck("aten::sin", {x})), (Texts{{"test_schema", "SUCCESS"},
                                                     {"test_autograd_registration", "SUCCESS"},
                                                     {"test_faketensor", "SUCCESS"},
                                                     {"test_aot_dispatch_dynamic", "SUCCESS"}}));
  EXPECT_EQ(texts(opcheck("aten::sin", {x}, {}, {.tests = {"test_schema"}})), (Texts{{"test_schema", "SUCCESS"}}));
  EXPECT_EQ(texts(opcheck("aten::sin", {x}, {}, {.tests = {"test_schema", "test_faketensor"}})),
            (Texts{{"test_schema", "SUCCESS"}, {"test_faketensor", "SUCCESS"}}));
}

TEST(TestGenerateOpcheckTests, opcheck_customopdef) {
  auto cube = sample_cube();
  for (const Tensor& x : {randn({3}), leaf({3})}) EXPECT_TRUE(opcheck(cube, {x}).ok());
}

TEST(TestGenerateOpcheckTests, opcheck_bad_op) {
  Library lib(kNs);
  foo = &lib.def("foo(Tensor x) -> Tensor");
  lib.impl("foo", [](const Tensor& x) { return x.slice(0); }, "CompositeExplicitAutograd");
  Tensor x = randn({3});
  EXPECT_THAT(error_of<OpCheckError>([&] { opcheck(*foo, {x}); }), HasSubstr("is not defined to alias output"));
  tenon::opcheck::Report report = opcheck(*foo, {x}, {}, {.raise = false});
  EXPECT_THROW(std::rethrow_exception(report["test_schema"].error), RuntimeError);
  Texts others = texts(report);
  others.erase("test_schema");
  EXPECT_EQ(others, (Texts{{"test_autograd_registration", "SUCCESS"},
                           {"test_faketensor", "SUCCESS"},
                           {"test_aot_dispatch_dynamic", "SUCCESS"}}));
}

}  // namespace
}  // namespace tenon::testing
