// Storage types for 16-bit floats and their conversions, in software.
//
// `Half` is IEEE binary16, `BFloat16` the upper half of a float32. They are storage only: arithmetic is done in
// float32. Conversions round to nearest even, keep signs, infinities and subnormals, and make NaNs quiet with the upper
// bits of their payload, as the F16C instructions do. From double they round once, not through float.
#pragma once

#include <bit>
#include <cstdint>

namespace tenon {

namespace detail {

// A double as the bits of a 16-bit float with `kMantissa` mantissa bits and 15 - kMantissa exponent bits.
template <int kMantissa>
constexpr uint16_t round_to_16_bits(double value) {
  constexpr int kExponentMask = (1 << (15 - kMantissa)) - 1;
  constexpr int kBias = kExponentMask / 2;
  constexpr uint64_t kInfinity = uint64_t{kExponentMask} << kMantissa;
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint64_t sign = bits >> 63 << 15;
  const int exponent = static_cast<int>(bits >> 52 & 0x7FF);
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  if (exponent == 0x7FF) {
    const uint64_t quiet = fraction == 0 ? 0 : (uint64_t{1} << (kMantissa - 1)) | fraction >> (52 - kMantissa);
    return static_cast<uint16_t>(sign | kInfinity | quiet);
  }
  // Subnormal doubles are far below half of the smallest result.
  if (exponent == 0) return static_cast<uint16_t>(sign);

  const uint64_t significand = fraction | uint64_t{1} << 52;
  const int target = exponent - 1023 + kBias;  // biased exponent of the result; 0 or less: subnormal
  const int shift = 52 - kMantissa + (target > 0 ? 0 : 1 - target);
  if (shift > 53) return static_cast<uint16_t>(sign);  // below half of the smallest subnormal
  uint64_t kept = significand >> shift;
  const uint64_t lost = significand & ((uint64_t{1} << shift) - 1), tie = uint64_t{1} << (shift - 1);
  if (lost > tie || (lost == tie && (kept & 1))) ++kept;
  // `kept` holds the implicit bit when normal: adding it to the exponent below also carries a rounding overflow.
  const uint64_t magnitude = target > 0 ? (static_cast<uint64_t>(target - 1) << kMantissa) + kept : kept;
  return static_cast<uint16_t>(sign | (magnitude >= kInfinity ? kInfinity : magnitude));
}

}  // namespace detail

struct Half {
  uint16_t bits = 0;
  bool operator==(const Half&) const = default;  // of bits: NaN equals itself, the zeros differ
};

struct BFloat16 {
  uint16_t bits = 0;
  bool operator==(const BFloat16&) const = default;
};

constexpr float to_float(BFloat16 value) {
  const uint32_t bits = uint32_t{value.bits} << 16;
  const bool nan = (value.bits & 0x7FFF) > 0x7F80;
  return std::bit_cast<float>(nan ? bits | 0x00400000 : bits);
}

constexpr float to_float(Half value) {
  const uint32_t sign = uint32_t{value.bits & 0x8000u} << 16;
  const uint32_t exponent = value.bits >> 10 & 0x1F, fraction = value.bits & 0x3FF;
  if (exponent == 0x1F) {
    return std::bit_cast<float>(sign | 0x7F800000 | fraction << 13 | (fraction == 0 ? 0 : 0x00400000));
  }
  if (exponent == 0) {  // subnormal: a multiple of 2^-24, exact in float32
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

constexpr Half to_half(double value) { return {detail::round_to_16_bits<10>(value)}; }
constexpr Half to_half(float value) { return to_half(static_cast<double>(value)); }
constexpr BFloat16 to_bfloat16(double value) { return {detail::round_to_16_bits<7>(value)}; }
constexpr BFloat16 to_bfloat16(float value) { return to_bfloat16(static_cast<double>(value)); }

}  // namespace tenon
