#include <tenon/loop/builder.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon::loop {
namespace {

using sym::Expr;
using ::testing::HasSubstr;

template <typename Function>
std::string internal_error_of(Function function) {
  try {
    function();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "no InternalError";
}

TEST(Builder, MakesTheKernelOfTheHeader) {
  Builder b("relu");
  const int x = b.buffer("x", kFloat32, BufferRole::In), out = b.buffer("out", kFloat32, BufferRole::Out);
  const Expr n = b.integer("n");
  b.loop(n, {.parallel = true, .vector = true}, [&](Expr i) {
    const Lane v = b.load(x, i);
    b.store(out, i, maximum(v, b.constant(0.0, kFloat32)));
  });
  EXPECT_EQ(to_string(b.finish()),
            "kernel relu(x: f32 in, out: f32 out; n: int in [0, inf])\n"
            "  parallel vector i0 < n {\n"
            "    %0 = load x[i0] : f32\n"
            "    %1 = constant 0 : f32\n"
            "    %2 = max %0, %1 : f32\n"
            "    store out[i0], %2\n"
            "  }\n");
}

TEST(Builder, MultiplyingByOneIsNothing) {
  Builder b("k");
  const int x = b.buffer("x", kFloat32, BufferRole::In), n = b.buffer("n", kInt32, BufferRole::In);
  const Lane real = b.load(x, b.pool().constant(0)), whole = b.load(n, b.pool().constant(0));
  EXPECT_EQ((real * 1.0).id(), real.id());
  EXPECT_EQ((1.0 * real).id(), real.id());
  EXPECT_EQ((whole * b.constant(1, kInt32)).id(), whole.id());
  EXPECT_NE((real * 2.0).id(), real.id());
  EXPECT_NE((real * -1.0).id(), real.id());
  EXPECT_NE((real + 1.0).id(), real.id());
}

// A loop of at most one step, which may have none: that it has one is known inside of it and nowhere else
// (fuzz 955001333).
TEST(Builder, LoopsOfOneStepOrNoneTeachNothing) {
  Builder b("k");
  const int x = b.buffer("x", kFloat32, BufferRole::In), out = b.buffer("out", kFloat32, BufferRole::Out);
  const Expr n = b.integer("n", {0, 1});
  const Expr length = b.pool().constant(1) - n;
  Lane total;
  b.loop(length, {.reduction = true}, [&](Expr i) { total = b.reduce(ReduceKind::Sum, b.load(x, i)); });
  b.store(out, b.pool().constant(0), total);
  EXPECT_EQ(b.pool().range(n).min, 0);
  EXPECT_EQ(b.pool().range(n).max, 1);
  EXPECT_FALSE(b.pool().known(eq(length, b.pool().constant(1))).has_value());
}

TEST(Builder, IdenticalOperationsAreMadeOnce) {
  Builder b("k");
  const int x = b.buffer("x", kFloat32, BufferRole::In);
  const Expr n = b.integer("n");
  const Lane outside = b.constant(2.0, kFloat32);
  b.loop(n, {}, [&](Expr i) {
    const Lane a = b.load(x, i);
    EXPECT_EQ(b.load(x, i).id(), a.id());
    EXPECT_EQ(exp(a).id(), exp(a).id());
    EXPECT_EQ((a + a).id(), (a + a).id());
    EXPECT_NE((a + a).id(), (a - a).id());
    EXPECT_EQ(b.constant(2.0, kFloat32).id(), outside.id());
    EXPECT_NE(b.constant(2.0, kFloat64).id(), outside.id());
    EXPECT_NE(b.constant(0.0, kFloat32).id(), b.constant(-0.0, kFloat32).id());
    const double nan = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(b.constant(nan, kFloat32).id(), b.constant(nan, kFloat32).id());
    EXPECT_NE(cast(a, kFloat16).id(), cast(a, kBFloat16).id());
    EXPECT_EQ(b.bind_index(b.index(i)), b.bind_index(b.index(i)));
  });
  b.finish();
}

TEST(Builder, ValuesOfAnEndedLoopAreNotReused) {
  Builder b("k");
  const int x = b.buffer("x", kFloat32, BufferRole::In), out = b.buffer("out", kFloat32, BufferRole::Out);
  const Expr n = b.integer("n"), first = b.pool().constant(0);
  ValueId inside = kNone;
  b.loop(n, {}, [&](Expr) { inside = b.load(x, first).id(); });
  const Lane after = b.load(x, first);
  EXPECT_NE(after.id(), inside);
  b.store(out, first, after);
  b.finish();
}

TEST(Builder, AStoreToTheBufferMakesALoadNew) {
  Builder b("k");
  const int x = b.buffer("x", kFloat32, BufferRole::InOut), y = b.buffer("y", kFloat32, BufferRole::Out);
  const Expr n = b.integer("n");
  b.loop(n, {}, [&](Expr i) {
    const Lane before = b.load(x, i);
    b.store(y, i, before);
    EXPECT_EQ(b.load(x, i).id(), before.id());
    b.store(x, i, before + 1.0);
    EXPECT_NE(b.load(x, i).id(), before.id());
  });
  b.finish();
}

TEST(Builder, ReductionsOfOneLoopAreSharedAndOfAnotherNot) {
  Builder b("k");
  const int x = b.buffer("x", kFloat32, BufferRole::In), out = b.buffer("out", kFloat32, BufferRole::Out);
  const Expr n = b.integer("n"), first = b.pool().constant(0);
  const Lane value = b.load(x, first);
  Lane one, other;
  b.loop(n, {.reduction = true}, [&](Expr) {
    one = b.reduce(ReduceKind::Sum, value);
    EXPECT_EQ(b.reduce(ReduceKind::Sum, value).id(), one.id());
    EXPECT_NE(b.reduce(ReduceKind::Max, value).id(), one.id());
  });
  b.loop(n, {.reduction = true}, [&](Expr) { other = b.reduce(ReduceKind::Sum, value); });
  EXPECT_NE(one.id(), other.id());
  b.store(out, first, one + other);
  b.finish();
}

TEST(Builder, HalvesAreFloat32Lanes) {
  Builder b("k");
  const int x = b.buffer("x", kFloat16, BufferRole::In), out = b.buffer("out", kBFloat16, BufferRole::Out);
  const int wide = b.buffer("wide", kFloat64, BufferRole::In);
  const Expr zero = b.pool().constant(0);
  const Lane a = b.load(x, zero);
  EXPECT_EQ(a.dtype(), kFloat32);
  EXPECT_EQ(cast(a, kFloat16).id(), a.id()) << "a loaded half is rounded already";
  EXPECT_EQ(cast(a, kFloat32).id(), a.id());
  const Lane rounded = cast(a + a, kFloat16);
  EXPECT_EQ(rounded.dtype(), kFloat32);
  EXPECT_NE(rounded.id(), (a + a).id());
  EXPECT_EQ(cast(rounded, kFloat16).id(), rounded.id());
  b.store(out, zero, rounded);
  b.store(out, zero, b.load(wide, zero));
  EXPECT_EQ(b.constant(0.1, kFloat16).dtype(), kFloat32);
  EXPECT_EQ(to_string(b.finish()),
            "kernel k(x: f16 in, out: bf16 out, wide: f64 in)\n"
            "  %0 = load x[0] : f32\n"
            "  %1 = add %0, %0 : f32\n"
            "  %2 = cast %1 to f16 : f32\n"
            "  store out[0], %2\n"
            "  %3 = load wide[0] : f64\n"
            "  %4 = cast %3 to bf16 : f32\n"
            "  store out[0], %4\n"
            "  %5 = constant 0.099975586 : f32\n");
}

TEST(Builder, AStoreCasts) {
  Builder b("k");
  const int out = b.buffer("out", kInt32, BufferRole::Out);
  b.store(out, b.pool().constant(0), b.constant(1.5, kFloat32));
  EXPECT_THAT(to_string(b.finish()), HasSubstr("%1 = cast %0 : i32\n  store out[0], %1"));
}

TEST(Builder, NumbersTakeTheDtypeOfTheirNeighbour) {
  Builder b("k");
  const Lane i = b.constant(7, kInt32), f = b.constant(7.0, kFloat64);
  EXPECT_EQ(number(i, 3).dtype(), kInt32);
  EXPECT_EQ(number(f, 0.1).dtype(), kFloat64);
  EXPECT_EQ((1.0 - i).dtype(), kInt32);
  EXPECT_EQ((i < 3.0).dtype(), kBool);
  EXPECT_THAT(internal_error_of([&] { i + 0.5; }), HasSubstr("the constant 0.5 is no int32"));
}

TEST(Builder, ConstantsAreBroughtToTheirDtype) {
  Builder b("k");
  EXPECT_EQ(b.constant(0.1, kFloat32).id(), b.constant(static_cast<double>(0.1f), kFloat32).id());
  EXPECT_EQ(b.constant(257, kUInt8).id(), b.constant(1, kUInt8).id());
  EXPECT_EQ(b.constant(5, kBool).id(), b.constant(1, kBool).id());
  b.finish();
}

TEST(Builder, MistakesAreNamed) {
  Builder b("k");
  Builder foreign("other");
  const Lane i = b.constant(7, kInt32), f = b.constant(7.0, kFloat32), stranger = foreign.constant(1.0, kFloat32);
  EXPECT_THAT(internal_error_of([&] { i + f; }), HasSubstr("add of int32 and float32: operands need one dtype"));
  EXPECT_THAT(internal_error_of([&] { i < f; }), HasSubstr("lt of int32 and float32"));
  EXPECT_THAT(internal_error_of([&] { select(i, f, f); }),
              HasSubstr("select wants a bool as its condition, got int32"));
  EXPECT_THAT(internal_error_of([&] { exp(i); }), HasSubstr("exp is not defined for int32"));
  EXPECT_THAT(internal_error_of([&] { f & f; }), HasSubstr("and is not defined for float32"));
  EXPECT_THAT(internal_error_of([&] { f + stranger; }), HasSubstr("belongs to kernel other"));
  EXPECT_THAT(internal_error_of([&] { f + Lane(); }), HasSubstr("undefined"));
  EXPECT_THAT(internal_error_of([&] { b.reduce(ReduceKind::Sum, f); }), HasSubstr("outside of a reduction loop"));
  EXPECT_THAT(internal_error_of([&] { b.bind_index(f); }), HasSubstr("an index is int64, got float32"));
  EXPECT_THAT(internal_error_of([&] { b.check(f, "m"); }), HasSubstr("a checked condition is bool, got float32"));
  EXPECT_THAT(internal_error_of([&] { b.end_loop(); }), HasSubstr("end_loop without begin_loop"));
  EXPECT_THAT(internal_error_of([&] { b.scalar("s", kFloat16); }), HasSubstr("scalar parameter s is float16"));
  b.begin_loop(b.pool().constant(3), {});
  EXPECT_THAT(internal_error_of([&] { b.finish(); }), HasSubstr("1 loops are not ended"));
}

TEST(Builder, LoopsTeachThePool) {
  Builder b("k");
  const Expr n = b.integer("n"), m = b.integer("m", {2, 100});
  const Expr i = b.begin_loop(n, {}), j = b.begin_loop(m, {});
  EXPECT_EQ(mod(i, n), i);
  EXPECT_EQ(floor_div(i * m + j, m), i);
  EXPECT_EQ(b.pool().range(j), (sym::Range{0, 99}));
  EXPECT_EQ(b.pool().range(n).min, 0) << "a loop may be empty: that it ran says nothing after it";
  b.end_loop();
  b.end_loop();
  b.loop(b.pool().constant(0), {}, [](Expr) {});
  EXPECT_EQ(b.pool().known(ge(n, b.pool().constant(1))), std::nullopt);
  b.finish();
}

TEST(Builder, IndicesAvoidNamesThatAreTaken) {
  Builder b("k");
  const Expr n = b.integer("i0");
  b.loop(n, {}, [&](Expr i) { EXPECT_EQ(i.name(), "i1"); });
  b.finish();
}

}  // namespace
}  // namespace tenon::loop
