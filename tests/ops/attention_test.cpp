// Attention by tiles against softmax and products in float64: values, gradients of two orders, masks, shared heads;
// eager and compiled.
#include <gtest/gtest.h>
#include <tenon/autograd/grad.h>
#include <tenon/support/parallel.h>
#include <tenon/tenon.h>

#include <cmath>

#include "error_of.h"
#include "ops/compare.h"

namespace tenon::test {
namespace {

using tenon::testing::error_of;
enum class Masked { Nothing, Bools, Numbers, Causal };

struct Case {
  Masked masked;
  int64_t key_heads;
  bool heads_between;  // in memory, between the rows
  Dtype dtype = kFloat32;
};

class AttentionCase : public ::testing::TestWithParam<Case> {};

TEST_P(AttentionCase, is_softmax_of_products) {
  const Case& c = GetParam();
  // Sizes that fill no tile and no vector.
  auto make = [&](int64_t heads, int64_t length, int64_t features) {
    Tensor made =
        c.heads_between ? randn({2, length, heads, features}).transpose(1, 2) : randn({2, heads, length, features});
    return made.to(c.dtype);
  };
  const double near = c.dtype == kFloat32 ? 1e-5 : 0.05;
  Tensors inputs{make(4, 37, 9), make(c.key_heads, 270, 9), make(c.key_heads, 270, 12)}, exact;
  std::optional<Tensor> mask, exact_mask;
  if (c.masked == Masked::Bools) {
    mask = rand({37, 270}) > 0.3;
    (*mask)[3].fill_(false);  // sees nothing
    exact_mask = mask;
  }
  if (c.masked == Masked::Numbers) {
    mask = randn({2, 1, 37, 270}).to(c.dtype);
    exact_mask = mask->to(kFloat64);
  }
  for (Tensor& input : inputs) exact.push_back(input.to(kFloat64));
  if (c.masked == Masked::Numbers) {
    inputs.push_back(*mask);
    exact.push_back(*exact_mask);
  }
  for (const Tensors* list : {&inputs, &exact})
    for (const Tensor& input : *list) input.set_requires_grad();
  const bool causal = c.masked == Masked::Causal;
  auto attend = [causal](const Tensors& x, const std::optional<Tensor>& m) {
    return scaled_dot_product_attention(x[0], x[1], x[2], m, 0.0, causal, std::nullopt, true);
  };
  Tensor result = attend(inputs, mask), expected = attend(exact, exact_mask);
  EXPECT_LT(relative_difference(result, expected), near);
  if (c.masked == Masked::Bools) {
    EXPECT_EQ(result.select(2, 3).abs().max().item<double>(), 0);
  }

  Tensor by = randn(result.sym_sizes()).to(c.dtype);
  Tensors once_exact = gradients(expected, exact, by.to(kFloat64), true);
  Tensors by_tiles = gradients(result, inputs, by), once = gradients(result, inputs, by, true);
  for (size_t at = 0; at < inputs.size(); ++at) {
    EXPECT_LT(relative_difference(by_tiles[at], once_exact[at]), near) << at;
    EXPECT_LT(relative_difference(once[at], once_exact[at]), near) << at;
  }
  auto energy = [](const Tensors& of) { return (of[0] * of[0]).sum() + (of[1] * of[2].sum()).sum(); };
  Tensors twice = gradients(energy(once), inputs), twice_exact = gradients(energy(once_exact), exact);
  for (size_t at = 0; at < inputs.size(); ++at)
    EXPECT_LT(relative_difference(twice[at], twice_exact[at]), 10 * near) << at;

  auto compiled = compile([=](Tensor q, Tensor k, Tensor v) { return attend({q, k, v}, mask); });
  Tensor faster = compiled(inputs[0], inputs[1], inputs[2]);
  EXPECT_EQ(relative_difference(faster, result), 0);
  EXPECT_EQ(str(faster.sym_strides()), str(result.sym_strides()));
  Tensors from_compiled = gradients(faster, {inputs[0], inputs[1], inputs[2]}, by);
  for (size_t at = 0; at < 3; ++at) EXPECT_EQ(relative_difference(from_compiled[at], by_tiles[at]), 0) << at;
}

INSTANTIATE_TEST_SUITE_P(Attention, AttentionCase,
                         ::testing::Values(Case{Masked::Nothing, 4, false}, Case{Masked::Nothing, 2, true},
                                           Case{Masked::Bools, 4, true}, Case{Masked::Bools, 1, false},
                                           Case{Masked::Numbers, 4, false}, Case{Masked::Numbers, 2, true},
                                           Case{Masked::Causal, 4, true}, Case{Masked::Causal, 2, false},
                                           Case{Masked::Causal, 4, false, kBFloat16},
                                           Case{Masked::Numbers, 2, true, kFloat16}));

TEST(Attention, does_not_depend_on_threads) {
  Tensor q = randn({1, 3, 100, 16}), k = randn({1, 3, 333, 16}), v = randn({1, 3, 333, 16});
  set_num_threads(1);
  Tensor alone = scaled_dot_product_attention(q, k, v);
  set_num_threads(3);
  Tensor shared = scaled_dot_product_attention(q, k, v);
  set_num_threads(0);
  EXPECT_EQ(relative_difference(shared, alone), 0);
}

TEST(Attention, without_keys_or_queries) {
  Tensor nobody = scaled_dot_product_attention(zeros({1, 2, 0, 4}), randn({1, 2, 3, 4}), randn({1, 2, 3, 4}));
  EXPECT_EQ(str(nobody.sym_sizes()), "[1, 2, 0, 4]");
  Tensor nothing = scaled_dot_product_attention(randn({1, 2, 3, 4}), zeros({1, 2, 0, 4}), zeros({1, 2, 0, 5}));
  EXPECT_EQ(relative_difference(nothing, zeros({1, 2, 3, 5})), 0);
}

TEST(Attention, values_that_are_part_of_wider_rows) {
  Tensor q = randn({1, 2, 5, 4}), k = randn({1, 2, 20, 4}), wide = randn({1, 2, 20, 16});
  for (int64_t features : {12, 7}) {
    Tensor part = wide.slice(3, 16 - features);  // its last row ends where the memory does
    EXPECT_EQ(
        relative_difference(scaled_dot_product_attention(q, k, part), scaled_dot_product_attention(q, k, part.clone())),
        0);
  }
}

TEST(Attention, nan_stays) {
  Tensor q = randn({1, 1, 3, 4}), k = randn({1, 1, 20, 4}), v = randn({1, 1, 20, 4});
  q[0][0][1][2] = NAN;
  Tensor result = scaled_dot_product_attention(q, k, v);
  EXPECT_FALSE(std::isnan(result[0][0][0][0].item<double>()));
  EXPECT_TRUE(std::isnan(result[0][0][1][0].item<double>()));
}

TEST(Attention, of_other_ranks_and_with_a_scale) {
  Tensor q = randn({5, 7, 4}), k = randn({5, 9, 4}), v = randn({5, 9, 4}), mask = rand({5, 7, 9}) > 0.2;
  auto by_hand = [&](double scale) {
    Tensor scores = masked_fill(matmul(q, k.transpose(1, 2)) * scale, logical_not(mask), -INFINITY);
    return matmul(softmax(scores, -1), v);
  };
  EXPECT_LT(relative_difference(scaled_dot_product_attention(q, k, v, mask), by_hand(0.5)), 1e-5);
  EXPECT_LT(relative_difference(scaled_dot_product_attention(q, k, v, mask, 0.0, false, 0.3), by_hand(0.3)), 1e-5);
  Tensor one = scaled_dot_product_attention(q[0], k[0], v[0], mask[0]);
  EXPECT_LT(relative_difference(one, by_hand(0.5)[0]), 1e-5);
}

TEST(Attention, dropped_weights_keep_their_mean) {
  Tensor q = randn({2, 4, 64, 8}), k = randn({2, 4, 64, 8}), v = ones({2, 4, 64, 8});
  double mean = scaled_dot_product_attention(q, k, v, std::nullopt, 0.25).mean().item<double>();
  EXPECT_NEAR(mean, 1, 0.05);
}

TEST(Attention, errors) {
  Tensor q = zeros({1, 2, 3, 4});
  EXPECT_EQ(error_of([&] { scaled_dot_product_attention(q, zeros({1, 2, 3, 5}), q); }),
            "[scaled_dot_product_attention] queries float32[1, 2, 3, 4], keys float32[1, 2, 3, 5] and values "
            "float32[1, 2, 3, 4] do not fit: expected as many features of queries and keys, and as many keys as "
            "values");
  EXPECT_EQ(error_of([&] { scaled_dot_product_attention(q, q, q, ones({3, 3}, kBool), 0.0, true); }),
            "[scaled_dot_product_attention] expected a mask or is_causal, not both");
  EXPECT_EQ(error_of([&] { scaled_dot_product_attention(q, zeros({1, 4, 3, 4}), zeros({1, 4, 3, 4})); }),
            "[scaled_dot_product_attention] expected as many heads, got float32[1, 2, 3, 4] and float32[1, 4, 3, 4]; "
            "enable_gqa lets heads share keys");
  EXPECT_EQ(error_of([&] { scaled_dot_product_attention(q, q, q, ones({3, 3}, kInt64)); }),
            "[scaled_dot_product_attention] expected a mask of bools or of float32, got int64[3, 3]");
}

}  // namespace
}  // namespace tenon::test
