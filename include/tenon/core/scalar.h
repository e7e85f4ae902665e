// A number of a kind known only at run time: bool, integer or real, each plain or symbolic.
//
//   Scalar half = 0.5, three = 3;
//   bool kinds = half.is_real() && three.kind() == Scalar::Kind::Int && !three.is_symbolic();
//   double both = half.real() + three.to_double();
//   int64_t plain = int64_t(three.integer()) + half.to_int();     // 3
//   bool yes = three.to_bool() && three.dtype() == kInt64 && three.str() == "3";
//   SymFloat perhaps_symbolic = half.real_number() + three.sym_real();
//   SymBool not_zero = three.sym_bool();
#pragma once

#include <tenon/core/dtype.h>
#include <tenon/sym/sym_float.h>

#include <concepts>
#include <string>

namespace tenon {

class Scalar {
 public:
  enum class Kind : uint8_t { Bool, Int, Real };

  Scalar() = default;
  Scalar(bool value) : kind_(Kind::Bool), integer_(static_cast<int64_t>(value)) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Scalar(T value) : kind_(Kind::Int), integer_(static_cast<int64_t>(value)) {}
  template <std::floating_point T>
  Scalar(T value) : kind_(Kind::Real), real_(static_cast<double>(value)) {}
  Scalar(const SymInt& value) : kind_(Kind::Int), integer_(value) {}
  Scalar(const SymFloat& value) : kind_(Kind::Real), real_(value) {}
  Scalar(const SymBool& value) : kind_(Kind::Bool), integer_(tenon::to_int(value)) {}

  Kind kind() const { return kind_; }
  bool is_real() const { return kind_ == Kind::Real; }
  bool is_symbolic() const { return integer_.is_symbolic() || real_.is_symbolic(); }
  const SymInt& integer() const {  // of a Bool (0 or 1) or Int
    TENON_ASSERT(!is_real(), "{} is real", str());
    return integer_;
  }
  double real() const { return double(real_); }          // of a Real; a symbolic one is pinned
  const SymFloat& real_number() const { return real_; }  // of a Real
  // Of any kind.
  SymFloat sym_real() const { return is_real() ? real_ : SymFloat(integer_); }
  SymBool sym_bool() const { return is_real() ? real_ != 0.0 : integer_ != 0; }
  // The value in that type; a symbolic one is pinned.
  double to_double() const { return is_real() ? real() : static_cast<double>(int64_t(integer_)); }
  int64_t to_int() const { return is_real() ? static_cast<int64_t>(real()) : int64_t(integer_); }
  bool to_bool() const { return is_real() ? real() != 0 : int64_t(integer_) != 0; }
  explicit operator double() const { return to_double(); }
  explicit operator float() const { return static_cast<float>(to_double()); }
  explicit operator int64_t() const { return to_int(); }
  explicit operator bool() const { return to_bool(); }

  // The dtype that the number alone would have: bool, int64, or the default float32.
  Dtype dtype() const;
  std::string str() const;

 private:
  Kind kind_ = Kind::Int;
  SymInt integer_;
  SymFloat real_;
};

}  // namespace tenon
