// Where PyTorch's own samples showed that we differed: each was wrong once (`make parity`).
#include "ops/compare.h"

#include <tenon/dispatch/packet.h>

#include <cmath>

namespace tenon::test {
namespace {

using dispatch::Value;

Tensor leaf(const Tensor& values) { return values.clone().set_requires_grad(); }
Tensors by_name(const char* name, std::initializer_list<Value> arguments) {
  Tensors results;
  for (const Value& result : dispatch::call_by_name(name, arguments)) results.push_back(result.tensor());
  return results;
}
void expect_close(const Tensor& is, const Tensor& should) { EXPECT_LE(relative_difference(is, should), 1e-5); }

TEST(Agreement, one_padding_stands_for_all_dimensions_of_a_convolution) {
  Tensor image = randn({2, 3, 7, 8}), weight = randn({4, 3, 3, 2});
  auto convolved = [&](bool transposed, const Ints& stride, const Ints& padding, const Tensor& x, const Tensor& w) {
    return by_name("aten::convolution", {Value(x), Value(w), Value(), Value(stride), Value(padding), Value(Ints{1, 1}),
                                         Value(transposed), Value(Ints{0}), Value(1)})[0];
  };
  expect_close(convolved(false, {2, 2}, {1}, image, weight), conv2d(image, weight, {}, {2, 2}, {1, 1}));
  Tensor back = randn({2, 4, 3, 4});
  expect_close(convolved(true, {2, 2}, {1}, back, weight), conv_transpose2d(back, weight, {}, {2, 2}, {1, 1}));
  Tensor x = leaf(image), w = leaf(weight), by = randn({2, 4, 4, 5});
  Tensors mine = gradients(convolved(false, {2, 2}, {1}, x, w), {x, w}, by),
          theirs = gradients(conv2d(x, w, {}, {2, 2}, {1, 1}), {x, w}, by);
  expect_close(mine[0], theirs[0]);
  expect_close(mine[1], theirs[1]);
}

TEST(Agreement, results_that_no_gradient_comes_through_have_a_history) {
  Tensor a = leaf(randn({3, 3}) + eye(3) * 4);
  auto [sign, logarithm] = linalg_slogdet(a);
  EXPECT_TRUE(sign.requires_grad());
  EXPECT_EQ(gradients(sign, {a})[0].abs().max().item<double>(), 0);
  Tensor first = linalg_matrix_power(a, 0);
  EXPECT_TRUE(first.requires_grad());
  EXPECT_EQ(gradients(first, {a}, randn({3, 3}))[0].abs().max().item<double>(), 0);
  EXPECT_EQ(relative_difference(first.detach(), eye(3)), 0);
  auto [solution, residuals, rank, values] = linalg_lstsq(a, randn({3, 2}));
  EXPECT_TRUE(residuals.requires_grad());
  EXPECT_EQ(residuals.numel().plain(), 0);
}

TEST(Agreement, a_row_without_anything_has_no_gradient) {
  const double none = -std::numeric_limits<double>::infinity();
  Tensor x = leaf(tensor({none, none, 1.0, 2.0}).view({2, 2})), by = tensor({1.0, 2.0, 3.0, 4.0}).view({2, 2});
  Tensor result = by_name("aten::_safe_softmax", {Value(x), Value(1)})[0];
  EXPECT_TRUE(equal(result.detach()[0], zeros({2})));
  Tensor slope = gradients(result, {x}, by)[0];
  EXPECT_TRUE(equal(slope[0], zeros({2})));
  Tensor other = leaf(tensor({1.0, 2.0}));
  expect_close(slope[1], gradients(softmax(other, 0), {other}, by[1])[0]);
}

TEST(Agreement, values_that_are_equal_have_gradients) {
  Tensor a = leaf(eye(3));
  expect_close(gradients(std::get<1>(linalg_svd(a)).sum(), {a})[0], eye(3));
}

TEST(Agreement, no_difference_takes_nothing_before_or_behind) {
  Tensor x = randn({4}), more = randn({2});
  EXPECT_TRUE(equal(by_name("aten::diff", {Value(x), Value(0), Value(0), Value(more), Value(more)})[0], x));
}

// Without training the slope is the middle of both, in place and not; with it what was drawn is written down.
TEST(Agreement, noise_of_rrelu_in_place) {
  const char* name = "aten::rrelu_with_noise_";
  Tensor x = randn({200}), plain = x.clone(), noise = zeros({200});
  dispatch::call_by_name(name, {Value(plain), Value(noise), Value(0.125), Value(0.375), Value(false)});
  expect_close(plain, where(x > 0, x, x * 0.25));
  EXPECT_EQ(noise.abs().max().item<double>(), 0);
  Tensor trained = x.clone(), given = leaf(x), through = given * 1;
  dispatch::call_by_name(name, {Value(trained), Value(noise), Value(0.125), Value(0.375), Value(true)});
  expect_close(trained, x * noise);
  EXPECT_TRUE((where(x > 0, noise == 1, (noise >= 0.125) & (noise <= 0.375))).all().item<bool>());
  dispatch::call_by_name(name, {Value(through), Value(noise), Value(0.125), Value(0.375), Value(true)});
  expect_close(gradients(through, {given}, ones({200}))[0], noise);
}

// Against differences: every way to apply reflections, whose factors are any numbers.
TEST(Agreement, reflections_have_gradients) {
  Tensor columns = leaf(randn({4, 3}, kFloat64)), tau = leaf(randn({3}, kFloat64));
  auto product = [](const std::vector<Tensor>& x) { return linalg_householder_product(x[0], x[1]); };
  EXPECT_TRUE(autograd::gradcheck(product, {columns, tau}));
  for (bool left : {false, true})
    for (bool transposed : {false, true}) {
      Tensor matrix = leaf(randn(left ? SymInts{4, 2} : SymInts{2, 4}, kFloat64));
      auto applied = [&](const std::vector<Tensor>& x) { return ormqr(x[0], x[1], x[2], left, transposed); };
      EXPECT_TRUE(autograd::gradcheck(applied, {columns, tau, matrix})) << left << transposed;
    }
}

// Sums of halves are rounded once, not at every term.
TEST(Agreement, halves_are_rounded_once) {
  auto rounded_once = [](const char* what, auto function, const Tensors& halves) {
    Tensors wide;
    for (const Tensor& each : halves) wide.push_back(each.to(kFloat32));
    Tensor is = function(halves).to(kFloat32), should = function(wide);
    // Half a step of a half, and what float32 loses by another order.
    Tensor allowed = should.abs() * 0x1p-11 + 1e-4;
    EXPECT_TRUE(((is - should).abs() <= allowed).all().item<bool>()) << what;
  };
  auto half = [](const SymInts& sizes) { return randn(sizes).to(kFloat16); };
  rounded_once("conv_transpose2d", [](const Tensors& x) { return conv_transpose2d(x[0], x[1], {}, {1, 1}); },
               {half({1, 8, 6, 6}), half({8, 3, 4, 4})});
  rounded_once("_trilinear",
               [](const Tensors& x) {
                 return by_name("aten::_trilinear", {Value(x[0]), Value(x[1]), Value(x[2]), Value(Ints{1, 3}),
                                                     Value(Ints{0}), Value(Ints{1, 2}), Value(Ints{2, 3})})[0];
               },
               {half({5, 8}), half({4, 8, 7}), half({5, 7})});
  rounded_once("addbmm",
               [](const Tensors& x) { return by_name("aten::addbmm", {Value(x[0]), Value(x[1]), Value(x[2])})[0]; },
               {half({3, 4}), half({9, 3, 8}), half({9, 8, 4})});
}

TEST(Agreement, bytes_are_resampled_as_bytes) {
  Tensor image = tensor({0, 10, 20, 255}).to(kUInt8).view({1, 1, 2, 2});
  Tensor larger = by_name("aten::upsample_bilinear2d", {Value(image), Value(Ints{2, 3}), Value(true)})[0];
  EXPECT_TRUE(equal(larger, tensor({0, 5, 10, 20, 138, 255}).to(kUInt8).view({1, 1, 2, 3}))) << larger.str();
  Tensor smaller = by_name("aten::_upsample_bilinear2d_aa", {Value(image), Value(Ints{1, 1}), Value(false)})[0];
  EXPECT_TRUE(equal(smaller, tensor({72}).to(kUInt8).view({1, 1, 1, 1}))) << smaller.str();
}

TEST(Agreement, vectors_are_stretched_before_their_cosine_is_taken) {
  Tensor x = randn({1, 2, 3}), y = randn({2, 1, 3});
  Tensor whole_x = expand(x, {2, 2, 3}), whole_y = expand(y, {2, 2, 3});
  Tensor expected = (whole_x * whole_y).sum(1) / ((whole_x * whole_x).sum(1) * (whole_y * whole_y).sum(1)).sqrt();
  expect_close(by_name("aten::cosine_similarity", {Value(x), Value(y), Value(-2)})[0], expected);
}

TEST(Agreement, results_lie_as_their_inputs_do) {
  auto strides = [](const Tensor& tensor) {
    return std::vector<int64_t>(tensor.strides().begin(), tensor.strides().end());
  };
  Tensor apart = randn({2, 4, 3, 8}), together = randn({2, 3, 4, 8}).transpose(1, 2);
  const char* attention = "aten::_scaled_dot_product_flash_attention_for_cpu";
  for (const Tensor& query : {apart, together}) {
    Tensor result = by_name(attention, {Value(query), Value(query), Value(query)})[0];
    EXPECT_EQ(strides(result), strides(query));
  }
  Tensor volume = randn({1, 2, 2, 3, 4}).contiguous(MemoryFormat::ChannelsLast3d);
  Tensor larger = by_name("aten::upsample_nearest3d", {Value(volume), Value(Ints{4, 6, 8})})[0];
  EXPECT_TRUE(larger.is_contiguous(MemoryFormat::ChannelsLast3d));
}

}  // namespace
}  // namespace tenon::test
