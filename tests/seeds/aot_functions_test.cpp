// Seed 002: functions with a backward of their own, and operators that look for the data of a tensor that has none.
#include "aot.h"

#include <tenon/dispatch/library.h>
#include <tenon/dispatch/packet.h>
#include <tenon/fake/fake.h>

namespace tenon {
namespace {

using autograd::AutogradContext;
using dispatch::Library;
using testing::error_of;
using testing::HasSubstr;
using testing::on_both_backends;
using testing::same_bits;

constexpr const char* kNoData = "Cannot access data pointer";

TEST(AotAutogradFallbackTests, grad_inputs_alias_inputs) {
  // The gradient of x is x itself, as it was saved.
  struct Passed : autograd::Function<Passed> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& y) {
      ctx->save_for_backward({x});
      return y;
    }
    static std::vector<Tensor> backward(AutogradContext* ctx, std::vector<Tensor> grads) {
      return {ctx->saved_tensors()[0], grads[0]};
    }
  };
  on_both_backends([](const char* backend) {
    auto f = compile([](Tensor x, Tensor y) { return Passed::apply(x, y); }, {.backend = backend});
    for (int call = 0; call < 2; ++call) {
      Tensor x = (ones({1}) * 3).set_requires_grad(), y = ones({1}).set_requires_grad();
      f(x, y).sum().backward();
      EXPECT_TRUE(same_bits(x.grad(), x.detach()));
      EXPECT_TRUE(same_bits(y.grad(), ones({1})));
    }
    EXPECT_EQ(f.compile_count(), 1);
  });
}

TEST(AotAutogradFallbackTests, data_ptr_access_copy) {
  // A copy of a fake, as the handle and as a tensor of its own: neither needs data.
  Tensor x, same, own;
  {
    fake::FakeMode fakes;
    x = randn({3});
    same = Tensor(x);
    own = x.clone();
  }
  for (const Tensor& y : {same, own}) {
    EXPECT_TRUE(y.is_fake());
    EXPECT_EQ(y.description(), x.description());
    EXPECT_THAT(error_of([&] { y.raw_data(); }), HasSubstr(kNoData));
  }
}

TEST(AotAutogradFallbackTests, data_ptr_access_fails_in_forward) {
  Library lib("mylib");
  lib.def("foo(Tensor x) -> Tensor");
  lib.impl(
      "foo",
      [](const Tensor& x) {
        x.raw_data();
        return x.clone();
      },
      "CompositeImplicitAutograd");
  auto foo = [](const Tensor& x) {
    return dispatch::call_by_name("mylib::foo", {dispatch::Value(x)})[0].take_tensor();
  };
  auto of_an_input = [&](Tensor x) { return foo(x); };
  auto of_an_intermediate = [&](Tensor x) { return foo(x.clone()); };
  Tensor x = randn({3});
  EXPECT_TRUE(same_bits(foo(x), x));
  auto expect_refused = [&](auto function) {
    EXPECT_THAT(error_of([&] { trace(function, Tracing::Fake, x); }), HasSubstr(kNoData));
    EXPECT_THAT(error_of([&] { trace(function, Tracing::Symbolic, x); }), HasSubstr(kNoData));
    for (const char* backend : {"eager", "aot_eager", "inductor"})
      EXPECT_THAT(error_of([&] { compile(function, {.fullgraph = true, .backend = backend})(x); }), HasSubstr(kNoData));
  };
  expect_refused(of_an_input);
  expect_refused(of_an_intermediate);
}

bool backward_called = false;

TEST(AotAutogradFallbackTests, data_ptr_access_fails_in_backward) {
  struct Foo : autograd::Function<Foo> {
    static Tensor forward(AutogradContext*, const Tensor& x) { return x.clone(); }
    static std::vector<Tensor> backward(AutogradContext*, std::vector<Tensor> grads) {
      backward_called = true;
      grads[0].raw_data();
      return {grads[0].clone()};
    }
  };
  Library lib("mylib");
  lib.def("foo(Tensor x) -> Tensor");
  lib.impl("foo", [](const Tensor& x) { return Tensor(Foo::apply(x)); }, "CompositeImplicitAutograd");
  on_both_backends([](const char* backend) {
    backward_called = false;
    auto f =
        compile([](Tensor x) { return dispatch::call_by_name("mylib::foo", {dispatch::Value(x)})[0].take_tensor(); },
                {.fullgraph = true, .backend = backend});
    EXPECT_THAT(error_of([&] { f(randn({3}).set_requires_grad()); }), HasSubstr(kNoData));
    EXPECT_TRUE(backward_called) << "backward is traced before forward runs";
  });
}

}  // namespace
}  // namespace tenon
