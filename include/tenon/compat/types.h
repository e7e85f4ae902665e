// libtorch's names of element types, numbers, devices and options.
#pragma once

#include <tenon/compat/array_ref.h>
#include <tenon/core/tensor.h>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <ostream>

namespace c10 {

template <typename T>
using optional = std::optional<T>;
using std::in_place;
using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using string_view = std::string_view;

using tenon::Layout;
using tenon::MemoryFormat;
using tenon::SymBool;
using tenon::SymFloat;
using tenon::SymInt;
using tenon::SymInts;
using SymIntArrayRef = ArrayRef<SymInt>;
constexpr Layout kStrided = Layout::Strided;

// An element type. A class, so that the names are libtorch's and the values Tenon's.
struct ScalarType {
  tenon::Dtype dtype = tenon::Dtype::Float32;
  constexpr ScalarType() = default;
  constexpr ScalarType(tenon::Dtype value) : dtype(value) {}
  constexpr operator tenon::Dtype() const { return dtype; }
  // What libtorch's TypeMeta has.
  ScalarType toScalarType() const { return *this; }
  int64_t itemsize() const { return tenon::size_of(dtype); }
  std::string_view name() const { return tenon::name(dtype); }
  // libtorch's number of it, which files and messages carry.
  template <std::integral T>
  constexpr explicit operator T() const {
    constexpr int8_t kNumbers[] = {11, 0, 1, 2, 3, 4, 5, 15, 6, 7};
    return static_cast<T>(kNumbers[static_cast<int>(dtype)]);
  }
  static const ScalarType Bool, Byte, Char, Short, Int, Long, Half, BFloat16, Float, Double;
};
inline constexpr ScalarType ScalarType::Bool = tenon::Dtype::Bool, ScalarType::Byte = tenon::Dtype::UInt8,
                            ScalarType::Char = tenon::Dtype::Int8, ScalarType::Short = tenon::Dtype::Int16,
                            ScalarType::Int = tenon::Dtype::Int32, ScalarType::Long = tenon::Dtype::Int64,
                            ScalarType::Half = tenon::Dtype::Float16, ScalarType::BFloat16 = tenon::Dtype::BFloat16,
                            ScalarType::Float = tenon::Dtype::Float32, ScalarType::Double = tenon::Dtype::Float64;
constexpr bool operator==(ScalarType a, ScalarType b) { return a.dtype == b.dtype; }
constexpr bool operator==(ScalarType a, tenon::Dtype b) { return a.dtype == b; }

constexpr ScalarType kBool = ScalarType::Bool, kByte = ScalarType::Byte, kUInt8 = ScalarType::Byte,
                     kChar = ScalarType::Char, kInt8 = ScalarType::Char, kShort = ScalarType::Short,
                     kInt16 = ScalarType::Short, kInt = ScalarType::Int, kInt32 = ScalarType::Int,
                     kLong = ScalarType::Long, kInt64 = ScalarType::Long, kHalf = ScalarType::Half,
                     kFloat16 = ScalarType::Half, kBFloat16 = ScalarType::BFloat16, kFloat = ScalarType::Float,
                     kFloat32 = ScalarType::Float, kDouble = ScalarType::Double, kFloat64 = ScalarType::Double;

inline const char* toString(ScalarType type) {
  constexpr const char* kNames[] = {"Bool", "Byte", "Char",     "Short", "Int",
                                    "Long", "Half", "BFloat16", "Float", "Double"};
  return kNames[static_cast<int>(type.dtype)];
}
inline std::ostream& operator<<(std::ostream& out, ScalarType type) { return out << toString(type); }
inline int64_t elementSize(ScalarType type) { return tenon::size_of(type); }
inline bool isFloatingType(ScalarType type) { return tenon::is_floating(type); }
inline bool isIntegralType(ScalarType type, bool with_bool = false) {
  return tenon::is_integral(type) || (with_bool && type == ScalarType::Bool);
}
inline bool isReducedFloatingType(ScalarType type) { return tenon::is_half(type); }
inline bool isSignedType(ScalarType type) { return tenon::traits(type).is_signed; }
constexpr bool isComplexType(ScalarType) { return false; }
constexpr bool isQIntType(ScalarType) { return false; }
inline ScalarType promoteTypes(ScalarType a, ScalarType b) { return tenon::promote(a, b); }
inline bool canCast(ScalarType from, ScalarType to) {
  if (isFloatingType(from) && !isFloatingType(to)) return false;
  return from == ScalarType::Bool || to != ScalarType::Bool;
}
// What an extension's `x.dtype()` is in libtorch.
inline ScalarType typeMetaToScalarType(ScalarType type) { return type; }
inline ScalarType scalarTypeToTypeMeta(ScalarType type) { return type; }
inline ScalarType get_default_dtype() { return ScalarType::Float; }

// 16-bit numbers that compute: through float, rounded at every step that is stored.
struct Half : tenon::Half {
  struct from_bits_t {};
  static constexpr from_bits_t from_bits() { return {}; }
  Half() = default;
  constexpr Half(uint16_t pattern, from_bits_t) : tenon::Half{pattern} {}
  Half(tenon::Half value) : tenon::Half(value) {}
  Half(float value) : tenon::Half(tenon::to_half(value)) {}
  template <typename T>
    requires std::is_arithmetic_v<T>
  Half(T value) : Half(static_cast<float>(value)) {}
  operator float() const { return tenon::to_float(static_cast<tenon::Half>(*this)); }
  Half& operator+=(float other) { return *this = Half(float(*this) + other); }
  Half& operator-=(float other) { return *this = Half(float(*this) - other); }
  Half& operator*=(float other) { return *this = Half(float(*this) * other); }
  Half& operator/=(float other) { return *this = Half(float(*this) / other); }
};
struct BFloat16 : tenon::BFloat16 {
  struct from_bits_t {};
  static constexpr from_bits_t from_bits() { return {}; }
  BFloat16() = default;
  constexpr BFloat16(uint16_t pattern, from_bits_t) : tenon::BFloat16{pattern} {}
  BFloat16(tenon::BFloat16 value) : tenon::BFloat16(value) {}
  BFloat16(float value) : tenon::BFloat16(tenon::to_bfloat16(value)) {}
  template <typename T>
    requires std::is_arithmetic_v<T>
  BFloat16(T value) : BFloat16(static_cast<float>(value)) {}
  operator float() const { return tenon::to_float(static_cast<tenon::BFloat16>(*this)); }
  BFloat16& operator+=(float other) { return *this = BFloat16(float(*this) + other); }
  BFloat16& operator-=(float other) { return *this = BFloat16(float(*this) - other); }
  BFloat16& operator*=(float other) { return *this = BFloat16(float(*this) * other); }
  BFloat16& operator/=(float other) { return *this = BFloat16(float(*this) / other); }
};

// The element type of a C++ type, and back.
template <typename T>
struct CppTypeToScalarType;
template <tenon::Dtype kDtype>
struct CppType;
#define TENON_COMPAT_TYPE_(cpp, name)                     \
  template <>                                             \
  struct CppTypeToScalarType<cpp> {                       \
    static constexpr ScalarType value = ScalarType::name; \
  };                                                      \
  template <>                                             \
  struct CppType<tenon::Dtype(ScalarType::name)> {        \
    using type = cpp;                                     \
  };
TENON_COMPAT_TYPE_(bool, Bool)
TENON_COMPAT_TYPE_(uint8_t, Byte)
TENON_COMPAT_TYPE_(int8_t, Char)
TENON_COMPAT_TYPE_(int16_t, Short)
TENON_COMPAT_TYPE_(int32_t, Int)
TENON_COMPAT_TYPE_(int64_t, Long)
TENON_COMPAT_TYPE_(Half, Half)
TENON_COMPAT_TYPE_(BFloat16, BFloat16)
TENON_COMPAT_TYPE_(float, Float)
TENON_COMPAT_TYPE_(double, Double)
#undef TENON_COMPAT_TYPE_

// A number of a kind known at run time.
class Scalar : public tenon::Scalar {
 public:
  using tenon::Scalar::Scalar;
  Scalar() = default;
  Scalar(const tenon::Scalar& number) : tenon::Scalar(number) {}
  Scalar(Half number) : tenon::Scalar(static_cast<double>(float(number))) {}
  Scalar(BFloat16 number) : tenon::Scalar(static_cast<double>(float(number))) {}
  template <typename T>
  T to() const {
    if constexpr (std::is_same_v<T, bool>)
      return to_bool();
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(to_int());
    else
      return static_cast<T>(to_double());
  }
  double toDouble() const { return to_double(); }
  float toFloat() const { return static_cast<float>(to_double()); }
  int64_t toLong() const { return to_int(); }
  int toInt() const { return static_cast<int>(to_int()); }
  bool toBool() const { return to_bool(); }
  bool isFloatingPoint() const { return is_real(); }
  bool isBoolean() const { return kind() == Kind::Bool; }
  bool isIntegral(bool with_bool) const { return kind() == Kind::Int || (with_bool && isBoolean()); }
  bool isComplex() const { return false; }
  bool isSymbolic() const { return false; }
  template <typename T>
  bool equal(T number) const {
    return isFloatingPoint() || std::is_floating_point_v<T> ? toDouble() == static_cast<double>(number)
                                                            : toLong() == static_cast<int64_t>(number);
  }
  Scalar operator-() const { return isFloatingPoint() ? Scalar(-toDouble()) : Scalar(-toLong()); }
  ScalarType type() const {
    return isFloatingPoint() ? ScalarType::Double : isBoolean() ? ScalarType::Bool : ScalarType::Long;
  }
};

using DeviceType = tenon::DeviceType;
using DeviceIndex = int8_t;
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA, kMeta = DeviceType::Meta;

class Device {
 public:
  Device(DeviceType type, DeviceIndex index = 0) : device_(type, index) {}
  Device(tenon::Device device) : device_(device) {}
  Device(const std::string& text) : device_(tenon::parse_device(text)) {}
  Device(const char* text) : device_(tenon::parse_device(text)) {}
  operator tenon::Device() const { return device_; }
  DeviceType type() const { return device_.type; }
  DeviceIndex index() const { return device_.index; }
  bool has_index() const { return device_.type == DeviceType::CUDA; }
  bool is_cpu() const { return device_.type == DeviceType::CPU; }
  bool is_cuda() const { return device_.type == DeviceType::CUDA; }
  bool is_meta() const { return device_.type == DeviceType::Meta; }
  std::string str() const { return device_.str(); }
  bool operator==(const Device& other) const { return device_ == other.device_; }
  bool operator==(DeviceType type) const { return device_.type == type; }

 private:
  tenon::Device device_;
};
inline std::ostream& operator<<(std::ostream& out, const Device& device) { return out << device.str(); }

// What a tensor is to be made of, built step by step: dtype(kFloat).device(kCPU).
class TensorOptions : public tenon::TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(const tenon::TensorOptions& options) : tenon::TensorOptions(options) {}
  TensorOptions(ScalarType type) : tenon::TensorOptions(tenon::Dtype(type)) {}
  TensorOptions(tenon::Dtype type) : tenon::TensorOptions(type) {}
  TensorOptions(DeviceType type) : tenon::TensorOptions(tenon::Device(type)) {}
  TensorOptions(const Device& place) : tenon::TensorOptions(tenon::Device(place)) {}
  TensorOptions(Layout) {}

  TensorOptions dtype(std::optional<ScalarType> type) const {
    return with([&](TensorOptions& made) {
      made.tenon::TensorOptions::dtype = type ? std::optional<tenon::Dtype>(*type) : std::nullopt;
    });
  }
  template <typename T>
  TensorOptions dtype() const {
    return dtype(CppTypeToScalarType<T>::value);
  }
  TensorOptions device(const std::optional<Device>& place) const {
    return with([&](TensorOptions& made) {
      made.tenon::TensorOptions::device = place ? std::optional<tenon::Device>(*place) : std::nullopt;
    });
  }
  TensorOptions device(DeviceType type, DeviceIndex index = 0) const { return device(Device(type, index)); }
  TensorOptions layout(std::optional<Layout>) const { return *this; }
  TensorOptions requires_grad(bool wanted) const {
    return with([&](TensorOptions& made) { made.requires_grad_ = wanted; });
  }
  TensorOptions pinned_memory(std::optional<bool>) const { return *this; }
  TensorOptions memory_format(MemoryFormat) const { return *this; }

  ScalarType dtype() const { return tenon::TensorOptions::dtype.value_or(tenon::Dtype::Float32); }
  Device device() const { return tenon::TensorOptions::device.value_or(tenon::Device()); }
  Layout layout() const { return Layout::Strided; }
  bool requires_grad() const { return requires_grad_; }
  bool pinned_memory() const { return false; }
  bool has_dtype() const { return tenon::TensorOptions::dtype.has_value(); }
  bool has_device() const { return tenon::TensorOptions::device.has_value(); }

 private:
  template <typename F>
  TensorOptions with(F change) const {
    TensorOptions made = *this;
    change(made);
    return made;
  }
  bool requires_grad_ = false;
};
inline std::ostream& operator<<(std::ostream& out, const TensorOptions& options) {
  return out << "TensorOptions(dtype=" << options.dtype() << ", device=" << options.device()
             << ", requires_grad=" << (options.requires_grad() ? "true" : "false") << ")";
}
inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
template <typename T>
TensorOptions dtype() {
  return TensorOptions(CppTypeToScalarType<T>::value);
}
inline TensorOptions device(const Device& place) { return TensorOptions(place); }
inline TensorOptions layout(Layout) { return {}; }
inline TensorOptions requires_grad(bool wanted = true) { return TensorOptions().requires_grad(wanted); }

template <typename T, size_t N = 6>
using SmallVector = tenon::SmallVector<T, N>;
using DimVector = tenon::SmallVector<int64_t, 5>;
template <typename List>
int64_t multiply_integers(const List& list) {
  int64_t product = 1;
  for (int64_t each : list) product *= each;
  return product;
}
// -1 is the last of `dim_post_expr` dimensions. A tensor of none counts as one of one.
inline int64_t maybe_wrap_dim(int64_t dim, int64_t dim_post_expr, bool wrap_scalar = true) {
  int64_t dims = dim_post_expr == 0 && wrap_scalar ? 1 : dim_post_expr;
  TENON_CHECK_INDEX(dim >= -dims && dim < dims,
                    "Dimension out of range (expected to be in range of [{}, {}], but got {})", -dims, dims - 1, dim);
  return dim < 0 ? dim + dims : dim;
}

// What `x.type()` gives, which older sources ask: CHECK_CUDA(x.type().is_cuda()).
class DeprecatedTypeProperties {
 public:
  DeprecatedTypeProperties(ScalarType type, Device place) : type_(type), place_(place) {}
  ScalarType scalarType() const { return type_; }
  bool is_cuda() const { return place_.is_cuda(); }
  bool is_sparse() const { return false; }
  DeviceType device_type() const { return place_.type(); }
  TensorOptions options() const { return TensorOptions(type_).device(place_); }
  std::string toString() const { return std::string(is_cuda() ? "CUDA" : "CPU") + c10::toString(type_) + "Type"; }
  operator ScalarType() const { return type_; }
  bool operator==(const DeprecatedTypeProperties& other) const {
    return type_ == other.type_ && place_ == other.place_;
  }

 private:
  ScalarType type_;
  Device place_;
};
inline std::ostream& operator<<(std::ostream& out, const DeprecatedTypeProperties& type) {
  return out << type.toString();
}

// A value that is somebody else's, or one's own.
template <typename T>
class MaybeOwned {
 public:
  MaybeOwned() = default;
  static MaybeOwned borrowed(const T& value) { return MaybeOwned(value); }
  static MaybeOwned owned(T&& value) { return MaybeOwned(std::move(value)); }
  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }

 private:
  explicit MaybeOwned(T value) : value_(std::move(value)) {}
  T value_;  // tensors are handles: a copy is as good as a reference
};

}  // namespace c10

namespace at {

// The type in which sums of elements are kept, and the one in which elements are computed with.
template <typename T, bool kGpu>
struct AccumulateType {
  using type =
      std::conditional_t<std::is_same_v<T, bool>, bool, std::conditional_t<std::is_integral_v<T>, int64_t, double>>;
};
template <typename T, bool kGpu>
using acc_type = typename AccumulateType<T, kGpu>::type;
template <typename T>
using opmath_type = std::conditional_t<std::is_same_v<T, c10::Half> || std::is_same_v<T, c10::BFloat16>, float, T>;
inline c10::ScalarType toOpMathType(c10::ScalarType type) { return tenon::compute_dtype(type); }

}  // namespace at

template <>
struct std::hash<c10::ScalarType> {
  size_t operator()(c10::ScalarType type) const { return static_cast<size_t>(type.dtype); }
};
#define TENON_COMPAT_LIMITS_(type, mantissa, digits_10, max_digits_10, lowest_exponent, largest_exponent, lowest_bits, \
                             min_bits, max_bits, epsilon_bits, infinity_bits, nan_bits, denormal_bits)                 \
  template <>                                                                                                          \
  class std::numeric_limits<c10::type> {                                                                               \
   public:                                                                                                             \
    static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false;               \
    static constexpr bool has_infinity = true, has_quiet_NaN = true, has_signaling_NaN = true;                         \
    static constexpr bool is_iec559 = mantissa == 11, is_bounded = true, is_modulo = false, traps = false;             \
    static constexpr int digits = mantissa, digits10 = digits_10, max_digits10 = max_digits_10, radix = 2;             \
    static constexpr int min_exponent = lowest_exponent, max_exponent = largest_exponent;                              \
    static constexpr c10::type of(uint16_t pattern) { return c10::type(pattern, c10::type::from_bits()); }             \
    static constexpr c10::type min() { return of(min_bits); }                                                          \
    static constexpr c10::type lowest() { return of(lowest_bits); }                                                    \
    static constexpr c10::type max() { return of(max_bits); }                                                          \
    static constexpr c10::type epsilon() { return of(epsilon_bits); }                                                  \
    static constexpr c10::type infinity() { return of(infinity_bits); }                                                \
    static constexpr c10::type quiet_NaN() { return of(nan_bits); }                                                    \
    static constexpr c10::type denorm_min() { return of(denormal_bits); }                                              \
  };
TENON_COMPAT_LIMITS_(Half, 11, 3, 5, -13, 16, 0xFBFF, 0x0400, 0x7BFF, 0x1400, 0x7C00, 0x7E00, 0x0001)
TENON_COMPAT_LIMITS_(BFloat16, 8, 2, 4, -125, 128, 0xFF7F, 0x0080, 0x7F7F, 0x3C00, 0x7F80, 0x7FC0, 0x0001)
#undef TENON_COMPAT_LIMITS_
