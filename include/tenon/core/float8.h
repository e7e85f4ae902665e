// Storage types for 8-bit floats and their conversions, in software.
//
// `Float8E4M3FN` has four bits of exponent, three of mantissa, no infinities, and one NaN of each sign: its largest
// number is 448, and what is more becomes that, infinity too. `Float8E5M2` is the upper byte of an IEEE binary16, with
// infinities; its largest number is 57344. They are storage only: nothing is computed with them, and operators that do
// more than move or convert elements refuse them. Conversions round to nearest even, once, from double as from float,
// and keep signs and subnormals; a NaN becomes the one that PyTorch gives, 0x7F with the sign.
#pragma once

#include <tenon/core/half.h>

#include <algorithm>

namespace tenon {

struct Float8E4M3FN {
  uint8_t bits = 0;
  bool operator==(const Float8E4M3FN&) const = default;  // of bits: NaN equals itself, the zeros differ
};

struct Float8E5M2 {
  uint8_t bits = 0;
  bool operator==(const Float8E5M2&) const = default;
};

namespace detail {

// The magnitude of a double that is no NaN in 8 bits without a sign, as if exponents had no end. `kMantissa` bits of
// mantissa; the smallest normal number is 2^kLeast. What is above all finite numbers comes as 0x80.
template <int kMantissa, int kLeast>
constexpr unsigned round_to_7_bits(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value) & ~(uint64_t{1} << 63);
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  if (exponent < kLeast - kMantissa - 1) return 0;  // below half of the smallest subnormal
  if (exponent > 16) return 0x80;
  const uint64_t significand = (bits & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
  const int shift = 52 - kMantissa + (exponent < kLeast ? kLeast - exponent : 0);
  uint64_t kept = significand >> shift;
  const uint64_t lost = significand & ((uint64_t{1} << shift) - 1), tie = uint64_t{1} << (shift - 1);
  if (lost > tie || (lost == tie && (kept & 1))) ++kept;
  // The implicit bit counts one up in the exponent, as a carry does.
  const uint64_t magnitude = exponent < kLeast ? kept : (static_cast<uint64_t>(exponent - kLeast) << kMantissa) + kept;
  return magnitude > 0x80 ? 0x80u : static_cast<unsigned>(magnitude);
}

constexpr uint8_t sign_of(double value) { return static_cast<uint8_t>(std::bit_cast<uint64_t>(value) >> 63 << 7); }

}  // namespace detail

constexpr Float8E4M3FN to_float8_e4m3fn(double value) {
  const unsigned magnitude = value == value ? std::min(detail::round_to_7_bits<3, -6>(value), 0x7Eu) : 0x7F;
  return {static_cast<uint8_t>(detail::sign_of(value) | magnitude)};
}
constexpr Float8E4M3FN to_float8_e4m3fn(float value) { return to_float8_e4m3fn(static_cast<double>(value)); }

constexpr Float8E5M2 to_float8_e5m2(double value) {
  const unsigned magnitude = value == value ? detail::round_to_7_bits<2, -14>(value) : 0x7F;
  const unsigned most = value == value && magnitude > 0x7B ? 0x7C : magnitude;
  return {static_cast<uint8_t>(detail::sign_of(value) | most)};
}
constexpr Float8E5M2 to_float8_e5m2(float value) { return to_float8_e5m2(static_cast<double>(value)); }

constexpr float to_float(Float8E4M3FN value) {
  const uint32_t sign = uint32_t{value.bits & 0x80u} << 24, magnitude = value.bits & 0x7Fu;
  if (magnitude == 0x7F) return std::bit_cast<float>(sign | 0x7FC00000);
  if (magnitude < 8) {  // subnormal: a multiple of 2^-9
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-9f));
  }
  return std::bit_cast<float>(sign | ((magnitude << 20) + (120u << 23)));
}

constexpr float to_float(Float8E5M2 value) { return to_float(Half{static_cast<uint16_t>(value.bits << 8)}); }

}  // namespace tenon
