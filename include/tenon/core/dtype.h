// Element types and how they combine.
//
//   Dtype wide = promote(kInt64, kFloat16);                       // float16
//   int64_t bytes = size_of(wide);                                // 2
//   bool yes = is_floating(wide) && is_half(wide) && is_integral(kInt8) && traits(kInt8).is_signed;
//   bool stored = is_float8(kFloat8E5M2) && is_narrow(kFloat8E4M3FN) && compute_dtype(kFloat8E5M2) == kFloat32;
//   Dtype inner = compute_dtype(wide);                            // float32
//   std::optional<Dtype> found = dtype_from_name("float64");
//   std::string_view text = name(*found);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tenon {

enum class Dtype : uint8_t {
  Bool,
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  // Of storage only: elements are moved and converted, nothing is computed with them.
  Float8E4M3FN,
  Float8E5M2
};
constexpr int kDtypeCount = 12;
constexpr int kComputedDtypeCount = 10;  // the first ones, which operators compute with

constexpr Dtype kBool = Dtype::Bool, kUInt8 = Dtype::UInt8, kInt8 = Dtype::Int8, kInt16 = Dtype::Int16,
                kInt32 = Dtype::Int32, kInt64 = Dtype::Int64, kFloat16 = Dtype::Float16, kBFloat16 = Dtype::BFloat16,
                kFloat32 = Dtype::Float32, kFloat64 = Dtype::Float64, kFloat8E4M3FN = Dtype::Float8E4M3FN,
                kFloat8E5M2 = Dtype::Float8E5M2;

struct DtypeTraits {
  std::string_view name;   // "float32"
  std::string_view brief;  // "f32", in IR
  uint8_t bytes;
  bool floating;
  bool is_signed;
};

constexpr DtypeTraits kDtypeTraits[kDtypeCount] = {
    {"bool", "b8", 1, false, false},
    {"uint8", "u8", 1, false, false},
    {"int8", "i8", 1, false, true},
    {"int16", "i16", 2, false, true},
    {"int32", "i32", 4, false, true},
    {"int64", "i64", 8, false, true},
    {"float16", "f16", 2, true, true},
    {"bfloat16", "bf16", 2, true, true},
    {"float32", "f32", 4, true, true},
    {"float64", "f64", 8, true, true},
    {"float8_e4m3fn", "f8e4m3fn", 1, true, true},
    {"float8_e5m2", "f8e5m2", 1, true, true},
};

constexpr const DtypeTraits& traits(Dtype dtype) { return kDtypeTraits[static_cast<int>(dtype)]; }
constexpr int64_t size_of(Dtype dtype) { return traits(dtype).bytes; }
constexpr std::string_view name(Dtype dtype) { return traits(dtype).name; }
constexpr bool is_floating(Dtype dtype) { return traits(dtype).floating; }
constexpr bool is_integral(Dtype dtype) { return !is_floating(dtype) && dtype != Dtype::Bool; }
// Halves are computed in float32 and rounded at operator boundaries.
constexpr bool is_half(Dtype dtype) { return dtype == Dtype::Float16 || dtype == Dtype::BFloat16; }
constexpr bool is_float8(Dtype dtype) { return dtype == Dtype::Float8E4M3FN || dtype == Dtype::Float8E5M2; }
// Floats that are stored in fewer bits than any arithmetic has: in a kernel they are float32 from load to store.
constexpr bool is_narrow(Dtype dtype) { return is_half(dtype) || is_float8(dtype); }
constexpr Dtype compute_dtype(Dtype dtype) { return is_narrow(dtype) ? Dtype::Float32 : dtype; }

// The dtype of that name ("float32"), nothing if there is none.
std::optional<Dtype> dtype_from_name(std::string_view name);

// The smallest dtype that both convert to, as PyTorch promotes two tensors of the same dimensionality class. A float of
// 8 bits is promoted with nothing but itself: an Error.
Dtype promote(Dtype a, Dtype b);

}  // namespace tenon
