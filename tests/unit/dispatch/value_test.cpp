#include <tenon/dispatch/any_value.h>
#include <tenon/dispatch/call.h>
#include <tenon/dispatch/schema_of.h>

#include <gtest/gtest.h>

#include "error_of.h"

namespace tenon::dispatch {
namespace {

TEST(ValueTest, PlainNumbers) {
  Value real(2.5), flag(true), number(3);
  EXPECT_FALSE(real.is_symbolic() || flag.is_symbolic() || number.is_symbolic());
  EXPECT_EQ(from_value<SymFloat>(real).plain(), 2.5);
  EXPECT_EQ(from_value<SymFloat>(number).plain(), 3.0);
  EXPECT_TRUE(bool(from_value<SymBool>(flag)));
  EXPECT_EQ(real.scalar().str(), "2.5");
  EXPECT_EQ(Value(SymFloat(1.0)).real(), 1.0);
  EXPECT_TRUE(Value(SymBool(true)).boolean());
  EXPECT_THROW(number.sym_bool(), Error);
  EXPECT_THROW(Value("text").sym_float(), Error);
}

TEST(ValueTest, SymbolsStaySymbols) {
  auto env = make_ref<sym::ShapeEnv>();
  Value kept_real, kept_flag, kept_scalar;
  {
    SymFloat f = env->create_real(2.5, "argument a");
    SymBool flag = f > 2.0;
    Scalar scalar(flag);
    EXPECT_TRUE(Value(f).is_symbolic());
    EXPECT_EQ(Value(f).tag(), Value::Tag::Real);
    EXPECT_EQ(Value(flag).tag(), Value::Tag::Bool);
    kept_real = Value(f).own();
    kept_flag = Value(flag).own();
    kept_scalar = Value(scalar);
    EXPECT_EQ(Value(Scalar(f + 1)).own().sym_float().str(), "f0 + 1.0");
  }
  EXPECT_EQ(kept_real.sym_float().str(), "f0");
  EXPECT_EQ(kept_real.str(), "f0");
  EXPECT_EQ(kept_real.scalar().str(), "f0");
  EXPECT_TRUE(kept_real.scalar().is_symbolic());
  EXPECT_EQ(kept_flag.sym_bool().str(), "2.0 < f0");
  EXPECT_EQ(kept_scalar.sym_bool().str(), "2.0 < f0");
  EXPECT_EQ(kept_flag.sym_int().str(), "2.0 < f0");
  EXPECT_EQ(kept_flag.scalar().kind(), Scalar::Kind::Bool);
  Value copy = kept_real;
  EXPECT_EQ(copy.sym_float().str(), "f0");
  AnyValue any(kept_real), any_flag(kept_flag);
  EXPECT_EQ(any.str(), "f0");
  EXPECT_TRUE(any == AnyValue(kept_real));
  EXPECT_TRUE(any_flag == AnyValue(kept_flag));
  EXPECT_TRUE(env->guards().empty());
  EXPECT_TRUE(kept_flag.boolean());
  EXPECT_EQ(kept_real.real(), 2.5);
  EXPECT_EQ(testing::without_lines(env->str()), "2.0 < f0\nSame(f0, 2.5)  (from: a plain number taken)\n");
}

TEST(ValueTest, SchemasOfSymbolicNumbers) {
  using F = Tensor (*)(const Tensor&, SymFloat, const SymBool&, std::optional<SymFloat>, SymInt);
  EXPECT_EQ(schema_of<F>("lib::f", {.names = "x, scale=1.0, flag=False, extra=None, n=3"}).str(),
            "lib::f(Tensor x, float scale=1.0, bool flag=False, float? extra=None, SymInt n=3) -> Tensor");
}

}  // namespace
}  // namespace tenon::dispatch
