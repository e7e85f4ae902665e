// What custom operators say when their author made a mistake: which operator, what is wrong, what to do.
#include <tenon/fake/fake.h>
#include <tenon/library/custom_op.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error_of.h"

namespace tenon::library {
namespace {

using tenon::testing::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

auto with_fake(Tensor (*fake)(const Tensor&)) {
  auto op = custom_op("messages::fake", [](const Tensor& x) { return x.clone(); }, {.names = "x"});
  op.register_fake(fake);
  return op;
}
std::string on_fakes(Tensor (*fake)(const Tensor&)) {
  auto op = with_fake(fake);
  return error_of<RuntimeError>([&] {
    fake::FakeMode fakes;
    op(randn({3}));
  });
}

TEST(Messages, a_kernel_that_returns_no_tensor) {
  auto op = custom_op("messages::nothing", [](const Tensor&) { return Tensor(); }, {.names = "x"});
  EXPECT_THAT(error_of<RuntimeError>([&] { op(randn({3})); }),
              AllOf(HasSubstr("[messages::nothing] the kernel returned an undefined tensor as its result 0"),
                    HasSubstr("return a tensor")));
}

TEST(Messages, fakes) {
  EXPECT_THAT(on_fakes([](const Tensor&) { return Tensor(); }),
              HasSubstr("[messages::fake] the fake implementation returned an undefined tensor as its result 0"));
  EXPECT_THAT(on_fakes([](const Tensor& x) { return x; }),
              AllOf(HasSubstr("[messages::fake] the fake implementation returned its argument 'x' itself"),
                    HasSubstr("return empty_like(x)")));
  EXPECT_THAT(on_fakes([](const Tensor& x) {
                return core::make_without_data(x.sym_sizes(), x.sym_strides(), x.dtype(), kMeta, {});
              }),
              AllOf(HasSubstr("[messages::fake] the fake implementation gave a tensor on the device meta"),
                    HasSubstr("empty_like(x)")));
  EXPECT_EQ(on_fakes([](const Tensor& x) { return empty_like(x); }), "no error");
}

TEST(Messages, a_handle_whose_operator_was_replaced) {
  auto old = custom_op("messages::replaced", [](const Tensor& x) { return x.clone(); }, {.names = "x"});
  auto now = custom_op("messages::replaced", [](const Tensor& x, double by) { return x * by; }, {.names = "x, by"});
  EXPECT_THAT(error_of<RuntimeError>([&] { old(randn({3})); }),
              AllOf(HasSubstr("messages::replaced"), HasSubstr("was removed")));
  EXPECT_EQ(error_of([&] { now(randn({3}), 2); }), "no error");
}

TEST(Messages, differentiating_what_has_no_formula) {
  auto inner = custom_op("messages::inner", [](const Tensor& x) { return x * 2; }, {.names = "x"});
  auto outer = custom_op("messages::outer", [](const Tensor& x) { return x * x; }, {.names = "x"});
  outer.register_autograd(
      [inner](AutogradContext& ctx, const Tensor& grad) { return grad * inner(ctx.saved_tensors()[0]); },
      [](AutogradContext& ctx, const Inputs& inputs, Outputs) { ctx.save_for_backward({inputs["x"].tensor()}); });
  Tensor x = randn({3}).set_requires_grad();
  Tensor slope = autograd::grad({outer(x).sum()}, {x}, {}, false, /*create_graph=*/true)[0];
  EXPECT_THAT(error_of<RuntimeError>([&] { slope.sum().backward(); }),
              AllOf(HasSubstr("[messages::inner] Trying to backward through messages::inner"),
                    HasSubstr("use register_autograd to add one")));
}

}  // namespace
}  // namespace tenon::library
