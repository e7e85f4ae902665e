// Element types by dtype, and walking over strided elements.
#pragma once

#include <tenon/core/tensor_fwd.h>

namespace tenon::kernels {

// Calls `body.template operator()<T>()` with the element type of `dtype`, one that is computed with. (Floats of 8 bits
// are none: kernels of each operator for types that nobody computes with would only make the library larger.)
template <typename Body>
decltype(auto) with_element_type(Dtype dtype, Body&& body) {
  switch (dtype) {
    case Dtype::Bool: return body.template operator()<bool>();
    case Dtype::UInt8: return body.template operator()<uint8_t>();
    case Dtype::Int8: return body.template operator()<int8_t>();
    case Dtype::Int16: return body.template operator()<int16_t>();
    case Dtype::Int32: return body.template operator()<int32_t>();
    case Dtype::Int64: return body.template operator()<int64_t>();
    case Dtype::Float16: return body.template operator()<Half>();
    case Dtype::BFloat16: return body.template operator()<BFloat16>();
    case Dtype::Float32: return body.template operator()<float>();
    case Dtype::Float64: return body.template operator()<double>();
    case Dtype::Float8E4M3FN:
    case Dtype::Float8E5M2: break;
  }
  fail<NotImplementedError>("[kernels] expected a dtype that is computed with, got {}: convert first, to(kFloat32)",
                            name(dtype));
}

// What halves are computed in; every other type is itself.
inline float widen(Half value) { return to_float(value); }
inline float widen(BFloat16 value) { return to_float(value); }
template <typename T>
T widen(T value) {
  return value;
}

template <typename T, typename Wide>
T narrow(Wide value) {
  if constexpr (std::is_same_v<T, Half>)
    return to_half(value);
  else if constexpr (std::is_same_v<T, BFloat16>)
    return to_bfloat16(value);
  else
    return static_cast<T>(value);
}

// Where the element with row-major number `position` lies, in elements from the first one.
inline int64_t offset_of(int64_t position, std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  int64_t offset = 0;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    offset += position % sizes[dim] * strides[dim];
    position /= sizes[dim];
  }
  return offset;
}

}  // namespace tenon::kernels
