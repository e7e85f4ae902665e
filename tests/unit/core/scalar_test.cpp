#include <tenon/core/scalar.h>

#include <gtest/gtest.h>

#include "error_of.h"

namespace tenon {
namespace {

TEST(ScalarTest, PlainKinds) {
  EXPECT_EQ(Scalar(true).str(), "true");
  EXPECT_EQ(Scalar(3).str(), "3");
  EXPECT_EQ(Scalar(2.0f).str(), "2.0");
  EXPECT_EQ(Scalar(3).sym_real().plain(), 3.0);
  EXPECT_EQ(Scalar(true).sym_real().plain(), 1.0);
  EXPECT_EQ(Scalar(2.5).to_int(), 2);
  EXPECT_EQ(Scalar(2.5).real(), 2.5);
  EXPECT_FALSE(Scalar(2.5).is_symbolic());
  EXPECT_FALSE(bool(Scalar(0.0).sym_bool()));
  EXPECT_THROW(Scalar(2.5).integer(), InternalError);
}

TEST(ScalarTest, SymbolicKinds) {
  auto env = make_ref<sym::ShapeEnv>();
  SymFloat f = env->create_real(2.5, "argument a");
  SymInt n = env->create_size(8, "size 0 of x");
  Scalar real(f), integer(n), flag(f > 2.0);
  EXPECT_TRUE(real.is_symbolic() && integer.is_symbolic() && flag.is_symbolic());
  EXPECT_EQ(real.kind(), Scalar::Kind::Real);
  EXPECT_EQ(flag.kind(), Scalar::Kind::Bool);
  EXPECT_EQ(real.dtype(), Dtype::Float32);
  EXPECT_EQ(flag.dtype(), Dtype::Bool);
  EXPECT_EQ(real.str(), "f0");
  EXPECT_EQ(integer.str(), "s0");
  EXPECT_EQ(flag.str(), "2.0 < f0");
  EXPECT_EQ(integer.sym_real().str(), "ToReal(s0)");
  EXPECT_EQ(flag.sym_real().hint(), 1.0);
  EXPECT_TRUE(env->guards().empty());
  EXPECT_TRUE(flag.to_bool());
  EXPECT_EQ(testing::without_lines(env->str()), "2.0 < f0  (from: a plain number taken)\n");
  EXPECT_EQ(real.to_double(), 2.5);
  EXPECT_EQ(env->guards().back().condition.str(), "Same(f0, 2.5)");
  EXPECT_EQ(integer.to_double(), 8.0);
  EXPECT_EQ(env->guards().back().condition.str(), "s0 == 8");
  EXPECT_FALSE(Scalar(env->create_real(3.0, "b")).sym_bool().maybe_constant().has_value());
}

}  // namespace
}  // namespace tenon
