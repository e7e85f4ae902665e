// The evaluator against the standard library and against values worked out by hand.
#include <tenon/loop/evaluate.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

namespace tenon::loop {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = HUGE_VAL;

Number apply(OpCode code, Dtype dtype, std::initializer_list<Number> operands) {
  Op op{.code = code, .dtype = dtype};
  return evaluate_op(op, std::span<const Number>(operands.begin(), operands.size()));
}
double real(OpCode code, Dtype dtype, double a) { return apply(code, dtype, {Number::of(a)}).real; }
double real(OpCode code, Dtype dtype, double a, double b) {
  return apply(code, dtype, {Number::of(a), Number::of(b)}).real;
}
int64_t integer(OpCode code, Dtype dtype, int64_t a, int64_t b) {
  return apply(code, dtype, {Number::of(a), Number::of(b)}).integer;
}
int64_t integer(OpCode code, Dtype dtype, int64_t a) { return apply(code, dtype, {Number::of(a)}).integer; }
Number cast(Number value, Dtype dtype) {
  Op op{.code = OpCode::Cast, .dtype = compute_dtype(dtype)};
  op.has_rounding = is_half(dtype);
  op.rounded = dtype;
  return evaluate_op(op, std::array{value});
}

TEST(Evaluate, FloatArithmeticIsThatOfTheFormat) {
  std::mt19937 engine(3);
  for (int i = 0; i < 20000; ++i) {
    const float a = std::bit_cast<float>(static_cast<uint32_t>(engine()));
    const float b = std::bit_cast<float>(static_cast<uint32_t>(engine()));
    const auto same = [&](double got, float expected) {
      return std::isnan(expected) ? std::isnan(got)
                                  : std::bit_cast<uint64_t>(got) == std::bit_cast<uint64_t>(double{expected});
    };
    ASSERT_TRUE(same(real(OpCode::Add, kFloat32, a, b), a + b)) << a << " " << b;
    ASSERT_TRUE(same(real(OpCode::Sub, kFloat32, a, b), a - b)) << a << " " << b;
    ASSERT_TRUE(same(real(OpCode::Mul, kFloat32, a, b), a * b)) << a << " " << b;
    ASSERT_TRUE(same(real(OpCode::Div, kFloat32, a, b), a / b)) << a << " " << b;
    ASSERT_TRUE(same(real(OpCode::Rem, kFloat32, a, b), std::fmod(a, b))) << a << " " << b;
    ASSERT_TRUE(same(real(OpCode::Sqrt, kFloat32, std::abs(a)), std::sqrt(std::abs(a)))) << a;
    ASSERT_TRUE(same(real(OpCode::Reciprocal, kFloat32, a), 1.0f / a)) << a;
  }
  EXPECT_EQ(real(OpCode::Add, kFloat32, 16777216, 1), 16777216);
  EXPECT_EQ(real(OpCode::Add, kFloat64, 16777216, 1), 16777217);
}

TEST(Evaluate, MathFunctionsAreThoseOfTheLibrary) {
  struct Case {
    OpCode code;
    float (*narrow)(float);
    double (*wide)(double);
    double low, high;
  };
  const Case cases[] = {
      {OpCode::Exp, std::exp, std::exp, -80, 80},         {OpCode::Exp2, std::exp2, std::exp2, -100, 100},
      {OpCode::Expm1, std::expm1, std::expm1, -10, 80},   {OpCode::Log, std::log, std::log, 1e-6, 1e6},
      {OpCode::Log2, std::log2, std::log2, 1e-6, 1e6},    {OpCode::Log10, std::log10, std::log10, 1e-6, 1e6},
      {OpCode::Log1p, std::log1p, std::log1p, -0.9, 1e6}, {OpCode::Sin, std::sin, std::sin, -100, 100},
      {OpCode::Cos, std::cos, std::cos, -100, 100},       {OpCode::Tan, std::tan, std::tan, -100, 100},
      {OpCode::Asin, std::asin, std::asin, -1, 1},        {OpCode::Acos, std::acos, std::acos, -1, 1},
      {OpCode::Atan, std::atan, std::atan, -100, 100},    {OpCode::Sinh, std::sinh, std::sinh, -50, 50},
      {OpCode::Cosh, std::cosh, std::cosh, -50, 50},      {OpCode::Tanh, std::tanh, std::tanh, -5, 5},
      {OpCode::Asinh, std::asinh, std::asinh, -50, 50},   {OpCode::Acosh, std::acosh, std::acosh, 1, 50},
      {OpCode::Atanh, std::atanh, std::atanh, -1, 1},     {OpCode::Erf, std::erf, std::erf, -4, 4},
      {OpCode::Erfc, std::erfc, std::erfc, -4, 8},        {OpCode::LogGamma, std::lgamma, std::lgamma, -9.5, 90},
  };
  std::mt19937 engine(5);
  for (const Case& c : cases) {
    EXPECT_TRUE(traits(c.code).transcendental) << traits(c.code).name;
    std::uniform_real_distribution<double> numbers(c.low, c.high);
    for (int i = 0; i < 200; ++i) {
      const double x = numbers(engine);
      const float narrow = static_cast<float>(x);
      EXPECT_DOUBLE_EQ(real(c.code, kFloat64, x), c.wide(x)) << traits(c.code).name << " " << x;
      EXPECT_FLOAT_EQ(static_cast<float>(real(c.code, kFloat32, narrow)), c.narrow(narrow)) << traits(c.code).name;
    }
    EXPECT_TRUE(std::isnan(real(c.code, kFloat32, kNan))) << traits(c.code).name;
  }
  EXPECT_DOUBLE_EQ(real(OpCode::Sigmoid, kFloat64, 2), 0.88079707797788243);
  EXPECT_EQ(real(OpCode::Sigmoid, kFloat32, -1000), 0);
  EXPECT_DOUBLE_EQ(real(OpCode::Pow, kFloat64, 2.5, -3), 0.064);
  EXPECT_DOUBLE_EQ(real(OpCode::Atan2, kFloat64, 1, -1), 2.3561944901923448);
  EXPECT_EQ(real(OpCode::Rsqrt, kFloat32, 4), 0.5);
}

TEST(Evaluate, RoundingFunctions) {
  EXPECT_EQ(real(OpCode::Round, kFloat32, 2.5), 2);
  EXPECT_EQ(real(OpCode::Round, kFloat32, 3.5), 4);
  EXPECT_EQ(real(OpCode::Round, kFloat64, -0.5), 0);
  EXPECT_TRUE(std::signbit(real(OpCode::Round, kFloat64, -0.5)));
  EXPECT_EQ(real(OpCode::Floor, kFloat32, -1.5), -2);
  EXPECT_EQ(real(OpCode::Ceil, kFloat32, -1.5), -1);
  EXPECT_EQ(real(OpCode::Trunc, kFloat32, -1.5), -1);
  EXPECT_EQ(real(OpCode::Sign, kFloat32, -3), -1);
  EXPECT_EQ(real(OpCode::Sign, kFloat32, kNan), 0);
  EXPECT_EQ(real(OpCode::Sign, kFloat32, -0.0), 0);
}

TEST(Evaluate, FloatDivisionWithRemainder) {
  EXPECT_EQ(real(OpCode::Mod, kFloat64, -7, 3), 2);
  EXPECT_EQ(real(OpCode::Mod, kFloat64, 7, -3), -2);
  EXPECT_EQ(real(OpCode::Rem, kFloat64, -7, 3), -1);
  EXPECT_EQ(real(OpCode::FloorDiv, kFloat64, -7, 2), -4);
  EXPECT_EQ(real(OpCode::Mod, kFloat64, -1, kInf), kInf);
  EXPECT_TRUE(std::isnan(real(OpCode::Mod, kFloat32, 1, 0)));
}

TEST(Evaluate, ExtremaPropagateNan) {
  for (OpCode code : {OpCode::Max, OpCode::Min}) {
    EXPECT_TRUE(std::isnan(real(code, kFloat32, kNan, 1)));
    EXPECT_TRUE(std::isnan(real(code, kFloat32, 1, kNan)));
    EXPECT_TRUE(std::signbit(real(code, kFloat32, 0.0, -0.0))) << "of zeros the second";
    EXPECT_FALSE(std::signbit(real(code, kFloat32, -0.0, 0.0)));
  }
  EXPECT_EQ(real(OpCode::Max, kFloat64, 1, 2), 2);
  EXPECT_EQ(real(OpCode::Min, kFloat64, 1, 2), 1);
}

TEST(Evaluate, IntegersWrapAtTheirWidth) {
  EXPECT_EQ(integer(OpCode::Add, kInt8, 127, 1), -128);
  EXPECT_EQ(integer(OpCode::Add, kUInt8, 255, 1), 0);
  EXPECT_EQ(integer(OpCode::Sub, kUInt8, 0, 1), 255);
  EXPECT_EQ(integer(OpCode::Mul, kInt16, 300, 300), 90000 - 65536);
  EXPECT_EQ(integer(OpCode::Mul, kInt32, INT32_MAX, 2), -2);
  EXPECT_EQ(integer(OpCode::Add, kInt64, INT64_MAX, 1), INT64_MIN);
  EXPECT_EQ(integer(OpCode::Neg, kInt8, -128), -128);
  EXPECT_EQ(integer(OpCode::Neg, kUInt8, 1), 255);
  EXPECT_EQ(integer(OpCode::Abs, kInt64, INT64_MIN), INT64_MIN);
  EXPECT_EQ(integer(OpCode::Not, kUInt8, 1), 254);
  EXPECT_EQ(integer(OpCode::Not, kInt32, 1), -2);
  EXPECT_EQ(integer(OpCode::Not, kBool, 1), 0);
  EXPECT_EQ(integer(OpCode::Sign, kInt16, -9), -1);
}

TEST(Evaluate, IntegerDivision) {
  EXPECT_EQ(integer(OpCode::Div, kInt32, -7, 2), -3);
  EXPECT_EQ(integer(OpCode::FloorDiv, kInt32, -7, 2), -4);
  EXPECT_EQ(integer(OpCode::Rem, kInt32, -7, 2), -1);
  EXPECT_EQ(integer(OpCode::Mod, kInt32, -7, 2), 1);
  EXPECT_EQ(integer(OpCode::Mod, kInt32, 7, -2), -1);
  EXPECT_EQ(integer(OpCode::Div, kInt8, -128, -1), -128);
  EXPECT_EQ(integer(OpCode::FloorDiv, kInt64, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(integer(OpCode::Rem, kInt64, INT64_MIN, -1), 0);
  for (OpCode code : {OpCode::Div, OpCode::FloorDiv, OpCode::Rem, OpCode::Mod}) {
    EXPECT_EQ(integer(code, kInt32, 5, 0), 0) << traits(code).name;
    for (int64_t a = -20; a <= 20; ++a) {
      for (int64_t b : {-7, -3, -1, 1, 2, 5}) {
        const double quotient = static_cast<double>(a) / static_cast<double>(b);
        const int64_t floored = static_cast<int64_t>(std::floor(quotient)), cut = static_cast<int64_t>(quotient);
        const int64_t expected = code == OpCode::Div        ? cut
                                 : code == OpCode::FloorDiv ? floored
                                 : code == OpCode::Rem      ? a - cut * b
                                                            : a - floored * b;
        EXPECT_EQ(integer(code, kInt16, a, b), expected) << traits(code).name << " " << a << " " << b;
      }
    }
  }
  EXPECT_EQ(integer(OpCode::Div, kUInt8, 200, 100), 2) << "unsigned";
}

TEST(Evaluate, IntegerPowersAndShifts) {
  EXPECT_EQ(integer(OpCode::Pow, kInt64, 3, 13), 1594323);
  EXPECT_EQ(integer(OpCode::Pow, kInt8, 2, 7), -128);
  EXPECT_EQ(integer(OpCode::Pow, kInt32, 0, 0), 1);
  EXPECT_EQ(integer(OpCode::Pow, kInt32, -1, -3), -1);
  EXPECT_EQ(integer(OpCode::Pow, kInt32, 1, -3), 1);
  EXPECT_EQ(integer(OpCode::Pow, kInt32, 2, -3), 0);
  EXPECT_EQ(integer(OpCode::Shl, kInt32, 3, 4), 48);
  EXPECT_EQ(integer(OpCode::Shl, kInt32, 1, 31), INT32_MIN);
  EXPECT_EQ(integer(OpCode::Shl, kInt32, 1, 32), 0);
  EXPECT_EQ(integer(OpCode::Shl, kInt32, 1, -1), 0);
  EXPECT_EQ(integer(OpCode::Shr, kInt8, -128, 3), -16);
  EXPECT_EQ(integer(OpCode::Shr, kUInt8, 128, 3), 16);
  EXPECT_EQ(integer(OpCode::Shr, kInt16, -5, 40), -1);
  EXPECT_EQ(integer(OpCode::And, kInt32, 12, 10), 8);
  EXPECT_EQ(integer(OpCode::Or, kInt32, 12, 10), 14);
  EXPECT_EQ(integer(OpCode::Xor, kBool, 1, 1), 0);
}

TEST(Evaluate, Comparisons) {
  EXPECT_EQ(integer(OpCode::Lt, kBool, 1, 200), 1);
  EXPECT_EQ(apply(OpCode::Lt, kBool, {Number::of(kNan), Number::of(1.0)}).integer, 0);
  EXPECT_EQ(apply(OpCode::Ne, kBool, {Number::of(kNan), Number::of(kNan)}).integer, 1);
  EXPECT_EQ(apply(OpCode::Eq, kBool, {Number::of(0.0), Number::of(-0.0)}).integer, 1);
  EXPECT_EQ(apply(OpCode::IsNan, kBool, {Number::of(kNan)}).integer, 1);
  EXPECT_EQ(apply(OpCode::IsNan, kBool, {Number::of(kInf)}).integer, 0);
  EXPECT_EQ(apply(OpCode::Ge, kBool, {Number::of(2.0), Number::of(2.0)}).integer, 1);
  EXPECT_EQ(
      apply(OpCode::Select, kInt32, {Number::of(int64_t{0}), Number::of(int64_t{5}), Number::of(int64_t{6})}).integer,
      6);
}

TEST(Evaluate, CastsToIntegers) {
  EXPECT_EQ(cast(Number::of(-2.9), kInt32).integer, -2);
  EXPECT_EQ(cast(Number::of(kNan), kInt64).integer, 0);
  EXPECT_EQ(cast(Number::of(1e30), kInt32).integer, INT32_MAX);
  EXPECT_EQ(cast(Number::of(-kInf), kInt32).integer, INT32_MIN);
  EXPECT_EQ(cast(Number::of(1e30), kInt64).integer, INT64_MAX);
  EXPECT_EQ(cast(Number::of(-1e30), kInt64).integer, INT64_MIN);
  EXPECT_EQ(cast(Number::of(300.7), kUInt8).integer, 44) << "wraps from int32";
  EXPECT_EQ(cast(Number::of(-1.0), kUInt8).integer, 255);
  EXPECT_EQ(cast(Number::of(1e30), kInt8).integer, -1) << "saturates to int32, whose low byte is 0xFF";
  EXPECT_EQ(cast(Number::of(40000.0), kInt16).integer, 40000 - 65536);
  EXPECT_EQ(cast(Number::of(int64_t{511}), kInt8).integer, -1);
  EXPECT_EQ(cast(Number::of(0.1), kBool).integer, 1);
  EXPECT_EQ(cast(Number::of(kNan), kBool).integer, 1);
  EXPECT_EQ(cast(Number::of(-0.0), kBool).integer, 0);
  EXPECT_EQ(cast(Number::of(int64_t{256}), kBool).integer, 1);
}

TEST(Evaluate, CastsToFloats) {
  EXPECT_EQ(cast(Number::of(0.1), kFloat32).real, static_cast<double>(0.1f));
  EXPECT_EQ(cast(Number::of(int64_t{(1 << 24) + 1}), kFloat32).real, 1 << 24);
  // 2^24 + 1 in units of 2^30, plus 1: through double it would become a tie and round down.
  const int64_t above_tie = ((int64_t{1} << 24) + 1) * (int64_t{1} << 30) + 1;
  EXPECT_EQ(cast(Number::of(above_tie), kFloat32).real, static_cast<double>(static_cast<float>(above_tie)));
  EXPECT_EQ(cast(Number::of(1 + 0x1p-11 + 0x1p-40), kFloat16).real, 1 + 0x1p-10) << "once from float64";
  EXPECT_EQ(cast(Number::of(70000.0), kFloat16).real, kInf);
  EXPECT_EQ(cast(Number::of(0.1), kBFloat16).real, 0.10009765625);
  EXPECT_EQ(cast(Number::of(int64_t{3}), kFloat16).real, 3);
}

TEST(Evaluate, Reductions) {
  const auto reduced = [](ReduceKind kind, Dtype dtype, std::vector<double> values, bool pairwise = false) {
    Reduction reduction(kind, dtype, pairwise);
    for (double value : values) reduction.add(round_to(Number::of(value), dtype));
    return reduction.result().to_real();
  };
  EXPECT_EQ(reduced(ReduceKind::Sum, kFloat32, {}), 0);
  EXPECT_EQ(reduced(ReduceKind::Product, kFloat32, {}), 1);
  EXPECT_EQ(reduced(ReduceKind::Max, kFloat32, {}), -kInf);
  EXPECT_EQ(reduced(ReduceKind::Min, kInt8, {}), 127);
  EXPECT_EQ(reduced(ReduceKind::Max, kInt16, {}), -32768);
  EXPECT_EQ(reduced(ReduceKind::Min, kUInt8, {}), 255);
  EXPECT_EQ(reduced(ReduceKind::Max, kUInt8, {}), 0);
  EXPECT_EQ(Reduction(ReduceKind::Max, kInt64).result().integer, INT64_MIN);
  EXPECT_EQ(Reduction(ReduceKind::Min, kInt64).result().integer, INT64_MAX);
  EXPECT_EQ(reduced(ReduceKind::Sum, kInt8, {100, 100}), -56);
  // The order shows in what is rounded away: the third accumulator goes to the first, the fourth to the second.
  EXPECT_EQ(reduced(ReduceKind::Sum, kFloat32, {16777216, 1, 1}), 16777216);
  EXPECT_EQ(reduced(ReduceKind::Sum, kFloat32, {16777216, 1, 0, 1}), 16777218);
  EXPECT_EQ(reduced(ReduceKind::Sum, kFloat32, {16777216, 1, 1}, true), 16777216);
  EXPECT_EQ(reduced(ReduceKind::Sum, kFloat32, {16777216, 0, 1, 1}, true), 16777218);
  EXPECT_EQ(reduced(ReduceKind::Sum, kFloat32, {0, 0, 0, 16777216, 1, 1}, true), 16777218);
  EXPECT_EQ(reduced(ReduceKind::Sum, kFloat32, {}, true), 0);
  EXPECT_TRUE(std::isnan(reduced(ReduceKind::Max, kFloat32, {1, kNan, 2})));
  EXPECT_TRUE(std::isnan(reduced(ReduceKind::Min, kFloat64, {kNan, 1})));
  EXPECT_EQ(reduced(ReduceKind::Any, kBool, {0, 1, 0}), 1);
  EXPECT_EQ(reduced(ReduceKind::All, kBool, {1, 1, 0}), 0);
  EXPECT_EQ(reduced(ReduceKind::Product, kInt32, {3, 4, -2}), -24);
}

TEST(Evaluate, ElementsKeepTheirValue) {
  for (int i = 0; i < kDtypeCount; ++i) {
    const Dtype dtype = static_cast<Dtype>(i);
    unsigned char data[32] = {};
    store_element(data, dtype, 3, round_to(Number::of(int64_t{1}), dtype));
    EXPECT_EQ(load_element(data, dtype, 3).to_real(), 1) << name(dtype);
    EXPECT_EQ(load_element(data, dtype, 2).to_real(), 0) << name(dtype);
    if (traits(dtype).is_signed) {
      store_element(data, dtype, 1, round_to(Number::of(int64_t{-2}), dtype));
      EXPECT_EQ(load_element(data, dtype, 1).to_real(), -2) << name(dtype);
    }
  }
}

}  // namespace
}  // namespace tenon::loop
