#include "real_math.h"

#include <algorithm>
#include <bit>

namespace tenon::sym {

double apply_unary(Op op, double x) {
  switch (op) {
    case Op::RealAbs: return std::fabs(x);
    case Op::RealNeg: return -x;
    case Op::Sqrt: return std::sqrt(x);
    case Op::Sin: return std::sin(x);
    case Op::Cos: return std::cos(x);
    case Op::Tan: return std::tan(x);
    case Op::Sinh: return std::sinh(x);
    case Op::Cosh: return std::cosh(x);
    case Op::Tanh: return std::tanh(x);
    case Op::Asin: return std::asin(x);
    case Op::Acos: return std::acos(x);
    case Op::Atan: return std::atan(x);
    case Op::Exp: return std::exp(x);
    case Op::Log: return std::log(x);
    case Op::Exp2: return std::exp2(x);
    case Op::Log2: return std::log2(x);
    default: break;
  }
  TENON_ASSERT(false, "operation {} is no function of a real", static_cast<int>(op));
}

double apply_binary(Op op, double a, double b) {
  switch (op) {
    case Op::RealAdd: return a + b;
    case Op::RealSub: return a - b;
    case Op::RealMul: return a * b;
    case Op::RealDiv: return a / b;
    case Op::RealPow: return std::pow(a, b);
    case Op::RealMin: return std::min(a, b);
    case Op::RealMax: return std::max(a, b);
    default: break;
  }
  TENON_ASSERT(false, "operation {} is no function of two reals", static_cast<int>(op));
}

bool apply_comparison(Op op, double a, double b) {
  switch (op) {
    case Op::RealEq: return a == b;
    case Op::RealNe: return a != b;
    case Op::RealLt: return a < b;
    case Op::RealLe: return a <= b;
    case Op::Same: return std::bit_cast<int64_t>(a) == std::bit_cast<int64_t>(b) || (std::isnan(a) && std::isnan(b));
    default: break;
  }
  TENON_ASSERT(false, "operation {} is no comparison of reals", static_cast<int>(op));
}

bool apply_rounding(Op op, double x, int64_t& result) {
  double rounded = op == Op::Floor   ? std::floor(x)
                   : op == Op::Ceil  ? std::ceil(x)
                   : op == Op::Round ? std::nearbyint(x)
                                     : std::trunc(x);
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (!(rounded >= -kLimit && rounded < kLimit)) return false;
  result = static_cast<int64_t>(rounded);
  return true;
}

}  // namespace tenon::sym
