// Tangents of every kind of call, against finite differences and closed forms.
#include <tenon/autograd/forward_ad.h>
#include <tenon/autograd/gradcheck.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error_of.h"

namespace tenon {
namespace {

using forward_ad::DualLevel;
using forward_ad::make_dual;
using forward_ad::unpack_dual;
using testing::error_of;
using ::testing::HasSubstr;
using Tensors = std::vector<Tensor>;

Tensor doubles(const SymInts& sizes) { return randn(sizes, kFloat64).set_requires_grad(); }

template <typename F>
void check(F function, const Tensors& inputs) {
  manual_seed(3);
  EXPECT_TRUE(autograd::gradcheck(function, inputs, {.check_backward_ad = false, .check_forward_ad = true}));
}

TEST(ForwardMode, of_rows_of_every_kind) {
  check([](const Tensor& x) { return x.sin() * x.exp() / (x.abs() + 1); }, {doubles({3, 4})});
  check([](const Tensor& x) { return x.sum(1).prod(); }, {doubles({3, 2})});
  check([](const Tensor& x) { return softmax(x, -1).log(); }, {doubles({3, 4})});
  check([](const Tensor& x, const Tensor& y) { return x.matmul(y).relu(); }, {doubles({3, 4}), doubles({4, 2})});
  check([](const Tensor& x, const Tensor& y) { return cat({x, y, x}, 1); }, {doubles({2, 2}), doubles({2, 3})});
  check([](const Tensor& x) { return std::get<0>(x.max(1)); }, {doubles({3, 4})});
  check([](const Tensor& x) { return Tensors{std::get<0>(var_mean(x, 0)), std::get<1>(var_mean(x, 0))}; },
        {doubles({5, 2})});
  check([](const Tensor& x) { return layer_norm(x, {4}); }, {doubles({3, 4})});
  check([](const Tensor& x, const Tensor& w) { return conv2d(x, w, std::nullopt, {1, 1}, {1, 1}); },
        {doubles({1, 2, 4, 4}), doubles({3, 2, 3, 3})});
  check([](const Tensor& x) { return x.index_select(0, tensor(std::vector<int64_t>{2, 0, 2})); }, {doubles({3, 2})});
}

TEST(ForwardMode, of_views) {
  check([](const Tensor& x) { return x.t().slice(0, 1).unsqueeze(0) * 2; }, {doubles({3, 4})});
  check([](const Tensor& x) { return x.reshape({-1}).expand({2, 6}); }, {doubles({2, 3})});
  check([](const Tensor& x) { return x.as_strided({2, 2}, {1, 2}, 1); }, {doubles({6})});
  check([](const Tensor& x) { return x.unfold(0, 2, 1).sum(1); }, {doubles({5})});
}

TEST(ForwardMode, of_writes_in_place) {
  check([](const Tensor& x) { return x.clone().mul_(x).add_(1); }, {doubles({3})});
  check(
      [](const Tensor& x) {
        Tensor made = x * 2;
        made.slice(0, 1).mul_(x.slice(0, 0, 2));  // through a view
        return made;
      },
      {doubles({3})});
  check(
      [](const Tensor& x) {
        Tensor table = zeros({4, 2}, kFloat64), row = table[1];
        row.copy_(x);  // nothing had a tangent before
        return Tensors{table * table, row};
      },
      {doubles({2})});
  check(
      [](const Tensor& x) {
        Tensor table = zeros({2, 2}, kFloat64), before = table.view({4});
        table.copy_(x);
        return before * 3;  // a view made before what it views got a tangent
      },
      {doubles({2, 2})});
  check(
      [](const Tensor& x) {
        Tensor made = x * 2;
        made.slice(0, 0, 2).fill_(7);
        return made;
      },
      {doubles({3})});
}

TEST(ForwardMode, random_numbers_are_drawn_once) {
  DualLevel level;
  manual_seed(5);
  Tensor dual = make_dual(ones({100}), full({100}, 3.0));
  auto [value, slope] = unpack_dual(dropout(dual, 0.5, true));
  EXPECT_TRUE(slope.equal(value * 3));
  uint64_t after = default_generator().offset();
  manual_seed(5);
  (void)dropout(ones({100}), 0.5, true);
  EXPECT_EQ(after, default_generator().offset());
}

TEST(ForwardMode, a_tangent_can_be_differentiated) {
  Tensor x = tensor({2.0, 3.0}, kFloat64).set_requires_grad(), direction = tensor({1.0, 10.0}, kFloat64);
  direction.set_requires_grad();
  DualLevel level;
  auto [value, slope] = unpack_dual((make_dual(x, direction) * x).pow(2));  // x⁴; the second factor has no tangent
  EXPECT_TRUE(slope.allclose(2 * x.pow(3) * direction));
  Tensors found = autograd::grad({slope.sum()}, {x, direction}, {}, true);
  EXPECT_TRUE(found[0].allclose(6 * x.pow(2) * direction));
  EXPECT_TRUE(found[1].allclose(2 * x.pow(3)));
  EXPECT_TRUE(autograd::grad({value.sum()}, {x})[0].allclose(4 * x.pow(3)));
}

TEST(ForwardMode, a_gradient_has_no_tangent) {
  Tensor x = tensor({2.0, 3.0}, kFloat64).set_requires_grad();
  DualLevel level;
  Tensor dual = make_dual(x, ones({2}, kFloat64));
  Tensor gradient = autograd::grad({(dual.pow(3) + dual.exp()).sum()}, {x}, {}, true, true)[0];
  EXPECT_TRUE(gradient.allclose(3 * x.pow(2) + x.exp()));
  EXPECT_FALSE(unpack_dual(gradient).tangent.defined());
}

TEST(ForwardMode, without_a_direction_nothing_changes) {
  DualLevel level;
  Tensor x = ones({2}).set_requires_grad();
  EXPECT_FALSE(unpack_dual(x * 2).tangent.defined());
  Tensor plain = make_dual(ones({2}), ones({2})) * 2;
  EXPECT_FALSE(plain.requires_grad());
  EXPECT_FALSE(unpack_dual(plain).tangent.requires_grad());
  EXPECT_FALSE(unpack_dual(unpack_dual(plain).primal * 2).tangent.defined());
  EXPECT_FALSE(unpack_dual(unpack_dual(plain).primal.slice(0, 1)).tangent.defined());
  EXPECT_FALSE(unpack_dual(plain > 1).tangent.defined());
}

TEST(ForwardMode, ends_with_its_level) {
  Tensor dual;
  {
    DualLevel level;
    dual = make_dual(ones({2}), ones({2}));
    EXPECT_TRUE(unpack_dual(dual).tangent.defined());
  }
  EXPECT_FALSE(unpack_dual(dual).tangent.defined());
  DualLevel another;
  EXPECT_FALSE(unpack_dual(dual * 2).tangent.defined());
}

TEST(ForwardMode, a_compiled_function_runs_eagerly) {
  auto f = compile([](Tensor x) { return x.sin() * x; });
  Tensor x = tensor({1.0, 2.0}, kFloat64);
  DualLevel level;
  Tensor slope = unpack_dual(f(make_dual(x, ones({2}, kFloat64)))).tangent;
  EXPECT_TRUE(slope.allclose(x.cos() * x + x.sin()));
  EXPECT_EQ(f.compile_count(), 0);
}

TEST(ForwardMode, bad_input) {
  Tensor x = ones({2});
  EXPECT_THAT(error_of([&] { make_dual(x, x); }), HasSubstr("no level exists"));
  DualLevel level;
  EXPECT_THAT(error_of([] { DualLevel nested; }), HasSubstr("Nested forward mode AD is not supported"));
  EXPECT_TRUE(DualLevel::is_on());
  EXPECT_THAT(error_of([&] { make_dual(x, ones({3})); }), HasSubstr("expected a tangent like its primal"));
  EXPECT_THAT(error_of([&] { make_dual(x.to(kInt64), x.to(kInt64)); }), HasSubstr("Expected primal to be floating"));
  EXPECT_THAT(error_of([&] { make_dual(make_dual(x, x), x); }), HasSubstr("has a tangent at this level already"));
  EXPECT_THAT(error_of([&] { make_dual(Tensor(), x); }), HasSubstr("an undefined one"));
}

}  // namespace
}  // namespace tenon
