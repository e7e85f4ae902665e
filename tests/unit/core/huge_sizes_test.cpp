// Sizes that no machine has: products and sums of sizes, strides, offsets and bytes are checked wherever they are made,
// eager and compiled, plain and symbolic, and the error names the operator and the sizes.
#include "error_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/tenon.h>

#include <limits>

namespace tenon {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max(), kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kHuge = int64_t{1} << 62, k32 = int64_t{1} << 32, k31 = int64_t{1} << 31;

// Eager, and compiled as it stands.
template <typename F>
void both_raise(F function, const std::string& operator_name, const std::string& number) {
  EXPECT_THAT(error_of([&] { function(); }), AllOf(StartsWith("[" + operator_name + "]"), HasSubstr(number)));
  EXPECT_NE(error_of([&] { compile(function)(); }), "no error") << operator_name;
}

TEST(HugeSizes, factories) {
  both_raise([] { return zeros({kHuge}); }, "zeros", "4611686018427387904");
  both_raise([] { return zeros({k32, k32}); }, "zeros", "[4294967296, 4294967296]");
  both_raise([] { return ones({k32, k32, 0, k32, k32}); }, "ones", "4294967296");
  both_raise([] { return eye(int64_t{1} << 40); }, "eye", "1099511627776");
  both_raise([] { return empty_strided({kMax, 2}, {1, 1}); }, "empty_strided", "[9223372036854775807, 2]");
  both_raise([] { return empty_strided({3}, {kHuge}); }, "empty_strided", "[4611686018427387904]");
  both_raise([] { return arange(0.0, 1e30, 1e-3); }, "arange", "fits 64 bits");
  both_raise([] { return arange(Scalar(kMin), Scalar(kMax), 1); }, "arange", "9223372036854775807");
}

TEST(HugeSizes, a_size_of_zero_leaves_nothing) {
  EXPECT_EQ(zeros({0, kHuge}).numel().plain(), 0);
  EXPECT_EQ(ones({1}).expand({0, kHuge, 1}).numel().plain(), 0);
}

TEST(HugeSizes, views_and_copies) {
  Tensor x = ones({3}), row = ones({1, 1});
  both_raise([=] { return x.repeat({kHuge}); }, "repeat", "[4611686018427387904]");
  both_raise([=] { return row.expand({2, kHuge}).contiguous(); }, "expand", "[2, 4611686018427387904]");
  both_raise([=] { return x.as_strided({3}, {kMax}); }, "as_strided", "9223372036854775807");
  both_raise([=] { return x.narrow(0, 1, kMax); }, "narrow", "9223372036854775807");
  both_raise([=] { return constant_pad_nd(x, {kMax, 1}); }, "constant_pad_nd", "9223372036854775807");
  both_raise([=] { return x.reshape({kHuge, 4, -1}); }, "reshape", "4611686018427387904");
}

TEST(HugeSizes, steps_and_pieces_beyond_the_tensor) {
  Tensor x = arange(5, kFloat32);
  for (int64_t step : {kMax, kHuge, k31}) {
    EXPECT_EQ(x.slice(0, 1, std::nullopt, step).description(), "float32[1]") << step;
    EXPECT_EQ(x.slice(0, 1, std::nullopt, step)[0].item<float>(), 1.f) << step;
    EXPECT_EQ(x.split(step).size(), 1u);
    EXPECT_EQ(x.chunk(step).size(), 5u);
  }
  EXPECT_EQ(x.slice(0, kMin, kMax).description(), "float32[5]");
  EXPECT_EQ(ones({2, 3}).diagonal(kMin).description(), "float32[0]");
  EXPECT_EQ(ones({2, 3}).diagonal(kMax).description(), "float32[0]");
}

TEST(HugeSizes, windows) {
  Tensor x = ones({1, 1, 4, 4}), w = ones({1, 1, 2, 2});
  for (int64_t number : {kMax, kHuge}) {
    EXPECT_NE(error_of([&] { max_pool2d(x, {number, 2}); }), "no error") << number;
    EXPECT_NE(error_of([&] { max_pool2d(x, {2, 2}, {1, 1}, {number, 0}); }), "no error") << number;
    EXPECT_NE(error_of([&] { max_pool2d(x, {2, 2}, {1, 1}, {0, 0}, {number, 1}); }), "no error") << number;
    EXPECT_EQ(max_pool2d(x, {2, 2}, {number, number}).description(), "float32[1, 1, 1, 1]") << number;
    EXPECT_EQ(max_pool2d(x, {1, 1}, {1, 1}, {0, 0}, {number, 1}).description(), "float32[1, 1, 4, 4]") << number;
    EXPECT_NE(error_of([&] { conv2d(x, w, std::nullopt, {1, 1}, {number, 0}); }), "no error") << number;
    EXPECT_NE(error_of([&] { conv2d(x, w, std::nullopt, {1, 1}, {0, 0}, {number, 1}); }), "no error") << number;
    EXPECT_NE(error_of([&] { adaptive_avg_pool2d(x, {number, 1}); }), "no error") << number;
  }
  EXPECT_THAT(error_of<MemoryError>([&] { adaptive_avg_pool2d(x, {int64_t{1} << 40, 1}); }),
              HasSubstr("1099511627776"));
}

TEST(HugeSizes, a_random_number_of_the_whole_range) {
  Tensor x = randint(kMin, kMax, {64});
  int64_t negative = 0, large = 0;
  for (int64_t at = 0; at < 64; ++at) {
    int64_t value = x.data<int64_t>()[at];
    negative += value < 0;
    large += value > kHuge || value < -kHuge;
    for (int64_t before = 0; before < at; ++before) EXPECT_NE(value, x.data<int64_t>()[before]);
  }
  EXPECT_GT(negative, 8);
  EXPECT_LT(negative, 56);
  EXPECT_GT(large, 8);
  Tensor y = randint(1, kMax, {64});
  for (int64_t at = 0; at < 64; ++at) EXPECT_GE(y.data<int64_t>()[at], 1);
}

// Symbols: from a size, from a number, from data.
TEST(HugeSizes, of_symbols) {
  auto scaled =
      compile([](const Tensor& x) { return zeros({x.size(0) * (int64_t{1} << 61)}); }, {.dynamic = Dynamic::On});
  EXPECT_THAT(error_of<OverflowError>([&] { scaled(ones({8})); }), HasSubstr("2305843009213693952*s0"));
  auto square = compile([](const Tensor& x, const SymInt& n) { return x.sum() + ones({n, n}); });
  EXPECT_EQ(square(ones({3}), SymInt(2)).description(), "float32[2, 2]");
  EXPECT_EQ(square(ones({3}), SymInt(5)).description(), "float32[5, 5]");
  for (int64_t n : {k31, k32, kHuge, kMax}) EXPECT_NE(error_of([&] { square(ones({3}), SymInt(n)); }), "no error") << n;
  auto from_data = compile([](const Tensor& x) {
    SymInt n = x.item<int64_t>();
    check_is_size(n);
    return ones({n, n});
  });
  EXPECT_EQ(from_data(tensor(int64_t{3})).description(), "float32[3, 3]");
  for (int64_t n : {k31, k32, kHuge, kMax}) EXPECT_NE(error_of([&] { from_data(tensor(n)); }), "no error") << n;
}

TEST(HugeSizes, division_by_a_symbol) {
  auto divided = compile([](const Tensor& x, const SymInt& n) { return x * SymFloat(0 / n) + Scalar(kMin % n); });
  EXPECT_EQ(divided(ones({2}), SymInt(-1))[0].item<float>(), 0.f);
  EXPECT_EQ(divided(ones({2}), SymInt(3))[0].item<float>(), 1.f);
  EXPECT_THAT(error_of([&] { divided(ones({2}), SymInt(0)); }), HasSubstr("!= 0"));
  auto smallest = compile([](const Tensor& x, const SymInt& n) { return x + Scalar(kMin / n); });
  EXPECT_EQ(smallest(ones({2}), SymInt(2))[0].item<float>(), -4611686018427387904.f);
  EXPECT_THAT(error_of<OverflowError>([&] { smallest(ones({2}), SymInt(-1)); }), HasSubstr("9223372036854775808"));
}

// Whatever rule makes a view: it stays in its storage.
TEST(HugeSizes, a_view_stays_in_its_storage) {
  Tensor x = ones({4});
  EXPECT_THAT(error_of([&] { core::make_view(x, SymInts{2}, SymInts{4}, 0); }), HasSubstr("storage of 16 bytes"));
  EXPECT_THAT(error_of([&] { core::make_view(x, SymInts{2}, SymInts{-1}, 0); }), HasSubstr("storage of 16 bytes"));
  EXPECT_THAT(error_of([&] { core::make_view(x, SymInts{-1}, SymInts{1}, 0); }), HasSubstr("at least 0"));
  EXPECT_EQ(core::make_view(x, SymInts{2}, SymInts{3}, 0).description(), "float32[2]");
}

}  // namespace
}  // namespace tenon
