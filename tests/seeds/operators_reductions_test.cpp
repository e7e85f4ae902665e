// Seed 000's operator cases: reductions, running sums, softmax.
#include "operators.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace tenon::operators {
namespace {

using ::testing::ContainsRegex;

constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(CommonTemplate, sum1) {
  check([](Tensor a, Tensor b) { return (a + b).sum(-1); }, {randn({8, 8}), randn({8, 8})},
        {.then = {randn({11, 11}), randn({11, 11})}});
}
TEST(CommonTemplate, sum2) {
  check([](Tensor a, Tensor b) { return std::tuple((a + b).sum(Ints{1, 2}), (a + b).sum(-1)); },
        {randn({8, 9, 3, 21}), randn({8, 9, 3, 21})});
}
TEST(CommonTemplate, sum3) {
  check(
      [](Tensor a, Tensor b) {
        Tensor r1 = a + b;
        return std::tuple(r1, r1.sum(-1), squeeze(b) + 10);
      },
      {randn({10, 10}), randn({1, 10})}, {.rtol = 2e-3, .atol = 1e-5});
}
TEST(CommonTemplate, sum4) {
  check(
      [](Tensor a) {
        Tensor b = a + 1, c = b.sum(-1), d = c + 3, e = d.sum(-1), f = e + 5;
        return std::tuple(f, e, d, c, b);
      },
      {randn({1, 16, 8, 8})});
}
TEST(CommonTemplate, sum5) {
  check([](Tensor a) { return ((a + 1).sum(-1) + 3).sum(-1) + 5; }, {randn({1, 17, 8, 9})});
}
TEST(CommonTemplate, reduction1) {
  Tensors results = check([](Tensor a) { return std::tuple(a.sum(), a.max(), a.min(), a.argmax(), a.argmin()); },
                          {tensor({-kInf, 0.0, kInf})}, {.backward = false});
  EXPECT_TRUE(std::isnan(results[0].item<double>()));
  EXPECT_EQ(results[3].item<int64_t>(), 2);
  EXPECT_EQ(results[4].item<int64_t>(), 0);
}
TEST(CommonTemplate, reduction2) {
  Tensors results = check([](Tensor a) { return std::tuple(a.sum(), a.max(), a.min(), a.argmin()); }, {full({4}, kInf)},
                          {.backward = false});
  EXPECT_EQ(results[2].item<double>(), kInf);
}
TEST(CommonTemplate, reduction3) {
  Tensors results = check([](Tensor a) { return std::tuple(a.sum(), a.max(), a.min(), a.argmax()); },
                          {full({4}, -kInf)}, {.backward = false});
  EXPECT_EQ(results[1].item<double>(), -kInf);
}
TEST(CommonTemplate, prod) {
  auto function = [](Tensor a) { return std::tuple(a.prod(0), a.prod(1), a.prod()); };
  check(function, {rand({10, 10})});
  check(function, {rand({1, 2050})});
}
TEST(CommonTemplate, multilayer_prime_size) {
  Tensor x = zeros({3999971}, kInt64);
  x[-1] = 1;
  Tensors results = check([](Tensor a) { return std::tuple(a.max(), a.sum()); }, {x});
  EXPECT_EQ(results[0].item<int64_t>(), 1);
  EXPECT_EQ(results[1].item<int64_t>(), 1);
}
TEST(CommonTemplate, multilayer_var) {
  Check how{.rtol = 1e-3, .atol = 1e-3};
  check([](Tensor a) { return a.var(); }, {rand({10, 3, 352, 352})}, how);
  check([](Tensor a) { return a.var(); }, {rand({14923})}, how);
}
TEST(CommonTemplate, multilayer_var_lowp) {
  for (SymInts sizes : {SymInts{16, 16, 352, 352}, SymInts{14923}}) {
    Tensor x = rand(sizes, kFloat16);
    Tensor result = check([](Tensor a) { return a.var(); }, {x}, {.backward = false})[0];
    EXPECT_EQ(result.dtype(), kFloat16);
    EXPECT_TRUE(close(result, x.to(kFloat32).var().to(kFloat16), {}));
  }
}
TEST(CommonTemplate, split_cumsum) {
  for (Dtype dtype : {kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat32, kFloat64, kBool}) {
    Tensor x = is_floating(dtype) ? rand({3717120}, dtype) : randint(2, {3717120}).to(dtype);
    Check how{.rtol = 1e-5, .atol = 1e-5, .backward = false};
    Tensor result = check([](Tensor a) { return a.cumsum(-1); }, {x}, how)[0];
    EXPECT_EQ(result.dtype(), is_floating(dtype) ? dtype : kInt64);
    check([](Tensor a) { return a.cumsum(-1); }, {x.view({10, 371712})}, how);
  }
}
TEST(CommonTemplate, consecutive_split_cumsum) {
  Tensor a = rand({10 * 3 * 352 * 352}), b = rand({10 * 3 * 352 * 352}, kFloat64);
  Tensor result = check([](Tensor x, Tensor y) { return cumsum(x, 0) + cumsum(y, 0); }, {a, b},
                        {.rtol = 1e-5, .atol = 1e-5, .backward = false})[0];
  EXPECT_EQ(result.dtype(), kFloat64);
}
TEST(CommonTemplate, expanded_reduction) {
  check([](Tensor x, Tensor y) { return (x * y).sum(Ints{0, 1}); }, {rand({2, 197, 256}), rand({2, 1, 256})},
        {.rtol = 1e-5, .atol = 1e-4});
}
TEST(CommonTemplate, min_max_reduction) {
  for (Dtype dtype : {kFloat32, kFloat16, kBFloat16})
    check(
        [](Tensor a, Tensor b) {
          return std::tuple((a + b).max(), (a + b).min(), amax(a + 1, Ints{}, true), amin(b + 1, Ints{}, true));
        },
        {rand({8, 8}).to(dtype), rand({8, 8}).to(dtype)}, {.backward = dtype == kFloat32});
}
TEST(CommonTemplate, min_max_reduction_nan) {
  Tensor x = randn({32});
  x[16] = kNaN;
  Tensors results = check([](Tensor a) { return std::tuple(a.max(), a.min()); }, {x}, {.backward = false});
  for (const Tensor& result : results) EXPECT_TRUE(std::isnan(result.item<double>()));
}
TEST(CommonTemplate, sum_int) {
  for (Dtype dtype : {kBool, kUInt8, kInt32}) {
    Tensor result = check([](Tensor x) { return 2 * x.sum(-1) + x.sum(); }, {randint(2, {64}).to(dtype)})[0];
    EXPECT_EQ(result.dtype(), kInt64);
  }
}
TEST(CommonTemplate, sum_dtype) {
  Tensor result =
      check([](Tensor x) { return x * x.sum(-1, false, kFloat64) + x.sum(kFloat64); }, {full({32, 32}, 70.0)})[0];
  EXPECT_EQ(result.dtype(), kFloat64);
}
TEST(CommonTemplate, cumsum) {
  auto function = [](Tensor x) { return std::tuple(x.cumsum(0), x.cumsum(1)); };
  Check how{.rtol = 1e-5, .atol = 1e-5};
  for (SymInts sizes : {SymInts{16, 32}, SymInts{20, 30}, SymInts{100, 4000}}) check(function, {rand(sizes)}, how);
}
TEST(CommonTemplate, cumsum_zero_dim) {
  check([](Tensor x) { return std::tuple(x.cumsum(0), x.cumsum(-1)); }, {rand({})});
}
TEST(CommonTemplate, cumsum_no_mask) {
  Check how{.rtol = 1e-5, .atol = 1e-5};
  for (int64_t n : {1024, 8192}) check([](Tensor x) { return x.cumsum(-1); }, {rand({1, n})}, how);
}
TEST(CommonTemplate, sum_keepdims) {
  check([](Tensor a, Tensor b) { return sum(a + b, -1, true); }, {randn({8, 8}), randn({8, 8})});
}
TEST(CommonTemplate, softmax) {
  check([](Tensor a, Tensor b) { return std::tuple(softmax(a + b, -1), softmax(a, 0), softmax(b, 1)); },
        {randn({8, 8}), randn({8, 8})}, {.then = {randn({12, 12}), randn({12, 12})}});
}
TEST(CommonTemplate, log_softmax) {
  check([](Tensor a, Tensor b) { return std::tuple(log_softmax(a + b, -1), log_softmax(a, 0), log_softmax(b, 1)); },
        {randn({8, 8}), randn({8, 8})});
}
TEST(CommonTemplate, mean) {
  check([](Tensor x) { return std::tuple(x.mean(), x.mean(-1), mean(x, -2, true), x.mean(Ints{0, 1})); },
        {randn({1, 2, 4, 8})});
}
TEST(CommonTemplate, issue102546) {
  check([](Tensor x) { return x.mean(0); }, {rand({})});
}
TEST(CommonTemplate, var_mean) {
  check([](Tensor x) { return std::tuple(var_mean(x, Ints{-1}), var_mean(x, Ints{1, 3})); }, {randn({1, 2, 4, 8})});
}
TEST(CommonTemplate, var_correction) {
  for (int64_t width : {8, 4})
    for (Scalar correction : {Scalar(1.3), Scalar(3), Scalar(10)}) {
      Tensor result = check([=](Tensor x) { return var(x, Ints{-1}, correction); }, {randn({2, width})},
                            {.backward = correction.to_double() < 4})[0];
      if (correction.to_double() == 10) {
        EXPECT_TRUE(isinf(result).all().item<bool>()) << "the denominator is 0";
      }
    }
}
TEST(CommonTemplate, std) {
  // The flag of PyTorch's `unbiased` forms is a correction of 1 or 0.
  check(
      [](Tensor x) {
        OptionalInts all;
        Tensors results;
        for (int correction : {1, 0}) {
          results.push_back(var(x, all, Scalar(correction)));
          results.push_back(var(x, Ints{-1}, Scalar(correction)));
          results.push_back(x.std(Ints{0, 1}, Scalar(correction)));
        }
        results.push_back(x.std(all, Scalar(0)));
        results.push_back(x.std(Ints{-2}, Scalar(1), true));
        return results;
      },
      {randn({2, 4, 4, 8})});
}
TEST(CommonTemplate, logsumexp) {
  check([](Tensor x) { return std::tuple(logsumexp(x, -1), logsumexp(x, 0) - 2); }, {randn({8, 8}) + 10});
}
TEST(CommonTemplate, no_op_reduction) {
  check([](Tensor a) { return std::tuple(a.sum(-1), amax(a + 1, 1, true)); }, {randn({8, 1, 1})});
}
TEST(CommonTemplate, any) {
  auto function = [](Tensor x) {
    return std::tuple(x.any(-1), x.isinf().any(), all(x.isinf(), 0), all(logical_not(x.isinf())));
  };
  check(function, {-rand({64})});
  Tensor x = randn({16, 8});
  x[2][3] = kInf;
  Tensors results = check(function, {x});
  EXPECT_TRUE(results[1].item<bool>());
  for (const Tensor& result : results) EXPECT_EQ(result.dtype(), kBool);
}
TEST(CommonTemplate, multilayer_any) {
  auto function = [](Tensor x) { return std::tuple(x.isinf().any(), x.isfinite().all()); };
  Tensor x = rand({9, 3, 353, 353});
  EXPECT_FALSE(check(function, {x})[0].item<bool>());
  x.view(-1)[-1] = kInf;
  Tensors results = check(function, {x});
  EXPECT_TRUE(results[0].item<bool>());
  EXPECT_FALSE(results[1].item<bool>());
}
TEST(CommonTemplate, argmax_argmin1) {
  check([](Tensor x) { return std::tuple(argmax(x), argmin(x)); }, {randn({8, 256, 256})});
}
TEST(CommonTemplate, argmax_argmin2) {
  check([](Tensor x) { return std::tuple(argmax(x, 0), argmin(x, 0), argmax(x, 1), argmin(x, 1)); },
        {randn({144, 144})});
}
TEST(CommonTemplate, argmax_argmin_with_duplicates) {
  for (auto [n, below] : {std::pair{6, 2}, std::pair{32, 8}, std::pair{1028, 8}}) {
    Tensor x = randint(below, {n, n});
    Tensors results =
        check([](Tensor a) { return std::tuple(argmax(a, 0), argmin(a, 0), argmax(a, 1), argmin(a, 1)); }, {x});
    for (int64_t row = 0; row < n; row += 5) {
      int64_t first = 0, largest = x[row].max().item<int64_t>();
      while (x[row][first].item<int64_t>() != largest) ++first;
      EXPECT_EQ(results[2][row].item<int64_t>(), first) << "the first of equal ones";
    }
  }
}
TEST(CommonTemplate, argmax_argmin3) {
  check([](Tensor x) { return std::tuple(argmax(x, 0), argmin(x, 0), argmax(x, -1), argmin(x, -1)); },
        {randint(0, 5, {10, 10})});
}
TEST(CommonTemplate, argmax_min_int32) {
  Tensor result = check([](Tensor a, Tensor b) { return min(b, a.argmax(3)); },
                        {randint(3, {3, 4, 2, 1}, kInt32), randint(2, {2, 2, 1, 4, 1}, kInt32)})[0];
  EXPECT_EQ(result.dtype(), kInt64);
  EXPECT_EQ(result.dim(), 5);
}
TEST(CommonTemplate, argmax_to_float) {
  check([] { return zeros({2, 2}).argmax(0).to(kFloat32).mean(); }, {});
}
TEST(CommonTemplate, dense_mask_index) {
  check([](Tensor x, Tensor y) { return (x * y.select(0, 2)).sum(); }, {randn({102400}), randn({3})},
        {.rtol = 1.3e-5, .atol = 1e-4});
}
TEST(CommonTemplate, cauchy) {
  Tensor x = rand({32}), y = -rand({32}) - 0.1;
  check([](Tensor a, Tensor b) { return (1 / (a.unsqueeze(-1) - b)).sum(); }, {x, y},
        {.rtol = 5e-5, .atol = 5e-4, .kernels = 1});
}
TEST(CommonTemplate, tmp_not_defined_issue1) {
  check(
      [](const Tensors& in) {
        Tensor add = in[0], div = in[1], recip = in[2], w = in[3], b = in[4];
        Tensor centred = (add - div) * recip, scaled = centred * w + b;
        Tensor first = var(add, Ints{2}, Scalar(0)), second = var(scaled, Ints{2}, Scalar(0));
        return std::tuple(first, second, (scaled * add).sum(Ints{2}), first.reshape({1, 512, 1}) + 1e-5);
      },
      {randn({1, 512, 1024}), randn({1, 512, 1}), rand({1, 512, 1}) + 0.5, randn({1024}), randn({1024})},
      {.rtol = 2e-5, .atol = 1e-4, .backward = false});
}
TEST(CommonTemplate, tmp_not_defined_issue2) {
  check([](Tensor same, Tensor a, Tensor g, Tensor s) { return std::tuple(same, ((g / s) * a).sum()); },
        {randn({3}), randn({1, 88, 40, 40}), randn({1, 88, 40, 40}), rand({}) + 1}, {.rtol = 1e-5, .atol = 1e-3});
}
TEST(CommonTemplate, zero_dim_reductions) {
  for (bool keepdim : {true, false}) {
    Tensor x = zeros({2, 0}, kFloat16);
    auto refuses = [&](const char* op, auto function) {
      for (Dynamic dynamic : {Dynamic::Off, Dynamic::On})
        EXPECT_THAT(error_of<IndexError>([&] { compile(function, {.dynamic = dynamic})(x); }),
                    ContainsRegex("expected a dimension of at least one element, got float16.*, 0. at dimension 1"))
            << op;
    };
    refuses("argmin", [=](Tensor a) { return a.argmin(1, keepdim); });
    refuses("argmax", [=](Tensor a) { return a.argmax(1, keepdim); });
    refuses("max", [=](Tensor a) { return std::get<0>(a.max(1, keepdim)); });
    refuses("min", [=](Tensor a) { return std::get<0>(a.min(1, keepdim)); });
    check(
        [=](Tensor a) {
          return std::tuple(a.sum(1, keepdim), a.prod(1, keepdim), a.any(1, keepdim), a.all(1, keepdim));
        },
        {x});
  }
}

}  // namespace
}  // namespace tenon::operators
