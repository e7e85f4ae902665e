#include <tenon/core/dtype.h>

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Dtype, NamesAreFoundAgain) {
  for (int i = 0; i < kDtypeCount; ++i) {
    const Dtype dtype = static_cast<Dtype>(i);
    EXPECT_EQ(dtype_from_name(name(dtype)), dtype);
  }
  EXPECT_EQ(dtype_from_name("float32"), kFloat32);
  EXPECT_EQ(dtype_from_name("f32"), std::nullopt);
  EXPECT_EQ(dtype_from_name(""), std::nullopt);
}

// Stated by rules here, as a table there: floats win over integers over bool; of one kind the wider wins, and where
// neither holds the other, the next that holds both.
Dtype promoted_by_rules(Dtype a, Dtype b) {
  if (a == b) return a;
  const auto kind = [](Dtype d) { return d == kBool ? 0 : is_floating(d) ? 2 : 1; };
  if (kind(a) != kind(b)) return kind(a) > kind(b) ? a : b;
  if (is_half(a) && is_half(b)) return kFloat32;
  if (size_of(a) != size_of(b)) return size_of(a) > size_of(b) ? a : b;
  return kInt16;
}

TEST(Dtype, PromotionFollowsTheRules) {
  for (int i = 0; i < kComputedDtypeCount; ++i) {
    for (int j = 0; j < kComputedDtypeCount; ++j) {
      const Dtype a = static_cast<Dtype>(i), b = static_cast<Dtype>(j);
      EXPECT_EQ(promote(a, b), promoted_by_rules(a, b)) << name(a) << " and " << name(b);
    }
  }
}

TEST(Dtype, PromotionOfTheOddPairs) {
  EXPECT_EQ(promote(kUInt8, kInt8), kInt16);
  EXPECT_EQ(promote(kFloat16, kBFloat16), kFloat32);
  EXPECT_EQ(promote(kInt64, kFloat16), kFloat16);
  EXPECT_EQ(promote(kBool, kUInt8), kUInt8);
  EXPECT_EQ(promote(kUInt8, kInt64), kInt64);
}

}  // namespace
}  // namespace tenon
