// `SymInt` beside plain integers: what stays symbolic, and what pins.
#include <tenon/sym/sym_int.h>

#include <gtest/gtest.h>

#include "error_of.h"

namespace tenon {
namespace {

using sym::ShapeEnv;

struct SymIntTest : ::testing::Test {
  Ref<ShapeEnv> env = make_ref<ShapeEnv>();
  SymInt n = env->create_size(8, "x");
};

template <typename To>
constexpr bool kImplicit = std::is_convertible_v<SymInt, To>;

TEST_F(SymIntTest, it_becomes_an_int64_and_nothing_else_by_itself) {
  static_assert(kImplicit<int64_t>);
  static_assert(!kImplicit<int> && !kImplicit<uint64_t> && !kImplicit<size_t> && !kImplicit<bool> &&
                !kImplicit<double> && !kImplicit<float> && !kImplicit<char>);
  static_assert(!std::is_constructible_v<bool, SymInt> && !std::is_constructible_v<int, SymInt>);
  int64_t plain = n;
  EXPECT_EQ(plain, 8);
  EXPECT_EQ(testing::without_lines(env->str()), "s0 == 8  (from: a plain number taken)\n");
}

template <typename K>
void operators_stay_symbolic() {
  Ref<ShapeEnv> env = make_ref<ShapeEnv>();
  SymInt n = env->create_size(8, "x");
  const K k = 3;
  const SymInt results[] = {n + k, k + n, n - k, k - n, n * k, k * n, n / k, k / n, n % k, k % n};
  const int64_t expected[] = {11, 11, 5, -5, 24, 24, 2, 0, 2, 3};
  for (size_t at = 0; at < std::size(results); ++at) {
    EXPECT_TRUE(results[at].is_symbolic()) << at;
    EXPECT_EQ(results[at].hint(), expected[at]) << at;
  }
  const SymBool conditions[] = {n == k, k == n, n != k, k != n, n<k, k<n, n> k, k> n, n <= k, k <= n, n >= k, k >= n};
  const bool holds[] = {false, false, true, true, false, true, true, false, false, true, true, false};
  EXPECT_TRUE(env->guards().empty()) << env->str();
  for (size_t at = 0; at < std::size(conditions); ++at) EXPECT_EQ(bool(conditions[at]), holds[at]) << at;
  SymInt sum = n;
  sum += k;
  sum -= k;
  sum *= k;
  EXPECT_TRUE(sum.is_symbolic());
  EXPECT_EQ(sum.hint(), 24);
}

TEST_F(SymIntTest, operators_with_integers_stay_symbolic) {
  operators_stay_symbolic<int>();
  operators_stay_symbolic<unsigned>();
  operators_stay_symbolic<int64_t>();
  operators_stay_symbolic<long long>();
  operators_stay_symbolic<size_t>();
  operators_stay_symbolic<short>();
  EXPECT_TRUE((-n).is_symbolic() && (+n).is_symbolic());
  static_assert(std::is_same_v<decltype(n * 2.5), SymFloat> && std::is_same_v<decltype(2.5 - n), SymFloat>);
  static_assert(std::is_same_v<decltype(n < 2.5), SymBool>);
  EXPECT_TRUE((n * 2.5).is_symbolic());
  EXPECT_TRUE(env->guards().empty()) << env->str();
}

TEST_F(SymIntTest, a_plain_number_is_asked_of_a_symbol_once) {
  EXPECT_EQ(n.plain(), 8);
  EXPECT_EQ((n * 2).plain(), 16);
  int64_t again = n + 1;
  EXPECT_EQ(again, 9);
  EXPECT_EQ(env->guards().size(), 1u) << env->str();
}

TEST_F(SymIntTest, one_from_data_cannot_be_taken) {
  SymInt u = env->create_unbacked({0, 100});
  EXPECT_THROW(u.plain(), DataDependentError);
  EXPECT_THROW(int64_t{u}, DataDependentError);
  EXPECT_THROW((u + n).plain(), DataDependentError);
}

TEST_F(SymIntTest, division_by_zero_is_told) {
  EXPECT_EQ(testing::error_of([&] { n / 0; }), "[/] expected a divisor other than 0, got s0 / 0");
  EXPECT_EQ(testing::error_of([&] { SymInt(3) % 0; }), "[%] expected a divisor other than 0, got 3 % 0");
}

}  // namespace
}  // namespace tenon
