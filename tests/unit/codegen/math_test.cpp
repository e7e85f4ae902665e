// The math functions: within 4 ulp of the long double functions of libm over the whole range of their arguments, and
// the same bits wherever a value stands: in the unrolled body, in the masked rest, or in a loop without vectors.
#include <tenon/codegen/compile.h>
#include <tenon/codegen/object_cache.h>
#include <tenon/loop/builder.h>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace tenon::codegen {
namespace {

using loop::BufferRole;
using loop::Builder;
using loop::OpCode;
using sym::Expr;
using Wide = long double;

struct Function {
  OpCode code;
  Wide (*exact)(Wide, Wide);
};

const Function kFunctions[] = {
    {OpCode::Exp, [](Wide x, Wide) { return std::exp(x); }},
    {OpCode::Exp2, [](Wide x, Wide) { return std::exp2(x); }},
    {OpCode::Expm1, [](Wide x, Wide) { return std::expm1(x); }},
    {OpCode::Log, [](Wide x, Wide) { return std::log(x); }},
    {OpCode::Log2, [](Wide x, Wide) { return std::log2(x); }},
    {OpCode::Log10, [](Wide x, Wide) { return std::log10(x); }},
    {OpCode::Log1p, [](Wide x, Wide) { return std::log1p(x); }},
    {OpCode::Sin, [](Wide x, Wide) { return std::sin(x); }},
    {OpCode::Cos, [](Wide x, Wide) { return std::cos(x); }},
    {OpCode::Tan, [](Wide x, Wide) { return std::tan(x); }},
    {OpCode::Asin, [](Wide x, Wide) { return std::asin(x); }},
    {OpCode::Acos, [](Wide x, Wide) { return std::acos(x); }},
    {OpCode::Atan, [](Wide x, Wide) { return std::atan(x); }},
    {OpCode::Sinh, [](Wide x, Wide) { return std::sinh(x); }},
    {OpCode::Cosh, [](Wide x, Wide) { return std::cosh(x); }},
    {OpCode::Tanh, [](Wide x, Wide) { return std::tanh(x); }},
    {OpCode::Asinh, [](Wide x, Wide) { return std::asinh(x); }},
    {OpCode::Acosh, [](Wide x, Wide) { return std::acosh(x); }},
    {OpCode::Atanh, [](Wide x, Wide) { return std::atanh(x); }},
    {OpCode::Erf, [](Wide x, Wide) { return std::erf(x); }},
    {OpCode::Erfc, [](Wide x, Wide) { return std::erfc(x); }},
    {OpCode::LogGamma, [](Wide x, Wide) { return std::lgamma(x); }},
    {OpCode::Sigmoid, [](Wide x, Wide) { return 1 / (1 + std::exp(-x)); }},
    {OpCode::Pow, [](Wide x, Wide y) { return std::pow(x, y); }},
    {OpCode::Atan2, [](Wide x, Wide y) { return std::atan2(x, y); }},
};

template <typename T>
constexpr Dtype kDtype = std::is_same_v<T, float> ? kFloat32 : kFloat64;

template <typename T>
CompiledKernelRef kernel_of(OpCode code, bool vector) {
  Builder b(std::string(loop::traits(code).name));
  int x = b.buffer("x", kDtype<T>, BufferRole::In), y = b.buffer("y", kDtype<T>, BufferRole::In);
  int out = b.buffer("out", kDtype<T>, BufferRole::Out);
  Expr n = b.integer("n", {0, sym::Range::kMax});
  b.loop(n, {.vector = vector}, [&](Expr i) {
    auto first = b.load(x, i);
    b.store(out, i, loop::traits(code).operands == 1 ? b.unary(code, first) : b.binary(code, first, b.load(y, i)));
  });
  return compile(b.finish());
}

template <typename T>
void call(const CompiledKernelRef& kernel, const T* x, const T* y, T* out, int64_t count) {
  void* buffers[] = {const_cast<T*>(x), const_cast<T*>(y), out};
  int64_t failed = -1;
  kernel->entry(buffers, &count, nullptr, 0, count, &failed);
}

// Special values; numbers of every exponent; ordinary ones; neighbourhoods of points where formulas change.
template <typename T>
std::vector<T> samples(size_t count, uint64_t seed) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> result = {0,
                           T(-0.0),
                           1,
                           -1,
                           2,
                           -2,
                           T(0.5),
                           T(-0.5),
                           3,
                           -3,
                           10,
                           Limits::infinity(),
                           -Limits::infinity(),
                           Limits::quiet_NaN(),
                           Limits::min(),
                           -Limits::min(),
                           Limits::denorm_min(),
                           -Limits::denorm_min(),
                           Limits::max(),
                           Limits::lowest(),
                           Limits::epsilon(),
                           1 - Limits::epsilon(),
                           1 + Limits::epsilon(),
                           T(1e10),
                           T(-1e10),
                           T(1e30),
                           T(65536),
                           T(88.72),
                           T(-87.4),
                           T(-103.9),
                           T(709.7),
                           T(-745.1)};
  for (double point : {0.5, 0.70710678, 1.41421356, 0.41421356, 2.41421356, 0.78539816, 1.57079633, 3.14159265, 1.0,
                       4.0, 0.34657359, 6.28318531, 102943.70807}) {
    T value = static_cast<T>(point);
    for (int i = 0; i < 40; ++i) value = std::nextafter(value, T(0));
    for (int i = 0; i < 80; ++i, value = std::nextafter(value, T(1e30)))
      result.push_back(value), result.push_back(-value);
  }
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> unit(-1, 1);
  constexpr int lowest = Limits::min_exponent - Limits::digits, highest = Limits::max_exponent;
  while (result.size() < count) {
    switch (random() % 4) {
      case 0:
        result.push_back(
            static_cast<T>(std::ldexp(unit(random), lowest + static_cast<int>(random() % (highest - lowest)))));
        break;
      case 1: result.push_back(static_cast<T>(unit(random) * 20)); break;
      case 2: result.push_back(static_cast<T>(unit(random) * (sizeof(T) == 4 ? 100 : 750))); break;
      default: result.push_back(static_cast<T>(unit(random)));
    }
  }
  return result;
}

// How far off a result is, in units of the last place of the exact one.
template <typename T>
double ulps(T got, Wide exact) {
  const T rounded = static_cast<T>(exact);
  if (std::isnan(rounded)) return std::isnan(got) ? 0 : HUGE_VAL;
  if (got == rounded) return std::signbit(got) == std::signbit(rounded) ? 0 : HUGE_VAL;
  if (!std::isfinite(got) || std::isnan(got)) {
    // Overflow may come one step early.
    return std::isinf(got) && std::abs(exact) >= Wide(std::numeric_limits<T>::max()) *
                                                     (1 - 4 * Wide(std::numeric_limits<T>::epsilon()))
               ? 1
               : HUGE_VAL;
  }
  if (std::isinf(rounded)) return std::abs(got) == std::numeric_limits<T>::max() ? 1 : HUGE_VAL;
  const T magnitude = std::abs(rounded);
  const T unit = std::max(magnitude - std::nextafter(magnitude, T(0)), std::numeric_limits<T>::denorm_min());
  return static_cast<double>(std::abs(static_cast<Wide>(got) - exact) / static_cast<Wide>(unit));
}

class MathAtWidth : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    set_isa(GetParam());
    if (isa_bits() != GetParam()) GTEST_SKIP() << "this machine has no vectors of " << GetParam() << " bits";
    set_cache_folder("");
  }
  void TearDown() override { set_isa(0); }

  template <typename T>
  void check(size_t count) {
    const std::vector<T> x = samples<T>(count, 1);
    std::vector<T> y = samples<T>(count, 2);
    std::shuffle(y.begin(), y.end(), std::mt19937_64(3));
    for (const Function& function : kFunctions) {
      std::vector<T> out(count), plain(count), shifted(count);
      CompiledKernelRef kernel = kernel_of<T>(function.code, true);
      call(kernel, x.data(), y.data(), out.data(), static_cast<int64_t>(count));
      double worst = 0;
      size_t where = 0;
      for (size_t i = 0; i < count; ++i) {
        double error = ulps(out[i], function.exact(x[i], y[i]));
        if (error > worst) worst = error, where = i;
      }
      EXPECT_LE(worst, 4.0) << loop::traits(function.code).name << " of " << sizeof(T) * 8 << " bits at " << x[where]
                            << ", " << y[where] << ": " << out[where] << ", exactly "
                            << function.exact(x[where], y[where]);
      RecordProperty(std::string(loop::traits(function.code).name), std::to_string(worst));
      if (std::getenv("TENON_PRINT_ULPS"))
        std::printf("%-8s f%zu %.2f at %g\n", loop::traits(function.code).name.data(), sizeof(T) * 8, worst,
                    double(x[where]));

      call(kernel_of<T>(function.code, false), x.data(), y.data(), plain.data(), static_cast<int64_t>(count));
      for (size_t at = 0; at < count;) {
        // Pieces of odd lengths, so that every element is in the masked rest of some vector.
        size_t length = std::min(count - at, size_t{1} + at % 13);
        call(kernel, x.data() + at, y.data() + at, shifted.data() + at, static_cast<int64_t>(length));
        at += length;
      }
      for (size_t i = 0; i < count; ++i) {
        if (std::isnan(out[i])) continue;
        ASSERT_EQ(std::memcmp(&out[i], &plain[i], sizeof(T)), 0)
            << loop::traits(function.code).name << "(" << x[i] << ")";
        ASSERT_EQ(std::memcmp(&out[i], &shifted[i], sizeof(T)), 0)
            << loop::traits(function.code).name << "(" << x[i] << ")";
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Widths, MathAtWidth, testing::Values(512, 256, 128));

TEST_P(MathAtWidth, FloatFunctionsAreAccurate) { check<float>(20000); }
TEST_P(MathAtWidth, DoubleFunctionsAreAccurate) { check<double>(20000); }

}  // namespace
}  // namespace tenon::codegen
