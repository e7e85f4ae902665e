// Seed 000's operator cases: division in its forms.
#include "operators.h"

#include <cmath>
#include <limits>

namespace tenon::operators {
namespace {

Tensors divisions(const Tensor& a, const Tensor& b) {
  return {div(a, b, std::nullopt), div(a, b, "floor"), div(a, b, "trunc"), a / b, floor_divide(a, b)};
}
Tensors check_divisions(const Tensor& a, const Tensor& b, const Check& how = {}) {
  return check([](Tensor x, Tensor y) { return divisions(x, y); }, {a, b}, how);
}
// Any numbers but 0.
Tensor divisors(const SymInts& sizes, int64_t low, int64_t high) {
  Tensor drawn = randint(low, high, sizes);
  return where(drawn == 0, full({}, 8, kInt64), drawn);
}

TEST(CommonTemplate, div1) {
  check_divisions(randn({8, 8}) * 100, randn({8, 8}) * 100,
                  {.rtol = 1e-5, .atol = 1e-5, .then = {randn({5, 5}) * 100, randn({5, 5}) * 100}});
}
TEST(CommonTemplate, div2) {
  Tensors results = check_divisions(randint(-100, 100, {8, 8}), randn({8, 8}) * 100);
  for (const Tensor& result : results) EXPECT_EQ(result.dtype(), kFloat32);
}
TEST(CommonTemplate, div3) {
  Tensor b = divisors({8, 8}, 1, 100);
  Tensors results = check_divisions(b * 2, b);
  EXPECT_EQ(results[0].dtype(), kFloat32);
  for (size_t whole : {1, 2, 4}) {
    EXPECT_TRUE(same_bits(results[whole], full({8, 8}, 2, kInt64)));
  }
}
TEST(CommonTemplate, div4) {
  Tensor a = randint(-100, 0, {8, 8}), b = divisors({8, 8}, 1, 10);
  Tensors results = check_divisions(a, b);
  EXPECT_TRUE((results[1] <= results[2]).all().item<bool>());
  EXPECT_TRUE((results[1] < results[2]).any().item<bool>()) << "floor and trunc differ below 0";
}
TEST(CommonTemplate, div5) {
  auto function = [](Tensor a) {
    Tensor b = scalar_tensor(16, kInt64);
    return std::tuple(div(a, b, std::nullopt), div(a, b, "floor"), div(a, b, "trunc"), a / 16, floor_divide(a, 16));
  };
  check(function, {randint(-100, 0, {8, 8})});
}
TEST(CommonTemplate, div6) { check_divisions(ones({8, 8}, kBool), randint(-100, -1, {8, 8})); }
TEST(CommonTemplate, div7) {
  Tensor a = randint(int64_t{1} << 32, int64_t{1} << 40, {100, 100}), b = randint(-10, -1, {100, 100});
  Tensors results = check_divisions(a, b);
  EXPECT_TRUE(same_bits(results[2] * b + fmod(a, b), a)) << "all 64 bits take part";
}
// A number is a tensor of no dimensions here, of int64 or of the default dtype.
TEST(CommonTemplate, div8) {
  auto function = [](auto a, auto b) {
    auto whole = [](const SymInt& number) { return scalar_tensor(number, kInt64); };
    auto real = [](const SymFloat& number) { return scalar_tensor(number, kFloat32); };
    return Tensors{div(whole(a), whole(b), std::nullopt),
                   div(whole(a), whole(b), "floor"),
                   div(whole(a), whole(b), "trunc"),
                   div(real(to_float(a) * 0.5), whole(b)),
                   div(whole(a), real(to_float(b) * 1.0)),
                   whole(a) / whole(b),
                   floor_divide(whole(a), whole(b)),
                   real(to_float(a) / to_float(b)),
                   whole(a / b)};
  };
  const Tensors eager = function(SymInt(1024), SymInt(100));
  const double expected[] = {10.24, 10, 10, 5.12, 10.24, 10.24, 10, 10.24, 10};
  const bool is_whole[] = {false, true, true, false, false, false, true, false, true};
  for (size_t at = 0; at < eager.size(); ++at) {
    EXPECT_EQ(eager[at].dtype(), is_whole[at] ? kInt64 : kFloat32) << at;
    EXPECT_FLOAT_EQ(eager[at].item<float>(), static_cast<float>(expected[at])) << at;
  }
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    Tensors results = compile(function, {.fullgraph = true, .dynamic = dynamic})(SymInt(1024), SymInt(100));
    for (size_t at = 0; at < eager.size(); ++at) EXPECT_TRUE(same_bits(results[at], eager[at])) << at;
  }
}
// PyTorch's primitive: true division of floating point numbers, division towards 0 of integers.
TEST(CommonTemplate, div_prim) {
  auto primitive = [](Tensor a, Tensor b) { return is_floating(a.dtype()) ? a / b : div(a, b, "trunc"); };
  for (Dtype dtype : {kFloat32, kInt64}) {
    Tensor a = randint(-1000, 1000, {100}).to(dtype), b = divisors({100}, -10, 10).to(dtype);
    Tensor result = check(primitive, {a, b})[0];
    EXPECT_EQ(result.dtype(), dtype);
    EXPECT_TRUE(same_bits(result, (dtype == kInt64 ? trunc(a.to(kFloat64) / b.to(kFloat64)) : a / b).to(dtype)));
  }
}
TEST(CommonTemplate, both_scalars) {
  auto function = [](auto a, auto b) {
    auto whole = [&] { return scalar_tensor(a, kInt64); };
    auto real = [&] { return scalar_tensor(b, kFloat32); };
    return Tensors{whole() + real(), real() + whole(), whole() - real(),
                   real() - whole(), whole() * real(), real() * whole()};
  };
  const Tensors eager = function(SymInt(4), SymFloat(3.3));
  const double expected[] = {7.3, 7.3, 0.7, -0.7, 13.2, 13.2};
  for (size_t at = 0; at < eager.size(); ++at) {
    EXPECT_EQ(eager[at].description(), "float32[]");
    EXPECT_NEAR(eager[at].item<double>(), expected[at], 1e-6);
  }
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    Tensors results = compile(function, {.fullgraph = true, .dynamic = dynamic})(SymInt(4), SymFloat(3.3));
    for (size_t at = 0; at < eager.size(); ++at) EXPECT_TRUE(same_bits(results[at], eager[at])) << at;
  }
}
TEST(CommonTemplate, div_zero_dim) {
  for (Dtype dtype : {kFloat32, kInt64}) {
    Tensor line = divisors({10}, 1, 100).to(dtype), point = tensor(7.0).to(dtype);
    check_divisions(line, point);
    check_divisions(point, line);
  }
}
TEST(CommonTemplate, div_precision) {
  check([](Tensor x, Tensor y) { return softmax(matmul(x, y) / 1e-6, -1); }, {randn({1, 10, 4}), randn({1, 4, 2})},
        {.backward = false});
  check([](Tensor x, Tensor y) { return softmax(matmul(x, x) / y, -1); }, {randn({2, 4, 4, 4}), rand({4, 1, 1}) + 0.1},
        {.backward = false});
}
TEST(CommonTemplate, div_by_zero) {
  Tensors results = check(
      [](Tensor x, Tensor zero, Tensor negative) {
        Tensor zeros = zeros_like(x);
        return Tensors{x / 0.0,       x / -0.0, zeros / 0.0,  x / zeros,      x / -zeros,
                       zeros / zeros, x / zero, x / negative, zero / negative};
      },
      {randn({10}), zeros({10}), -zeros({10})}, {.backward = false});
  EXPECT_TRUE(same_bits(results[0], -results[1]));
  EXPECT_TRUE(isnan(results[8]).all().item<bool>());
}
TEST(CommonTemplate, floordiv) {
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    auto floats = [](Tensor a, auto i) { return a + floor(to_float(i) * 1.234 / 8.234); };
    auto integers = [](Tensor a, auto i) { return a + i / 8; };
    Tensor a = randn({10});
    Tensor expected = a + std::floor(33 * 1.234 / 8.234);
    EXPECT_TRUE(same_bits(compile(floats, {.dynamic = dynamic})(a, SymInt(33)), expected));
    EXPECT_TRUE(same_bits(compile(integers, {.dynamic = dynamic})(a, SymInt(33)), a + 4));
  }
}
TEST(CommonTemplate, scalar_input) {
  for (Dynamic dynamic : {Dynamic::Off, Dynamic::On}) {
    auto function = [](Tensor x, auto y) { return div(x, scalar_tensor(y, kInt64), "floor"); };
    Tensor x = randint(8000, {1, 8});
    EXPECT_TRUE(same_bits(compile(function, {.dynamic = dynamic})(x, SymInt(5400)), floor_divide(x, 5400)));
  }
}

}  // namespace
}  // namespace tenon::operators
