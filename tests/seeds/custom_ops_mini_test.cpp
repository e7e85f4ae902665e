// Small operators of all sorts, without the checks that `opcheck` generates for them.
#include "seeds/custom_ops.h"

#include <tenon/compat/torch.h>

namespace {

// A source as an author who knows libtorch writes it.
struct PassThrough : public torch::autograd::Function<PassThrough> {
  static torch::Tensor forward(torch::autograd::AutogradContext*, const torch::Tensor& x) { return x; }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list grads) {
    return grads;
  }
};

torch::Tensor pass_through(const torch::Tensor& x) { return PassThrough::apply(x); }

TORCH_LIBRARY(_tenon_compat, m) { m.def("pass_through", pass_through); }

}  // namespace

namespace tenon::testing {
namespace {

TEST(TestCustomOp, autograd_function_backed_op) {
  Tensor x = ones({2, 2}).set_requires_grad();
  Tensor expected = x.detach().clone();
  Tensor out = call_by_name("_tenon_compat::pass_through", {Value(x)})[0].tensor();
  EXPECT_TRUE(out.requires_grad());
  EXPECT_FALSE(out.is(x));
  out.sum().backward();
  expect_equal(x.grad(), expected);
}

const std::string kNs = "mini_op_test";

// Copies in forward, refuses in backward.
struct DelayedError : autograd::Function<DelayedError> {
  static inline const dispatch::Operator* op = nullptr;
  static Tensor forward(AutogradContext*, const Tensor& x) {
    dispatch::ExcludeKeys below(KeySet{DispatchKey::Autograd});
    const Value args[] = {Value(x)};
    return dispatch::call_boxed(*op, args)[0].take_tensor();
  }
  static std::vector<Tensor> backward(AutogradContext*, std::vector<Tensor>) {
    fail("[delayed_error] not implemented");
  }
};

class MiniOpTest : public ::testing::Test {
 protected:
  MiniOpTest() : lib(kNs) {
    lib.def("no_abstract(Tensor x) -> Tensor", std::vector<Tag>{Tag::pt2_compliant_tag});
    lib.impl("no_abstract", [](const Tensor& x) { return x.clone(); }, "CPU");
    DelayedError::op = &lib.def("delayed_error(Tensor x) -> Tensor");
    lib.impl("delayed_error", [](const Tensor& x) { return x.clone(); }, "CompositeExplicitAutograd");
    lib.impl("delayed_error", [](const Tensor& x) { return DelayedError::apply(x); }, "Autograd");
    lib.def("incorrect_schema(Tensor x) -> Tensor");
    lib.impl("incorrect_schema", [](const Tensor& x) { return x.slice(0); }, "CompositeExplicitAutograd");
  }
  Tensor call(const std::string& name, const Tensor& x) {
    return call_by_name(kNs + "::" + name, {Value(x)})[0].take_tensor();
  }
  Library lib;
};

TEST_F(MiniOpTest, mm) {
  Tensor x = leaf({2, 3}), y = randn({3, 5});
  EXPECT_EQ(values(call_by_name("aten::mm", {Value(x), Value(y)})[0].tensor()), values(matmul(x, y)));
}

TEST_F(MiniOpTest, mm_meta) {
  TensorOptions meta(kFloat32, kMeta);
  Tensor x = empty({2, 3}, meta).set_requires_grad(), y = empty({3, 5}, meta);
  Tensor result = call_by_name("aten::mm", {Value(x), Value(y)})[0].tensor();
  EXPECT_EQ(result.description(), "float32[2, 5]");
  EXPECT_EQ(result.device(), kMeta);
}

TEST_F(MiniOpTest, mm_fake) {
  FakeMode fakes;
  Tensor x = randn({2, 3}).set_requires_grad(), y = randn({3, 5});
  Tensor result = call_by_name("aten::mm", {Value(x), Value(y)})[0].tensor();
  EXPECT_TRUE(result.is_fake());
  EXPECT_EQ(result.description(), matmul(x, y).description());
}

TEST_F(MiniOpTest, mm_errors) {
  Tensor x = leaf({2, 3}), y = randn({4, 5});
  EXPECT_THAT(error_of<RuntimeError>([&] { call_by_name("aten::mm", {Value(x), Value(y)}); }),
              HasSubstr("cannot be multiplied"));
}

TEST_F(MiniOpTest, nonzero) {
  Tensor x = tensor({0, 1, 2, 0, 0});
  Tensor y = call_by_name("aten::nonzero", {Value(x)})[0].tensor();
  expect_equal(y, tensor({1, 2}).view({2, 1}));
}

TEST(MiniOpTestOther, nonzero_again) {
  Tensor x = tensor({0, 1, 2, 0, 0, 3}).view({2, 3});
  Tensor y = call_by_name("aten::nonzero", {Value(x)})[0].tensor();
  expect_equal(y, tensor({0, 1, 0, 2, 1, 2}).view({3, 2}));
  expect_equal(y, plain_nonzero(x));
}

TEST_F(MiniOpTest, inplace) {
  Tensor x = randn({3});
  Tensor expected = x.clone().sin();
  Tensor y = call_by_name("aten::sin_", {Value(x)})[0].tensor();
  EXPECT_TRUE(y.is(x));
  expect_equal(x, expected);
}

TEST_F(MiniOpTest, incorrect_schema) {
  Tensor x = randn({3});
  expect_equal(call("incorrect_schema", x), x);
}

TEST_F(MiniOpTest, no_abstract) {
  Tensor x = randn({3});
  expect_equal(call("no_abstract", x), x);
}

TEST_F(MiniOpTest, delayed_error) {
  Tensor x = leaf({});
  Tensor y = call("delayed_error", x);
  EXPECT_THAT(error_of([&] { y.sum().backward(); }), HasSubstr("not implemented"));
}

TEST_F(MiniOpTest, delayed_error_no_requires_grad) {
  Tensor x = randn({});
  Tensor y = call("delayed_error", x);
  EXPECT_FALSE(y.requires_grad());
  expect_equal(y, x);
}

}  // namespace
}  // namespace tenon::testing
