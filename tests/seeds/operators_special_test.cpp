// Seed 000's operator cases: special functions, running products, searching, values that are no numbers.
#include "operators.h"

#include <limits>

namespace tenon::operators {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(CommonTemplate, sgn) {
  Tensors results = check([](Tensor a) { return std::tuple(sgn(a), sgn(a + 1) - 1); }, {linspace(-10, 10, 41)},
                          {.then = {randn({7})}});
  EXPECT_EQ(results[0].sum().item<double>(), 0);
}

TEST(CommonTemplate, sgn_extremal) {
  check([](Tensor a) { return sgn(a); }, {tensor({kNaN, kInf, -kInf, 0.0})});
}

TEST(CommonTemplate, signbit) {
  Tensor x = randn({1, 2, 6, 6});
  Tensors results =
      check([](Tensor a) { return std::tuple(signbit(a), bitwise_and(bitwise_not(signbit(-a)), 1)); }, {x});
  EXPECT_EQ(results[0].dtype(), kBool);
  EXPECT_EQ(results[1].dtype(), kInt64);
  EXPECT_TRUE(same_bits(signbit(tensor({0.0, -0.0, -kInf, 1.0})), tensor({false, true, true, false})));
}

TEST(CommonTemplate, fmin_fmax) {
  Tensor a = tensor({1.0, kNaN, 3.0, kNaN, -2.0, 0.0, 5.0}), b = tensor({2.0, 1.0, kNaN, kNaN, -3.0, 0.0, -5.0});
  Tensors results =
      check([](Tensor x, Tensor y) { return std::tuple(fmin(x, y), fmax(x, y), fmax(x + 1, tensor(0.0))); }, {a, b});
  EXPECT_TRUE(same_bits(isnan(results[0]), tensor({false, false, false, true, false, false, false})));
  EXPECT_EQ(results[1][1].item<double>(), 1);
  EXPECT_EQ(results[1][2].item<double>(), 3);
}

TEST(CommonTemplate, nan_to_num) {
  Tensor x = tensor({kNaN, kInf, -kInf, 1.0});
  Tensors results = check(
      [](Tensor a) {
        return std::tuple(nan_to_num(a), nan_to_num(a, 3.0), nan_to_num(a, {}), nan_to_num(a, {}, 4.0),
                          nan_to_num(a, {}, {}, 5.0), nan_to_num(a, 3.0, 4.0, 5.0));
      },
      {x});
  EXPECT_EQ(results[0][1].item<double>(), std::numeric_limits<float>::max());
  EXPECT_EQ(results[0][2].item<double>(), std::numeric_limits<float>::lowest());
  EXPECT_TRUE(same_bits(results[5], tensor({3.0, 4.0, 5.0, 1.0})));
}

TEST(CommonTemplate, erfc) {
  check([](Tensor x) { return erfc(x); }, {randn({8, 8})}, {.then = {randn({5, 5})}});
}

TEST(CommonTemplate, erfinv) {
  check([](Tensor x) { return erfinv(x); }, {rand({8, 8}) * 2 - 1}, {.then = {rand({3, 3}) * 2 - 1}});
}

TEST(CommonTemplate, lgamma) {
  Tensor x = randn({16, 16});
  ASSERT_LT(x.amin().item<double>(), 0);
  check([](Tensor a) { return std::tuple(lgamma(a) + 2, cos(a + 1)); }, {x});
}

TEST(CommonTemplate, exp2) {
  check([](Tensor a, Tensor b) { return std::tuple(exp2(a), exp2(a + b), pow(2, -abs(a - b))); },
        {randn({8, 8}), randn({8, 8})}, {.then = {randn({3, 3}), randn({3, 3})}});
}

TEST(CommonTemplate, pow2) {
  check([](Tensor x) { return std::tuple(pow(1000, x), pow(x, 1000)); }, {randn({16, 16})},
        {.rtol = 3e-5, .atol = 1e-5, .backward = false});
}

TEST(CommonTemplate, round) {
  manual_seed(11);
  Tensors results = check([](Tensor a, Tensor b) { return std::tuple(round(a), round(b + 1), round(a, 2)); },
                          {randn({8, 8}) * 100, randn({8, 8}) * 10});
  EXPECT_TRUE(same_bits(round(tensor({2.5, -0.5, 1.275})), tensor({2.0, -0.0, 1.0})));
}

TEST(CommonTemplate, dist) {
  Tensors results =
      check([](Tensor a, Tensor b) { return std::tuple(dist(a, b), dist(a, b, 1.2)); }, {randn({4, 4}), randn({4, 4})});
  EXPECT_EQ(results[0].dim(), 0);
}

TEST(CommonTemplate, dist_bf16) {
  Tensors results =
      check([](Tensor a, Tensor b) { return dist(a.to(kBFloat16), b.to(kBFloat16)); }, {randn({4, 4}), randn({4, 4})});
  EXPECT_EQ(results[0].dtype(), kBFloat16);
}

TEST(CommonTemplate, one_hot) {
  Tensors results = check([](Tensor a) { return one_hot(a, 8) + 1; }, {randint(8, {4, 5, 5})}, {.backward = false});
  EXPECT_EQ(results[0].dtype(), kInt64);
  EXPECT_EQ(results[0].sizes(), (Ints{4, 5, 5, 8}));
}

TEST(CommonTemplate, squeeze_varargs) {
  Tensors results = check([](Tensor x) { return x.squeeze(Ints{1, 2}).clone(); }, {randn({1024, 1, 1})},
                          {.then = {randn({77, 1, 1})}});
  EXPECT_EQ(results[0].dim(), 1);
}

// Read as: a number before the slash, its operator by name, and a tensor made of it.
TEST(CommonTemplate, div9) {
  check([](Tensor x) { return std::tuple(42 / x, true_divide(tensor(42.0), x), div(tensor(42), x)); }, {randn({8})});
}

TEST(CommonTemplate, masked_scatter) {
  Tensor mask = rand({10, 10}) < 0.5, source = randn({mask.sum().item<int64_t>()});
  Tensor value = randn({10, 10});
  Tensor result = check([](Tensor v, Tensor m, Tensor s) { return masked_scatter(v, m, s); }, {value, mask, source})[0];
  EXPECT_TRUE(same_bits(result.masked_select(mask), source));
}

// ---- Running products and sums

// Blocks of factors and their reciprocals, so that no product grows far.
Tensor bounded_factors(int64_t count, Dtype dtype) {
  Tensor block = rand({count / 20}, dtype) + 0.5;
  std::vector<Tensor> blocks;
  for (int at = 0; at < 10; ++at) {
    blocks.push_back(block);
    blocks.push_back(block.reciprocal());
  }
  return cat(blocks);
}

TEST(CommonTemplate, split_cumprod) {
  for (Dtype dtype : {kFloat32, kFloat64, kInt32, kInt64}) {
    Tensor x =
        is_floating(dtype) ? bounded_factors(10000, dtype).expand({10, 10000}).clone() : full({10, 10000}, -1, dtype);
    check([](Tensor a) { return cumprod(a, -1); }, {x}, {.rtol = 1e-4, .atol = 1e-5, .backward = false});
  }
}

TEST(CommonTemplate, consecutive_split_cumprod) {
  Tensor result = check([](Tensor a, Tensor b) { return cumprod(a, 0) + cumprod(b, 0); },
                        {bounded_factors(10000, kFloat32), bounded_factors(10000, kFloat64)},
                        {.rtol = 1e-5, .atol = 1e-5, .backward = false})[0];
  EXPECT_EQ(result.dtype(), kFloat64);
}

TEST(CommonTemplate, cumprod_zero_dim) {
  check([](Tensor x) { return std::tuple(cumprod(x, 0), cumprod(x, -1)); }, {tensor(1.5)});
}

TEST(CommonTemplate, logcumsumexp) {
  for (const Tensor& x : {rand({16, 32}), rand({20, 30}), rand({100, 4000})})
    check([](Tensor a) { return std::tuple(logcumsumexp(a, 0), logcumsumexp(a, 1)); }, {x},
          {.backward = x.sizes()[1] < 100});
}

TEST(CommonTemplate, logcumsumexp_zero_dim) {
  check([](Tensor x) { return std::tuple(logcumsumexp(x, 0), logcumsumexp(x, -1)); }, {tensor(1.5)});
}

// ---- Searching

Tensor boundaries() { return tensor({-0.9, -0.8, 0.1, 0.2, 0.5, 0.9}); }

TEST(CommonTemplate, bucketize) {
  Tensor result = check([](Tensor x, Tensor b) { return bucketize(x, b, true, false); },
                        {rand({64, 64}) * 2 - 1, boundaries()}, {.backward = false})[0];
  EXPECT_EQ(result.dtype(), kInt32);
}

TEST(CommonTemplate, bucketize_default_kwargs) {
  Tensor x = tensor({-1.0, -0.9, -0.8, -0.5, 0.0, 0.1, 0.2, 0.4, 0.5, 0.6, 0.9, 0.91});
  Tensor result = check([](Tensor a, Tensor b) { return bucketize(a, b); }, {x, boundaries()})[0];
  EXPECT_TRUE(same_bits(result, tensor({0, 0, 1, 2, 2, 2, 3, 4, 4, 5, 5, 6})));
}

TEST(CommonTemplate, bucketize_int) {
  Tensor offsets = (arange(10) * arange(10) + 1).to(kInt32);
  for (bool narrow : {false, true})
    for (bool right : {false, true}) {
      Tensor result = check([=](Tensor x, Tensor b) { return bucketize(x, b, narrow, right); },
                            {randint(102, {64, 64}), offsets})[0];
      EXPECT_EQ(result.dtype(), narrow ? kInt32 : kInt64);
    }
}

TEST(CommonTemplate, bucketize_add_autotune) {
  Tensor x = rand({16, 16, 64, 64}) * 2 - 1;
  Tensor more = randint(100, {16, 64, 64, 16}).permute({0, 3, 1, 2});
  check([](Tensor a, Tensor b, Tensor add) { return bucketize(a, b) + add; }, {x, boundaries(), more}, {.kernels = 1});
}

TEST(CommonTemplate, bucketize_computed_offsets) {
  Tensor x = tensor({-1.0, -0.9, -0.8, -0.5, 0.0, 0.1, 0.2, 0.4, 0.5, 0.6, 0.9, 0.91});
  check([](Tensor a, Tensor b) { return bucketize(a, b + 0.01); }, {x, boundaries()});
}

}  // namespace
}  // namespace tenon::operators
