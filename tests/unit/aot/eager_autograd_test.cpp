// Where compiled code could differ from eager's autograd without anybody asking for it: what is refused, what is zero,
// where things lie.
#include <gtest/gtest.h>
#include <tenon/library/custom_op.h>
#include <tenon/tenon.h>

#include "unit/capture/testing.h"

namespace tenon {
namespace {

using library::custom_op;
using testing::error_of;
using testing::same_bits;

class EagerAutograd : public ::testing::TestWithParam<const char*> {
 protected:
  CompileOptions options(bool data = false) const {
    return {.dynamic = data ? Dynamic::On : Dynamic::Auto, .backend = GetParam(), .capture_scalar_outputs = data};
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, EagerAutograd, ::testing::Values("inductor", "aot_eager", "eager"));

// Sigmoid's gradient is computed from its result, first on the result's own and only then on the gradient.
TEST_P(EagerAutograd, a_result_that_gradients_are_computed_from_may_not_be_changed) {
  auto f = [](Tensor x) { return x.sigmoid(); };
  auto compiled = compile(f, options());
  for (int call = 0; call < 2; ++call) {
    Tensor x = randn({3}).set_requires_grad();
    Tensor y = compiled(x);
    y.add_(1);
    EXPECT_NE(error_of([&] { y.sum().backward(); }).find("modified by an inplace operation"), std::string::npos);
  }
  // Another result of the same call is no reason.
  auto two = compile([](Tensor x) { return std::tuple(x.sigmoid(), x * 2); }, options());
  Tensor x = randn({3}).set_requires_grad();
  auto [y, z] = two(x);
  y.add_(1);
  z.sum().backward();
  EXPECT_TRUE(same_bits(x.grad(), full({3}, 2.0f)));
}

// The buffer depends on the call before, whose walk is over; nothing of it is asked for.
TEST_P(EagerAutograd, a_walk_may_come_by_a_call_whose_own_walk_is_over) {
  auto f = [](Tensor x, Tensor buffer) {
    Tensor y = x * 2;
    buffer.mul_(y);
    return -y;
  };
  auto compiled = compile(f, options());
  Tensor buffer = ones({3});
  for (int call = 0; call < 3; ++call) {
    Tensor x = randn({3}).set_requires_grad();
    compiled(x, buffer).sum().backward();
    EXPECT_TRUE(same_bits(x.grad(), full({3}, -2.0f)));
  }
}

TEST_P(EagerAutograd, a_part_of_an_argument_that_gradients_are_computed_from) {
  auto f = compile([](Tensor x) { return x.select(1, 0).relu_(); }, options());
  Tensor x = randn({2, 3}).set_requires_grad();
  Tensor y = f(x * 2);
  y.add_(1);
  EXPECT_NE(error_of([&] { y.sum().backward(); }).find("modified by an inplace operation"), std::string::npos);
}

TEST_P(EagerAutograd, an_operator_without_a_formula_matters_to_those_who_differentiate) {
  auto twice = custom_op("eager_autograd::twice", [](const Tensor& x) { return std::vector<Tensor>{x * 2, x * 3}; });
  twice.register_fake([](const Tensor& x) { return std::vector<Tensor>{empty_like(x), empty_like(x)}; });
  auto f = compile([&](Tensor x) { return std::tuple(twice(x)[1], x * 5); }, options());
  for (int call = 0; call < 2; ++call) {
    Tensor x = ones({3}).set_requires_grad();
    auto [y, z] = f(x);
    EXPECT_TRUE(same_bits(y.detach(), full({3}, 3.0f)));
    EXPECT_TRUE(y.requires_grad());
    z.sum().backward();
    EXPECT_TRUE(same_bits(x.grad(), full({3}, 5.0f)));
    EXPECT_NE(error_of([&] { y.sum().backward(); }).find("no autograd formula was registered"), std::string::npos);
  }
}

// A formula is given zeros for a gradient that is missing, so that there is a gradient of zeros.
TEST_P(EagerAutograd, a_formula_that_is_asked_for_nothing_gives_zeros) {
  auto both = custom_op("eager_autograd::both", [](const Tensor& x) { return std::tuple(x * 2, x * 3); });
  both.register_fake([](const Tensor& x) { return std::tuple(empty_like(x), empty_like(x)); });
  both.register_autograd([](library::AutogradContext&, const std::vector<AnyValue>& gradients) {
    return std::vector<AnyValue>{gradients[0].is_tensor() ? AnyValue(gradients[0].tensor() * 2) : AnyValue()};
  });
  auto f = [&](Tensor x) {
    auto [first, second] = both(x);
    return std::tuple(first, second);
  };
  auto compiled = compile(f, options());
  for (int call = 0; call < 2; ++call) {
    Tensor a = ones({3}).set_requires_grad(), b = ones({3}).set_requires_grad();
    std::get<1>(f(a)).sum().backward();
    std::get<1>(compiled(b)).sum().backward();
    ASSERT_TRUE(a.grad().defined());
    ASSERT_TRUE(b.grad().defined());
    EXPECT_TRUE(same_bits(b.grad(), a.grad()));
  }
}

// The operator runs on views of a copy, which lies as the argument does and not as values of the graph.
TEST_P(EagerAutograd, aliased_arguments_beside_one_that_is_not_dense) {
  auto op = custom_op("eager_autograd::three",
                      [](const Tensor& x, const Tensor& y, const Tensor& z) {
                        x.mul_(2);
                        y.add_(1);
                        z.mul_(3);
                      },
                      {.mutates = {"x", "y", "z"}, .names = "x, y, z"});
  op.register_fake([](const Tensor&, const Tensor&, const Tensor&) {});
  auto f = [&](Tensor x) {
    Tensor y = x * 1;
    x.add_(1);
    op(x, y, y);
    return y + x;
  };
  auto compiled = compile(f, options(true));
  for (int64_t size : {9, 7, 9}) {
    Tensor a = arange(3 * 18, kFloat32).view({3, 18}).t().slice(0, 0, size), b = a.clone();
    Tensor wide = arange(3 * 18, kFloat32).view({3, 18}).t().slice(0, 0, size);
    EXPECT_TRUE(same_bits(compiled(wide), f(b)));
    EXPECT_TRUE(same_bits(wide, b));
  }
}

TEST_P(EagerAutograd, the_next_order_of_results_whose_sizes_come_from_data) {
  auto f = [](Tensor x, Tensor n) {
    SymInt count = n.item<SymInt>();
    Tensor y = constant_pad_nd(x.slice(0, count), SymInts{0, count});
    Tensor z = y.reshape(SymInts{y.size(1), y.size(0)});
    return std::tuple(2 - z, z);
  };
  auto compiled = compile(f, options(true));
  for (int64_t count : {0, 2, 1}) {
    auto gradient = [&](auto& run) {
      Tensor x = arange(45, kFloat32).view({5, 9}).set_requires_grad();
      auto [a, b] = run(x, tensor(count));
      Tensor slope = autograd::grad({a.sum() + (b * b).sum()}, {x}, {}, true, true)[0];
      slope.square().sum().backward();
      return x.grad();
    };
    EXPECT_TRUE(same_bits(gradient(compiled), gradient(f))) << count;
  }
}

TEST_P(EagerAutograd, parts_of_a_permuted_tensor_by_data_stay_permuted) {
  auto f = [](Tensor x, Tensor n) { return x.slice(0, 0, n.item<SymInt>()).logical_not() * 2; };
  auto compiled = compile(f, options(true));
  for (int64_t count : {3, 5, 2}) {
    Tensor x = arange(45, kFloat32).view({9, 5}).t(), number = tensor(count);
    Tensor expected = f(x, number), got = compiled(x, number);
    EXPECT_TRUE(same_bits(got, expected));
    EXPECT_EQ(Ints(got.strides()), Ints(expected.strides()));
  }
}

// The gradient of a sum is one number, shown many times; so it is if another result's gradient is missing.
TEST_P(EagerAutograd, an_expanded_gradient_stays_expanded) {
  auto f = [](Tensor x) {
    Tensor half = x.to(kFloat16);
    return std::tuple(autograd::grad({x.sum()}, {x})[0], half);
  };
  auto compiled = compile(f, options());
  Tensor x = randn({5, 2}).set_requires_grad();
  EXPECT_EQ(Ints(std::get<0>(compiled(x)).strides()), Ints(std::get<0>(f(x)).strides()));
}

TEST(EagerInPlace, a_view_that_was_made_a_leaf_may_not_be_written) {
  Tensor base = zeros({2, 9}), row = base.slice(0, 1).set_requires_grad();
  const char* text = "a view of a leaf Variable that requires grad is being used in an in-place operation";
  EXPECT_NE(error_of([&] { row.add_(row); }).find(text), std::string::npos);
  EXPECT_NE(error_of([&] { row.select(0, 0).zero_(); }).find(text), std::string::npos);
  NoGrad off;
  row.zero_();
}

}  // namespace
}  // namespace tenon
