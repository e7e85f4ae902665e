#include <tenon/loop/evaluate.h>

#include "op_table.h"
#include "support/log_gamma.h"

#include <tenon/core/float8.h>
#include <tenon/core/philox.h>

#include <cmath>
#include <cstring>
#include <optional>

namespace tenon::loop {
namespace {

// An integer reduced to the width of its dtype.
int64_t wrap(uint64_t bits, Dtype dtype) {
  switch (dtype) {
    case Dtype::Bool: return bits != 0;
    case Dtype::UInt8: return static_cast<uint8_t>(bits);
    case Dtype::Int8: return static_cast<int8_t>(bits);
    case Dtype::Int16: return static_cast<int16_t>(bits);
    case Dtype::Int32: return static_cast<int32_t>(bits);
    default: return static_cast<int64_t>(bits);
  }
}

// Towards zero, saturated at the ends of int32 or int64; NaN gives 0.
int64_t truncate(double value, Dtype dtype) {
  if (std::isnan(value)) return 0;
  if (dtype == Dtype::Int64) {
    if (value >= 0x1p63) return INT64_MAX;
    return value < -0x1p63 ? INT64_MIN : static_cast<int64_t>(value);
  }
  if (value >= 0x1p31) return INT32_MAX;
  return value <= -0x1p31 ? INT32_MIN : static_cast<int64_t>(value);
}

float narrow(const Number& value) {
  // An int64 must not pass through double: that would round twice.
  return value.is_real ? static_cast<float>(value.real) : static_cast<float>(value.integer);
}

// Floats
// ---------------------------------------------------------------------------------------------------------------

// The math functions, in `Wide`: precise enough that rounding its result gives nearly always the nearest value.
template <typename Wide>
Wide math(OpCode code, Wide a, Wide b) {
  switch (code) {
    case OpCode::Exp: return std::exp(a);
    case OpCode::Exp2: return std::exp2(a);
    case OpCode::Expm1: return std::expm1(a);
    case OpCode::Log: return std::log(a);
    case OpCode::Log2: return std::log2(a);
    case OpCode::Log10: return std::log10(a);
    case OpCode::Log1p: return std::log1p(a);
    case OpCode::Sin: return std::sin(a);
    case OpCode::Cos: return std::cos(a);
    case OpCode::Tan: return std::tan(a);
    case OpCode::Asin: return std::asin(a);
    case OpCode::Acos: return std::acos(a);
    case OpCode::Atan: return std::atan(a);
    case OpCode::Sinh: return std::sinh(a);
    case OpCode::Cosh: return std::cosh(a);
    case OpCode::Tanh: return std::tanh(a);
    case OpCode::Asinh: return std::asinh(a);
    case OpCode::Acosh: return std::acosh(a);
    case OpCode::Atanh: return std::atanh(a);
    case OpCode::Erf: return std::erf(a);
    case OpCode::Erfc: return std::erfc(a);
    case OpCode::LogGamma: return support::log_gamma(a);
    case OpCode::Sigmoid: return 1 / (1 + std::exp(-a));
    case OpCode::Pow: return std::pow(a, b);
    case OpCode::Atan2: return std::atan2(a, b);
    default: break;
  }
  TENON_ASSERT(false, "{} is no math function", traits(code).name);
}

// What IEEE defines exactly, in the dtype's own format.
template <typename Real>
Real exact(OpCode code, Real a, Real b) {
  switch (code) {
    case OpCode::Neg: return -a;
    case OpCode::Abs: return std::abs(a);
    case OpCode::Sign: return static_cast<Real>((a > 0) - (a < 0));
    case OpCode::Floor: return std::floor(a);
    case OpCode::Ceil: return std::ceil(a);
    case OpCode::Trunc: return std::trunc(a);
    case OpCode::Round: return std::nearbyint(a);
    case OpCode::Sqrt: return std::sqrt(a);
    case OpCode::Rsqrt: return 1 / std::sqrt(a);
    case OpCode::Reciprocal: return 1 / a;
    case OpCode::Add: return a + b;
    case OpCode::Sub: return a - b;
    case OpCode::Mul: return a * b;
    case OpCode::Div: return a / b;
    case OpCode::FloorDiv: return std::floor(a / b);
    case OpCode::Rem: return std::fmod(a, b);
    case OpCode::Mod: {
      const Real r = std::fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case OpCode::Max: return a > b || std::isnan(a) ? a : b;
    case OpCode::Min: return a < b || std::isnan(a) ? a : b;
    default: break;
  }
  TENON_ASSERT(false, "{} is not defined for floats", traits(code).name);
}

double real_op(OpCode code, Dtype dtype, double a, double b) {
  if (dtype == Dtype::Float64) {
    if (!traits(code).transcendental) return exact<double>(code, a, b);
    return static_cast<double>(math<long double>(code, a, b));
  }
  if (!traits(code).transcendental) return exact<float>(code, static_cast<float>(a), static_cast<float>(b));
  return static_cast<float>(math<double>(code, a, b));
}

// Integers
// -------------------------------------------------------------------------------------------------------------

uint64_t integer_pow(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    return base == -1 ? (exponent % 2 == 0 ? 1 : ~uint64_t{0}) : 0;
  }
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (; exponent != 0; exponent >>= 1, factor *= factor) {
    if (exponent & 1) result *= factor;
  }
  return result;
}

// Computed in 64 bits; the caller wraps to the dtype, which is right since every operand fits its dtype.
uint64_t integer_op(OpCode code, Dtype dtype, int64_t a, int64_t b) {
  const uint64_t ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  const int64_t bits = size_of(dtype) * 8;
  const bool in_range = b >= 0 && b < bits;
  switch (code) {
    case OpCode::Neg: return 0 - ua;
    case OpCode::Abs: return a < 0 ? 0 - ua : ua;
    case OpCode::Sign: return static_cast<uint64_t>((a > 0) - (a < 0));
    case OpCode::Not: return dtype == Dtype::Bool ? uint64_t{a == 0} : ~ua;
    case OpCode::Add: return ua + ub;
    case OpCode::Sub: return ua - ub;
    case OpCode::Mul: return ua * ub;
    case OpCode::Pow: return integer_pow(a, b);
    case OpCode::Min: return a < b ? ua : ub;
    case OpCode::Max: return a > b ? ua : ub;
    case OpCode::And: return ua & ub;
    case OpCode::Or: return ua | ub;
    case OpCode::Xor: return ua ^ ub;
    case OpCode::Shl: return in_range ? ua << b : 0;
    case OpCode::Shr: return static_cast<uint64_t>(in_range ? a >> b : (a < 0 ? -1 : 0));
    default: break;
  }
  if (b == 0) return 0;
  // -1 apart: INT64_MIN / -1 traps.
  const uint64_t quotient = b == -1 ? 0 - ua : static_cast<uint64_t>(a / b);
  const int64_t remainder = b == -1 ? 0 : a % b;
  const bool below = remainder != 0 && (remainder < 0) != (b < 0);
  switch (code) {
    case OpCode::Div: return quotient;
    case OpCode::FloorDiv: return quotient - (below ? 1 : 0);
    case OpCode::Rem: return static_cast<uint64_t>(remainder);
    case OpCode::Mod: return static_cast<uint64_t>(below ? remainder + b : remainder);
    default: break;
  }
  TENON_ASSERT(false, "{} is not defined for integers", traits(code).name);
}

template <typename T>
bool compare(OpCode code, T a, T b) {
  switch (code) {
    case OpCode::Eq: return a == b;
    case OpCode::Ne: return a != b;
    case OpCode::Lt: return a < b;
    case OpCode::Le: return a <= b;
    case OpCode::Gt: return a > b;
    case OpCode::Ge: return a >= b;
    default: break;
  }
  TENON_ASSERT(false, "{} is no comparison", traits(code).name);
}

template <typename T>
T read(const void* data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void write(void* data, int64_t index, T value) {
  std::memcpy(static_cast<char*>(data) + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace

Number round_to(Number value, Dtype dtype) {
  switch (dtype) {
    case Dtype::Bool: return Number::of(int64_t{value.is_real ? value.real != 0 : value.integer != 0});
    case Dtype::Float64: return Number::of(value.to_real());
    case Dtype::Float32: return Number::of(static_cast<double>(narrow(value)));
    case Dtype::Float16:
      return Number::of(double{to_float(value.is_real ? to_half(value.real) : to_half(narrow(value)))});
    case Dtype::BFloat16:
      return Number::of(double{to_float(value.is_real ? to_bfloat16(value.real) : to_bfloat16(narrow(value)))});
    case Dtype::Float8E4M3FN:
      return Number::of(
          double{to_float(value.is_real ? to_float8_e4m3fn(value.real) : to_float8_e4m3fn(narrow(value)))});
    case Dtype::Float8E5M2:
      return Number::of(double{to_float(value.is_real ? to_float8_e5m2(value.real) : to_float8_e5m2(narrow(value)))});
    default: {
      const int64_t integer = value.is_real ? truncate(value.real, dtype) : value.integer;
      return Number::of(wrap(static_cast<uint64_t>(integer), dtype));
    }
  }
}

Number evaluate_op(const Op& op, std::span<const Number> operands) {
  TENON_ASSERT(operands.size() >= static_cast<size_t>(traits(op.code).operands), "{} got {} operands",
               traits(op.code).name, operands.size());
  switch (op.code) {
    case OpCode::Constant: return op.number;
    case OpCode::Random:
      TENON_ASSERT(operands.size() == 3, "random wants seed, offset and element");
      return Number::of(
          int64_t{philox_word(static_cast<uint64_t>(operands[0].integer), static_cast<uint64_t>(operands[1].integer),
                              static_cast<uint64_t>(operands[2].integer))});
    case OpCode::Cast: return round_to(operands[0], op.has_rounding ? op.rounded : op.dtype);
    case OpCode::Select: return operands[0].integer != 0 ? operands[1] : operands[2];
    case OpCode::IsNan: return Number::of(int64_t{std::isnan(operands[0].real)});
    default: break;
  }
  const OpRow& entry = row(op.code);
  TENON_ASSERT(entry.typing == Typing::Uniform || entry.typing == Typing::Predicate, "{} is not a function of values",
               entry.traits.name);
  const Number& a = operands[0];
  const Number& b = operands.size() > 1 ? operands[1] : operands[0];
  if (entry.typing == Typing::Predicate) {
    const bool holds = a.is_real ? compare(op.code, a.real, b.real) : compare(op.code, a.integer, b.integer);
    return Number::of(int64_t{holds});
  }
  if (is_floating(op.dtype)) return Number::of(real_op(op.code, op.dtype, a.real, b.real));
  return Number::of(wrap(integer_op(op.code, op.dtype, a.integer, b.integer), op.dtype));
}

Number identity_of(ReduceKind kind, Dtype dtype) {
  const bool real = is_floating(dtype);
  const int bits = static_cast<int>(size_of(dtype)) * 8;
  const bool is_signed = traits(dtype).is_signed;
  switch (kind) {
    case ReduceKind::Sum: return real ? Number::of(0.0) : Number::of(int64_t{0});
    case ReduceKind::Product: return real ? Number::of(1.0) : Number::of(int64_t{1});
    case ReduceKind::Max:
      return real ? Number::of(-HUGE_VAL) : Number::of(is_signed ? INT64_MIN >> (64 - bits) : int64_t{0});
    case ReduceKind::Min:
      return real ? Number::of(HUGE_VAL) : Number::of(INT64_MAX >> (64 - bits - (is_signed ? 0 : 1)));
    case ReduceKind::Any: return Number::of(int64_t{0});
    case ReduceKind::All: return Number::of(int64_t{1});
  }
  TENON_ASSERT(false, "reduction number {}", static_cast<int>(kind));
}

Reduction::Reduction(ReduceKind kind, Dtype dtype, bool pairwise)
    : kind_(kind),
      dtype_(dtype),
      ordered_(is_floating(dtype) && (kind == ReduceKind::Sum || kind == ReduceKind::Product)),
      pairwise_(pairwise && ordered_) {
  if (!pairwise_) numbers_.assign(ordered_ ? kAccumulators : 1, identity_of(kind, dtype));
}

Number Reduction::combine(Number a, Number b) const {
  constexpr OpCode kCombine[] = {OpCode::Add, OpCode::Mul, OpCode::Max, OpCode::Min, OpCode::Or, OpCode::And};
  return evaluate_op(Op{.code = kCombine[static_cast<int>(kind_)], .dtype = dtype_}, std::array{a, b});
}

void Reduction::add(Number value) {
  if (!pairwise_) {
    Number& running = numbers_[static_cast<size_t>(count_++) % numbers_.size()];
    running = combine(running, value);
    return;
  }
  // As a counter carries: two trees of one size become one.
  size_t level = 0;
  for (; (count_ >> level & 1) != 0; ++level) value = combine(numbers_[level], value);
  if (level == numbers_.size()) numbers_.emplace_back();
  numbers_[level] = value;
  ++count_;
}

Number Reduction::result() const {
  if (!pairwise_) {
    std::vector<Number> folded = numbers_;
    for (size_t width = folded.size() / 2; width > 0; width /= 2)
      for (size_t at = 0; at < width; ++at) folded[at] = combine(folded[at], folded[at + width]);
    return folded[0];
  }
  std::optional<Number> total;
  for (size_t level = 0; level < numbers_.size(); ++level)
    if ((count_ >> level & 1) != 0) total = total ? combine(numbers_[level], *total) : numbers_[level];
  return total.value_or(identity_of(kind_, dtype_));
}

Number load_element(const void* data, Dtype dtype, int64_t index) {
  switch (dtype) {
    case Dtype::Bool: return Number::of(int64_t{read<uint8_t>(data, index) != 0});
    case Dtype::UInt8: return Number::of(int64_t{read<uint8_t>(data, index)});
    case Dtype::Int8: return Number::of(int64_t{read<int8_t>(data, index)});
    case Dtype::Int16: return Number::of(int64_t{read<int16_t>(data, index)});
    case Dtype::Int32: return Number::of(int64_t{read<int32_t>(data, index)});
    case Dtype::Int64: return Number::of(read<int64_t>(data, index));
    case Dtype::Float16: return Number::of(double{to_float(read<Half>(data, index))});
    case Dtype::BFloat16: return Number::of(double{to_float(read<BFloat16>(data, index))});
    case Dtype::Float8E4M3FN: return Number::of(double{to_float(read<Float8E4M3FN>(data, index))});
    case Dtype::Float8E5M2: return Number::of(double{to_float(read<Float8E5M2>(data, index))});
    case Dtype::Float32: return Number::of(double{read<float>(data, index)});
    case Dtype::Float64: return Number::of(read<double>(data, index));
  }
  TENON_ASSERT(false, "dtype number {}", static_cast<int>(dtype));
}

void store_element(void* data, Dtype dtype, int64_t index, Number value) {
  switch (dtype) {
    case Dtype::Bool: return write(data, index, static_cast<uint8_t>(value.integer != 0));
    case Dtype::UInt8: return write(data, index, static_cast<uint8_t>(value.integer));
    case Dtype::Int8: return write(data, index, static_cast<int8_t>(value.integer));
    case Dtype::Int16: return write(data, index, static_cast<int16_t>(value.integer));
    case Dtype::Int32: return write(data, index, static_cast<int32_t>(value.integer));
    case Dtype::Int64: return write(data, index, value.integer);
    case Dtype::Float16: return write(data, index, to_half(value.real));
    case Dtype::BFloat16: return write(data, index, to_bfloat16(value.real));
    case Dtype::Float8E4M3FN: return write(data, index, to_float8_e4m3fn(value.real));
    case Dtype::Float8E5M2: return write(data, index, to_float8_e5m2(value.real));
    case Dtype::Float32: return write(data, index, static_cast<float>(value.real));
    case Dtype::Float64: return write(data, index, value.real);
  }
}

}  // namespace tenon::loop
