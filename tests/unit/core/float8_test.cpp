#include <tenon/core/tensor_fwd.h>
#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include <cmath>

namespace tenon {
namespace {

// Written by PyTorch: tools/reference/peer_float8.py.
const Tensor& table(const std::string& name) {
  static const io::NamedTensors all = io::load_npz(std::string(TENON_SOURCE_DIR) + "/tests/data/float8.npz");
  for (const auto& [each, tensor] : all)
    if (each == name) return tensor;
  fail("no '{}' in float8.npz", name);
}

template <typename T>
struct Format;
template <>
struct Format<Float8E4M3FN> {
  static constexpr const char* kName = "e4m3fn";
  static Float8E4M3FN round(double value) { return to_float8_e4m3fn(value); }
};
template <>
struct Format<Float8E5M2> {
  static constexpr const char* kName = "e5m2";
  static Float8E5M2 round(double value) { return to_float8_e5m2(value); }
};

template <typename T>
class Float8 : public ::testing::Test {};
using Formats = ::testing::Types<Float8E4M3FN, Float8E5M2>;
TYPED_TEST_SUITE(Float8, Formats);

TYPED_TEST(Float8, HasPyTorchsValues) {
  const float* values = table(std::string(Format<TypeParam>::kName) + " values").template data<float>();
  for (int pattern = 0; pattern < 256; ++pattern) {
    const float value = to_float(TypeParam{static_cast<uint8_t>(pattern)});
    EXPECT_EQ(std::isnan(value), std::isnan(values[pattern])) << pattern;
    EXPECT_EQ(std::signbit(value), pattern >= 128);
    if (std::isnan(value)) continue;
    EXPECT_EQ(value, values[pattern]) << pattern;
    // There and back again.
    EXPECT_EQ(Format<TypeParam>::round(double{value}).bits, pattern);
  }
}

TYPED_TEST(Float8, RoundsAsPyTorchDoes) {
  const std::string name = std::string(Format<TypeParam>::kName) + " from float32";
  const Tensor &given = table(name + ", given"), &bits = table(name);
  for (int64_t at = 0; at < given.numel().plain(); ++at) {
    const float value = given.data<float>()[at];
    EXPECT_EQ(Format<TypeParam>::round(double{value}).bits, bits.data<uint8_t>()[at]) << value;
  }
  const uint8_t* from_halves = table(std::string(Format<TypeParam>::kName) + " from float16").template data<uint8_t>();
  for (int pattern = 0; pattern < 65536; ++pattern) {
    const float value = to_float(Half{static_cast<uint16_t>(pattern)});
    ASSERT_EQ(Format<TypeParam>::round(double{value}).bits, from_halves[pattern]) << value;
  }
}

// A double whose nearest float lies on a tie is rounded by itself, not by that float.
TYPED_TEST(Float8, RoundsDoublesOnce) {
  const double tie = 1.0 + std::ldexp(1, std::is_same_v<TypeParam, Float8E4M3FN> ? -4 : -3);
  const uint8_t one = Format<TypeParam>::round(1.0).bits;
  EXPECT_EQ(Format<TypeParam>::round(tie).bits, one);
  EXPECT_EQ(Format<TypeParam>::round(std::nextafter(tie, 2)).bits, one + 1);
  EXPECT_EQ(Format<TypeParam>::round(-std::nextafter(tie, 2)).bits, 0x80 | (one + 1));
  EXPECT_EQ(Format<TypeParam>::round(1e-300).bits, 0);
  EXPECT_EQ(Format<TypeParam>::round(-5e-324).bits, 0x80);
}

TEST(Float8Dtype, IsNarrowAndPromotedWithNothing) {
  for (Dtype dtype : {kFloat8E4M3FN, kFloat8E5M2}) {
    EXPECT_TRUE(is_float8(dtype) && is_narrow(dtype) && is_floating(dtype) && !is_half(dtype) && !is_integral(dtype));
    EXPECT_EQ(compute_dtype(dtype), kFloat32);
    EXPECT_EQ(size_of(dtype), 1);
    EXPECT_EQ(promote(dtype, dtype), dtype);
    EXPECT_EQ(dtype_from_name(name(dtype)), dtype);
  }
  try {
    promote(kFloat8E4M3FN, kFloat32);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "[promote] float8_e4m3fn and float32 have no dtype in common: convert the float of 8 "
                 "bits first, to(kFloat32)");
  }
}

}  // namespace
}  // namespace tenon
