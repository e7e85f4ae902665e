// libtorch's names of element types, numbers, devices and options.
#pragma once

#include <tenon/compat/array_ref.h>
#include <tenon/core/tensor.h>

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

// 16-bit numbers that compute: through float, rounded at every step that is stored.
struct Half : tenon::Half {
  Half() = default;
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
  BFloat16() = default;
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
inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
template <typename T>
TensorOptions dtype() {
  return TensorOptions(CppTypeToScalarType<T>::value);
}
inline TensorOptions device(const Device& place) { return TensorOptions(place); }
inline TensorOptions layout(Layout) { return {}; }
inline TensorOptions requires_grad(bool wanted = true) { return TensorOptions().requires_grad(wanted); }

}  // namespace c10
