// Seed 000's operator cases: arithmetic of elements.
#include "operators.h"

#include <limits>
#include <numeric>

namespace tenon::operators {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

// The same values with `value` at one place.
Tensor with(const Tensor& values, int64_t at, double value) {
  Tensor copy = values.clone();
  copy[at] = value;
  return copy;
}

TEST(CommonTemplate, add_const_int) {
  for (Dtype dtype : {kFloat32, kInt32, kInt64}) {
    Tensors results = check([](Tensor a) { return std::tuple(a + 1, add(a, 1, 2)); }, {arange(32, dtype)},
                            {.then = {arange(45, dtype)}});
    EXPECT_EQ(results[0].dtype(), dtype);
    EXPECT_TRUE(same_bits(results[1], arange(2, 34, 1, dtype)));
  }
}

TEST(CommonTemplate, add_const_float) {
  check([](Tensor a) { return a + 1.5; }, {randn({32})}, {.then = {randn({7})}});
}

TEST(CommonTemplate, add_inplace_permuted) {
  Tensor x = ones({2, 12, 13, 17}).transpose(1, 2), y = randn({2, 13, 1, 17});
  ASSERT_FALSE(x.is_contiguous());
  check([](Tensor a, Tensor b) { return a.add_(b); }, {x, y});
}

TEST(CommonTemplate, concat_add_inplace) {
  check([](Tensor x, Tensor y, Tensor z) { return cat({x, y}, 1).add_(z); },
        {randn({2, 12, 14, 14}), randn({2, 12, 14, 14}), randn({2, 24, 14, 14})});
}

TEST(CommonTemplate, abs) {
  check([](Tensor a) { return a / (abs(a) + 1); }, {randn({17})}, {.then = {randn({33})}});
}

TEST(CommonTemplate, max_min) {
  auto function = [](Tensor a, Tensor b) { return std::tuple(maximum(a, b), minimum(a, b)); };
  Tensor a = randn({8}), b = randn({8});
  check(function, {a, b});
  Tensors results = check(function, {with(a, 0, kNaN), with(b, 1, kNaN)});
  for (const Tensor& result : results)
    EXPECT_TRUE(same_bits(isnan(result), tensor({true, true, false, false, false, false, false, false})));
}

TEST(CommonTemplate, neg_max_uint8) {
  Tensor a = randint(256, {1}, kUInt8), b = randint(256, {8390}, kUInt8);
  Tensor result = check([](Tensor x, Tensor y) { return maximum(y, neg(x)); }, {a, b})[0];
  int64_t wrapped = (256 - a[0].item<int64_t>()) % 256;
  EXPECT_TRUE(same_bits(result, maximum(b.to(kInt64), full({1}, wrapped, kInt64)).to(kUInt8)));
}

TEST(CommonTemplate, compar) {
  Tensors results =
      check([](Tensor x) { return std::tuple(gt(x, 3.5), ge(x, 3.5), eq(x, 3.5), le(x, 2.5), lt(x, 3.5), ne(x, 3.5)); },
            {tensor({3, 1, 4})});
  EXPECT_TRUE(same_bits(results[0], tensor({false, false, true})));
  EXPECT_TRUE(same_bits(results[2], tensor({false, false, false}))) << "3.5 is not 3";
}

TEST(CommonTemplate, horizonal_fusion1) {
  check([](Tensor a, Tensor b, Tensor c) { return std::tuple(a + b, a - c, b * c); },
        {randn({8, 16, 16}), randn({8, 16, 16}), randn({1, 16, 1})},
        {.then = {randn({5, 7, 7}), randn({5, 7, 7}), randn({1, 7, 1})}});
}

TEST(CommonTemplate, horizonal_fusion2) {
  check([](Tensor a, Tensor b, Tensor c) { return std::tuple(a + 1, b + 2, c + 3); },
        {randn({8, 16, 8}), randn({8, 16}), randn({16, 8})});
}

TEST(CommonTemplate, vertical_fusion1) {
  auto function = [](Tensor sa, Tensor ct, Tensor p) {
    Tensor v17 = 9.652247e-6 * ct - 2.1e-4, v18 = 1.4e-7 * ct + 6.3e-4, v19 = -9.1e-9 + 3.2e-10 * ct;
    Tensor v20 = 1.667e-8 * ct + 0.017;
    Tensor t = v17 + ct * (v18 + v19 * ct) + v20 * sa;
    return 1 / t + t * p;
  };
  check(function, {rand({204, 204, 26}) + 1, rand({204, 204, 26}) + 1, rand({26})}, {.backward = false, .kernels = 1});
}

TEST(CommonTemplate, clamp) {
  check([](Tensor a, Tensor b) { return std::tuple(a.clamp(-0.1, 0.1), b.clamp(0), clamp(a + b, {}, Scalar(0))); },
        {randn({8, 8}), randn({8, 8})});
}

TEST(CommonTemplate, clamp_type_promotion) {
  Tensor result = check(
      [](Tensor a) {
        std::optional<Tensor> low = tensor(1.0, kFloat64), high = full({4}, 2, kInt64);
        return clamp(a, low, high);
      },
      {tensor({0, 1, 2, 3})})[0];
  EXPECT_TRUE(same_bits(result, tensor({1.0, 1.0, 2.0, 2.0}, kFloat64)));
}

TEST(CommonTemplate, relu) {
  check([](Tensor a, Tensor b) { return std::tuple(relu(a), relu(a + b) / 10); }, {randn({8, 8}), randn({8, 8})});
}

TEST(CommonTemplate, exp) {
  check([](Tensor a, Tensor b) { return std::tuple(exp(a), exp(a + b)); }, {randn({8, 8}), randn({8, 8})});
}

TEST(CommonTemplate, sigmoid) {
  check([](Tensor a, Tensor b) { return std::tuple(sigmoid(a), sigmoid(a + b)); }, {randn({8, 8}), randn({8, 8})});
}

TEST(CommonTemplate, round_correctness) {
  Tensor result = check([](Tensor a) { return round(a); }, {arange(-10, 10, 0.1, kFloat64)})[0];
  EXPECT_TRUE(
      same_bits(round(tensor({0.5, 1.5, 2.5, -0.5, -1.5}, kFloat64)), tensor({0.0, 2.0, 2.0, -0.0, -2.0}, kFloat64)));
  EXPECT_EQ(result.numel().plain(), 200);
}

TEST(CommonTemplate, silu) {
  check([](Tensor a) { return silu(a); }, {randn({8, 8})});
}

TEST(CommonTemplate, elu) {
  check([](Tensor x) { return std::tuple(elu(x, 1.6732632423543772, 1.0507009873554805) + 2, elu(x + 1, 2, 3, 4)); },
        {randn({16, 16})}, {.rtol = 1e-4, .atol = 1e-4});
}

TEST(CommonTemplate, tan) {
  check([](Tensor x) { return std::tuple(tan(x) + 2, tan(x + 1)); }, {randn({16, 16})});
}
TEST(CommonTemplate, tanh) {
  check([](Tensor x) { return std::tuple(tanh(x) + 2, tanh(x + 1)); }, {randn({16, 16})});
}
TEST(CommonTemplate, cos) {
  check([](Tensor x) { return std::tuple(cos(x) + 2, cos(x + 1)); }, {randn({16, 16})});
}
TEST(CommonTemplate, sin) {
  check([](Tensor x) { return std::tuple(sin(x) + 2, sin(x + 1)); }, {randn({16, 16})});
}
TEST(CommonTemplate, leaky_relu) {
  check([](Tensor x) { return std::tuple(leaky_relu(x, 0.2) + 2, leaky_relu(x + 1)); }, {randn({16, 16})});
}
TEST(CommonTemplate, gelu) {
  check([](Tensor x) { return std::tuple(gelu(x) + 2, gelu(x + 1)); }, {randn({16, 16})});
}
TEST(CommonTemplate, clone) {
  check([](Tensor x) { return std::tuple(clone(x) + 2, clone(x + 1)); }, {randn({16, 16})});
}
TEST(CommonTemplate, glu) {
  check([](Tensor x) { return std::tuple(glu(x, -1), glu(x, 1), glu(x, 2)); }, {randn({8, 16, 8, 8})});
}
TEST(CommonTemplate, hardtanh) {
  check([](Tensor x) { return std::tuple(hardtanh(x), hardtanh(x + 1), hardtanh(x - 1)); }, {randn({64})});
}
TEST(CommonTemplate, hardsigmoid) {
  check([](Tensor x) { return std::tuple(hardsigmoid(x), hardsigmoid(x + 3), hardsigmoid(x - 3)); }, {randn({64})});
}
TEST(CommonTemplate, hardswish) {
  check([](Tensor x) { return std::tuple(hardswish(x), hardswish(x + 3), hardswish(x - 3)); }, {randn({64})});
}
TEST(CommonTemplate, rsqrt) {
  Tensor x = randn({64});
  ASSERT_TRUE((x < 0).any().item<bool>());
  check([](Tensor a) { return std::tuple(rsqrt(a), rsqrt(a + 1) - 2); }, {x});
}

// Ordinary values, and those near 0, where precision counts.
void check_near_zero(Tensor (*function)(const Tensor&)) {
  for (Dtype dtype : {kFloat16, kFloat32, kFloat64, kInt32, kInt64}) {
    Tensors results =
        check([function](Tensor x) { return std::tuple(function(x), function(x) * 2); }, {randn({64}).to(dtype)});
    EXPECT_EQ(results[0].dtype(), is_floating(dtype) ? dtype : kFloat32);
    Tensor tiny = arange(-1e-5, 1e-5, 1e-7, kFloat64).to(dtype);
    Tensor small = check([function](Tensor x) { return function(x); }, {tiny})[0];
    if (dtype == kFloat32 || dtype == kFloat64) {
      EXPECT_TRUE(close(small, function(tiny.to(kFloat64)).to(dtype), {.rtol = 1.3e-6, .atol = 0}));
    }
  }
}
TEST(CommonTemplate, expm1) { check_near_zero(expm1); }
TEST(CommonTemplate, log1p) { check_near_zero(log1p); }

TEST(CommonTemplate, sign_dtype) {
  Tensor result = check([](Tensor x) { return tanh(sign(x)); }, {randn({1, 2, 6, 6})})[0];
  EXPECT_EQ(result.dtype(), kFloat32);
}
TEST(CommonTemplate, fmod) {
  check([](Tensor a, Tensor b) { return std::tuple(fmod(a, b), fmod(3.0 * a, b) - 2.0); },
        {randn({1, 2, 6, 6}), randn({1, 2, 6, 6})});
}
TEST(CommonTemplate, fmod_zero_dim) {
  auto function = [](Tensor a, Tensor b) { return fmod(a, b); };
  check(function, {rand({10}) + 0.5, tensor(0.7)});
  check(function, {tensor(2.7), rand({10}) + 0.5});
}
TEST(CommonTemplate, log2) {
  check([](Tensor x) { return std::tuple(log2(x), log2(x + 1) - 2); }, {randn({64}) + 10});
}
TEST(CommonTemplate, log_fp64) {
  Tensor x = randn({1024}, kFloat64) + 10;
  Tensors results = check([](Tensor a) { return std::tuple(log(a), log2(a)); }, {x});
  for (int64_t i : {0, 511, 1023}) {
    double value = x[i].item<double>();
    EXPECT_NEAR(results[0][i].item<double>(), std::log(value), 1e-15 * std::log(value) * 2);
    EXPECT_NEAR(results[1][i].item<double>(), std::log2(value), 1e-15 * std::log2(value) * 2);
  }
}
TEST(CommonTemplate, bitwise) {
  check([](Tensor x,
           Tensor y) { return std::tuple(bitwise_not(x), bitwise_or(x, y), bitwise_xor(x, y), bitwise_and(x, y)); },
        {randint(int64_t{1} << 30, {64}, kInt32), randint(int64_t{1} << 30, {64}, kInt32)});
}
TEST(CommonTemplate, bitwise2) {
  Tensors results =
      check([](Tensor x,
               Tensor y) { return std::tuple(bitwise_not(x), bitwise_or(x, y), bitwise_xor(x, y), bitwise_and(x, y)); },
            {randint(2, {2, 20}).to(kBool), randint(2, {2, 20}).to(kBool)});
  for (const Tensor& result : results) EXPECT_EQ(result.dtype(), kBool);
}
TEST(CommonTemplate, inf) {
  check([](Tensor a) { return std::tuple(a + kInf, a + -kInf, a * -kInf); }, {randn({8})});
}
TEST(CommonTemplate, remainder) {
  Tensor a = randn({64}), b = randn({64});
  Tensor result = check(
      [](Tensor x, Tensor y) { return std::tuple(remainder(x, y), remainder(x + 1, y - 1), remainder(x - 1, y + 1)); },
      {a, b}, {.rtol = 1e-4, .atol = 1e-4})[0];
  EXPECT_TRUE((result * b >= 0).all().item<bool>()) << "the sign follows the divisor";
}
TEST(CommonTemplate, isinf) {
  for (Dtype dtype : {kFloat32, kFloat64}) {
    Tensor x = tensor({1.0, kInf, 2.0, -kInf, kNaN}, dtype);
    Tensors results = check([](Tensor a) { return std::tuple(isinf(a), isnan(a)); }, {x});
    EXPECT_TRUE(same_bits(results[0], tensor({false, true, false, true, false})));
    EXPECT_TRUE(same_bits(results[1], tensor({false, false, false, false, true})));
  }
}
TEST(CommonTemplate, isinf2) {
  Tensor x = tensor({1.0, kInf, 2.0, -kInf, kNaN});
  Tensor result = check([](Tensor a) { return a == tensor({1.0, kInf, 2.0, -kInf, kNaN}); }, {x})[0];
  EXPECT_TRUE(same_bits(result, tensor({true, true, true, true, false})));
}
TEST(CommonTemplate, pow1) {
  check(
      [](Tensor x) {
        Tensors powers;
        for (int e = -8; e <= 8; ++e) powers.push_back(pow(x, e));
        return powers;
      },
      {randn({16, 16})}, {.rtol = 1e-5, .atol = 1e-5});
}
TEST(CommonTemplate, pow3) {
  check([](Tensor x) { return pow(tensor(0.123) + x, 0.5); }, {tensor(0.4)});
}
TEST(CommonTemplate, inplace_mixed_dtype_ops) {
  Tensor result = check(
      [](Tensor x, Tensor y) {
        Tensor z = x + y.to(kFloat32);
        return z.add_(y).mul_(y);
      },
      {randn({4, 4}), randn({4, 4}, kFloat64)})[0];
  EXPECT_EQ(result.dtype(), kFloat32);
}
TEST(CommonTemplate, where_with_logical_op) {
  check(
      [](Tensor x, Tensor y) {
        Tensor one = tensor(1.0), zero = tensor(0.0);
        return std::tuple(where(logical_and(x, y), one, zero), where(logical_or(x, y), one, zero));
      },
      {randint(2, {32}).to(kFloat32), randn({32})});
}
TEST(CommonTemplate, vdd_clamp) {
  Tensor base = randn({16}).set_requires_grad();
  auto function = [](Tensor x) { return clamp_min(x, 3); };
  check(function, {(base * 10).detach()});
  Tensor gradient = randn({16});
  (function(base * 10) * gradient).sum().backward();
  Tensor expected = base.grad();
  base.set_grad(Tensor());
  (compile(function)(base * 10) * gradient).sum().backward();
  EXPECT_TRUE(same_bits(base.grad(), expected)) << "the input of the compiled function is no leaf";
}
TEST(CommonTemplate, lerp) {
  auto function = [](Tensor a, Tensor b) { return lerp(a, b, 70000); };
  check([=](Tensor i0, Tensor i1) { return function(i1, i0.transpose(-2, -3)); },
        {rand({10, 3, 10}), rand({3, 10, 10})});
  check([=](Tensor i0, Tensor i1) { return function(i1, i0); }, {rand({3, 10, 10}), rand({3, 10, 10})});
}

}  // namespace
}  // namespace tenon::operators
