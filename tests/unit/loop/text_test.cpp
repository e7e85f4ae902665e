// Printer and parser: what is printed parses to the same text.
#include "random_kernel.h"

#include <tenon/loop/builder.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tenon::loop {
namespace {

using sym::Expr;
using ::testing::HasSubstr;

void expect_round_trip(const Kernel& kernel) {
  const std::string text = to_string(kernel);
  EXPECT_EQ(to_string(parse(text)), text);
}

TEST(KernelText, SoftmaxReadsAsInTheHeader) {
  const std::string text =
      "kernel softmax_rows(x: f32 in [n0*n1], out: f32 out streaming; n0: int in [0, inf], n1: int in [2, 4096])\n"
      "  parallel i0 < n0 {\n"
      "    reduction vector i1 < n1 {\n"
      "      %0 = load x[n1*i0 + i1] : f32\n"
      "      %1 = reduce max %0 : f32\n"
      "    }\n"
      "    reduction vector i2 < n1 {\n"
      "      %2 = load x[n1*i0 + i2] : f32\n"
      "      %3 = sub %2, %1 : f32\n"
      "      %4 = exp %3 : f32\n"
      "      %5 = reduce sum %4 : f32\n"
      "    }\n"
      "    vector i3 < n1 {\n"
      "      %6 = load x[n1*i0 + i3] : f32\n"
      "      %7 = sub %6, %1 : f32\n"
      "      %8 = exp %7 : f32\n"
      "      %9 = div %8, %5 : f32\n"
      "      store out[n1*i0 + i3], %9\n"
      "    }\n"
      "  }\n";
  const Kernel kernel = parse(text);
  EXPECT_EQ(to_string(kernel), text);
  EXPECT_EQ(kernel.value_count, 10);
  EXPECT_EQ(kernel.pool->range(kernel.integers[1]), (sym::Range{2, 4096}));
  EXPECT_TRUE(kernel.buffers[1].streaming);
  EXPECT_EQ(kernel.buffers[0].extent, kernel.integers[0] * kernel.integers[1]);
}

TEST(KernelText, EveryKindOfOperation) {
  Builder b("all.kinds");
  const int x = b.buffer("x", kFloat16, BufferRole::In, b.pool().constant(10));
  const int y = b.buffer("y", kInt64, BufferRole::InOut), t = b.buffer("t", kBFloat16, BufferRole::Temporary);
  const int p = b.scalar("p", kFloat64), q = b.scalar("q", kInt32);
  const Expr n = b.integer("n", {-5, 9});
  b.check(b.parameter(q) > 0.0, "say \"no\" to \\ and\nnew lines");
  const Lane bits = b.random_bits(b.constant(-1, kInt64), b.constant(3, kInt64), n + 1);
  const Expr at = b.bind_index(bits, {0, 9});
  b.loop(max(n, b.pool().constant(0)), {}, [&](Expr i) {
    const Lane v = b.load(x, mod(i + at, b.pool().constant(10)));
    b.store(t, i, cast(cast(v, kFloat64) * b.parameter(p), kFloat16));
    b.store(y, i, select(isnan(v), b.load(y, i), b.index(i * n)));
  });
  const Kernel kernel = b.finish();
  expect_round_trip(kernel);
  const std::string text = to_string(kernel);
  EXPECT_THAT(text, HasSubstr("(x: f16 in [10], y: i64 inout, t: bf16 temporary; n: int in [-5, 9]; p: f64, q: i32)"));
  EXPECT_THAT(text, HasSubstr("message 0 \"say \\\"no\\\" to \\\\ and\\nnew lines\"\n"));
  EXPECT_THAT(text, HasSubstr("bind j0 = %5 in [0, 9]\n"));
  EXPECT_THAT(text, HasSubstr("to f16 : f32\n"));
  EXPECT_EQ(parse(text).checks, kernel.checks);
}

TEST(KernelText, ConstantsKeepTheirBits) {
  Builder b("k");
  const double reals[] = {0.0,      -0.0,      1.0,          0.1,     1e-310,      5e-324, 1.7976931348623157e308,
                          HUGE_VAL, -HUGE_VAL, std::nan(""), 3.0e-45, 123456789.0, 1.0 / 3};
  for (double real : reals) {
    b.constant(real, kFloat64);
    b.constant(real, kFloat32);
  }
  for (int64_t integer : {INT64_MIN, INT64_MAX, int64_t{0}, int64_t{-1}}) b.constant(integer, kInt64);
  const Kernel kernel = b.finish();
  const Kernel again = parse(to_string(kernel));
  ASSERT_EQ(kernel.body.size(), again.body.size());
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    const Op &a = std::get<Op>(kernel.body[i]), &c = std::get<Op>(again.body[i]);
    EXPECT_EQ(a.number.integer, c.number.integer);
    EXPECT_EQ(a.dtype, c.dtype);
    if (std::isnan(a.number.real)) {
      EXPECT_TRUE(std::isnan(c.number.real));
    } else {
      EXPECT_EQ(std::bit_cast<uint64_t>(a.number.real), std::bit_cast<uint64_t>(c.number.real)) << a.number.real;
    }
  }
  EXPECT_EQ(to_string(again), to_string(kernel));
}

TEST(KernelText, RandomKernelsRoundTrip) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const RandomKernel random = make_random_kernel(seed);
    SCOPED_TRACE(seed);
    expect_round_trip(random.kernel);
  }
}

TEST(KernelText, MistakesAreNamed) {
  const auto error_of = [](const std::string& text) -> std::string {
    try {
      parse(text);
    } catch (const Error& error) {
      return error.what();
    } catch (const InternalError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of(""), "[loop::parse] expected a kernel, got the end of the text");
  EXPECT_EQ(error_of("colonel k()"), "[loop::parse] line 1: expected \"kernel\", got \"colonel k()\"");
  EXPECT_EQ(error_of("kernel k()\n  %0 = fly : f32\n"),
            "[loop::parse] line 2: expected an operation, got \"fly : f32\"");
  EXPECT_EQ(error_of("kernel k()\n\n  %0 = load x[0] : f32\n"),
            "[loop::parse] line 3: expected a buffer, got \"x[0] : f32\"");
  EXPECT_EQ(error_of("kernel k(x: f33 in)\n"), "[loop::parse] line 1: expected a dtype, got \"f33 in\"");
  EXPECT_EQ(error_of("kernel k()\n  loop i < 3 {\n"),
            "[loop::parse] expected the end of a loop, got the end of the text");
  EXPECT_EQ(error_of("kernel k()\n  %0 = constant 1 : f32 and\n"),
            "[loop::parse] line 2: expected the end of the line, got \"and\"");
  EXPECT_THAT(error_of("kernel k(x: f32 in)\n  %0 = constant 1 : f64\n  store x[0], %0\n"),
              HasSubstr("no stores to inputs"));
}

}  // namespace
}  // namespace tenon::loop
