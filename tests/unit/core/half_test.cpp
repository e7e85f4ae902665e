#include <tenon/core/half.h>

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace tenon {
namespace {

// The value of a 16-bit pattern by the definition of the format, in double.
double value_by_definition(uint16_t bits, int mantissa_bits) {
  const int exponent_bits = 15 - mantissa_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << mantissa_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + fraction, exponent - bias - mantissa_bits);
}

// Rounding by search: the nearest of the format's finite values, the even pattern of two equally near ones; beyond the
// midpoint between the largest and the value that would follow it, infinity.
uint16_t round_by_search(double value, int mantissa_bits) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(value);
  const int infinity = ((1 << (15 - mantissa_bits)) - 1) << mantissa_bits;
  int low = 0, high = infinity;  // value_by_definition(low) <= magnitude
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (value_by_definition(static_cast<uint16_t>(middle), mantissa_bits) <= magnitude ? low : high) = middle;
  }
  const double below = value_by_definition(static_cast<uint16_t>(low), mantissa_bits);
  const double above = high == infinity ? 2 * below - value_by_definition(static_cast<uint16_t>(low - 1), mantissa_bits)
                                        : value_by_definition(static_cast<uint16_t>(high), mantissa_bits);
  const double to_below = magnitude - below, to_above = above - magnitude;
  const bool up = to_above < to_below || (to_above == to_below && (low & 1));
  return static_cast<uint16_t>(sign | (std::isinf(value) || up ? high : low));
}

template <typename Narrow>
struct Format;
template <>
struct Format<Half> {
  static constexpr int kMantissa = 10;
  static Half round(double value) { return to_half(value); }
  static Half round(float value) { return to_half(value); }
};
template <>
struct Format<BFloat16> {
  static constexpr int kMantissa = 7;
  static BFloat16 round(double value) { return to_bfloat16(value); }
  static BFloat16 round(float value) { return to_bfloat16(value); }
};

template <typename T>
class HalfFormats : public ::testing::Test {};
using Formats = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(HalfFormats, Formats);

TYPED_TEST(HalfFormats, EveryPatternWidensToItsValueAndBack) {
  using F = Format<TypeParam>;
  for (int pattern = 0; pattern < 65536; ++pattern) {
    const uint16_t bits = static_cast<uint16_t>(pattern);
    const float wide = to_float(TypeParam{bits});
    const double expected = value_by_definition(bits, F::kMantissa);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(wide)) << pattern;
      const uint16_t quiet = bits | 1 << (F::kMantissa - 1);
      ASSERT_EQ(F::round(wide).bits, quiet) << pattern;
      ASSERT_EQ(F::round(static_cast<double>(wide)).bits, quiet) << pattern;
      continue;
    }
    ASSERT_EQ(static_cast<double>(wide), expected) << pattern;
    ASSERT_EQ(std::signbit(wide), (bits & 0x8000) != 0) << pattern;
    ASSERT_EQ(F::round(wide).bits, bits) << pattern;
    ASSERT_EQ(F::round(static_cast<double>(wide)).bits, bits) << pattern;
  }
}

TYPED_TEST(HalfFormats, BetweenNeighboursRoundsToNearestEven) {
  using F = Format<TypeParam>;
  const int infinity = ((1 << (15 - F::kMantissa)) - 1) << F::kMantissa;
  for (int pattern = 0; pattern < infinity; ++pattern) {
    const uint16_t bits = static_cast<uint16_t>(pattern);
    const double below = value_by_definition(bits, F::kMantissa);
    const double above = pattern + 1 == infinity
                             ? 2 * below - value_by_definition(static_cast<uint16_t>(bits - 1), F::kMantissa)
                             : value_by_definition(static_cast<uint16_t>(bits + 1), F::kMantissa);
    const double middle = (below + above) / 2;  // exact: one more bit
    const double candidates[] = {middle, std::nextafter(middle, 0.0), std::nextafter(middle, HUGE_VAL),
                                 below + (above - below) * 0.3, below + (above - below) * 0.8};
    for (double candidate : candidates) {
      ASSERT_EQ(F::round(candidate).bits, round_by_search(candidate, F::kMantissa)) << candidate;
      ASSERT_EQ(F::round(-candidate).bits, round_by_search(-candidate, F::kMantissa)) << -candidate;
      const float narrow = static_cast<float>(candidate);
      ASSERT_EQ(F::round(narrow).bits, round_by_search(narrow, F::kMantissa)) << narrow;
    }
  }
}

TYPED_TEST(HalfFormats, RandomNumbersOfAllMagnitudes) {
  using F = Format<TypeParam>;
  std::mt19937_64 engine(7);
  for (int i = 0; i < 100000; ++i) {
    const double wide = std::bit_cast<double>(engine());
    if (!std::isnan(wide)) {
      ASSERT_EQ(F::round(wide).bits, round_by_search(wide, F::kMantissa)) << wide;
    }
    const float narrow = std::bit_cast<float>(static_cast<uint32_t>(engine()));
    if (!std::isnan(narrow)) {
      ASSERT_EQ(F::round(narrow).bits, round_by_search(narrow, F::kMantissa)) << narrow;
    }
  }
}

TEST(Half, FromDoubleRoundsOnce) {
  // Just above the tie between 1 and its successor; through float it would become the tie, and round down.
  const double value = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(to_half(value).bits, 0x3C01);
  EXPECT_EQ(to_half(static_cast<float>(value)).bits, 0x3C00);
  const double other = 1 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(to_bfloat16(other).bits, 0x3F81);
}

TEST(Half, WorksAtCompileTime) {
  static_assert(to_half(1.0f).bits == 0x3C00);
  static_assert(to_float(Half{0x0001}) == 0x1p-24f);
  static_assert(to_bfloat16(1.0f).bits == 0x3F80);
  static_assert(to_half(65520.0f).bits == 0x7C00);
  static_assert(to_half(65519.0f).bits == 0x7BFF);
}

#ifdef __x86_64__
__attribute__((target("f16c"))) uint16_t hardware_half(float value) {
  return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
__attribute__((target("f16c"))) float hardware_float(uint16_t bits) { return _cvtsh_ss(bits); }

TEST(Half, AgreesWithTheInstructions) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "no F16C";
  for (int pattern = 0; pattern < 65536; ++pattern) {
    const uint16_t bits = static_cast<uint16_t>(pattern);
    ASSERT_EQ(std::bit_cast<uint32_t>(to_float(Half{bits})), std::bit_cast<uint32_t>(hardware_float(bits))) << pattern;
  }
  // A stride that is coprime to 2^32 visits all exponents and many fractions.
  for (uint32_t i = 0, bits = 0; i < 2000000; ++i, bits += 0x9E3779B1u) {
    const float value = std::bit_cast<float>(bits);
    ASSERT_EQ(to_half(value).bits, hardware_half(value)) << std::hex << bits;
  }
}
#endif

}  // namespace
}  // namespace tenon
