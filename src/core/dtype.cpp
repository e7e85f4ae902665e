#include <tenon/core/dtype.h>
#include <tenon/support/error.h>

namespace tenon {

std::optional<Dtype> dtype_from_name(std::string_view name) {
  for (int i = 0; i < kDtypeCount; ++i) {
    if (kDtypeTraits[i].name == name) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

namespace {

constexpr Dtype b8 = kBool, u8 = kUInt8, i8 = kInt8, i16 = kInt16, i32 = kInt32, i64 = kInt64, f16 = kFloat16,
                bf = kBFloat16, f32 = kFloat32, f64 = kFloat64;

// Symmetric. Neither half holds the other, so the two together give float32; neither 8-bit integer does either.
constexpr Dtype kPromotion[kComputedDtypeCount][kComputedDtypeCount] = {
    // b8   u8   i8   i16  i32  i64  f16  bf   f32  f64
    {b8, u8, i8, i16, i32, i64, f16, bf, f32, f64},      // b8
    {u8, u8, i16, i16, i32, i64, f16, bf, f32, f64},     // u8
    {i8, i16, i8, i16, i32, i64, f16, bf, f32, f64},     // i8
    {i16, i16, i16, i16, i32, i64, f16, bf, f32, f64},   // i16
    {i32, i32, i32, i32, i32, i64, f16, bf, f32, f64},   // i32
    {i64, i64, i64, i64, i64, i64, f16, bf, f32, f64},   // i64
    {f16, f16, f16, f16, f16, f16, f16, f32, f32, f64},  // f16
    {bf, bf, bf, bf, bf, bf, f32, bf, f32, f64},         // bf
    {f32, f32, f32, f32, f32, f32, f32, f32, f32, f64},  // f32
    {f64, f64, f64, f64, f64, f64, f64, f64, f64, f64},  // f64
};

}  // namespace

Dtype promote(Dtype a, Dtype b) {
  if (is_float8(a) || is_float8(b)) {
    TENON_CHECK(a == b, "[promote] {} and {} have no dtype in common: convert the float of 8 bits first, to(kFloat32)",
                name(a), name(b));
    return a;
  }
  return kPromotion[static_cast<int>(a)][static_cast<int>(b)];
}

}  // namespace tenon
