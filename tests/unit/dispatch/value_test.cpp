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

// The temporaries of a declaration end with it, before a call that is given what it declares.
TEST(ValueTest, OwnsTemporaries) {
  auto env = make_ref<sym::ShapeEnv>();
  const SymInt size = env->create_size(5, "argument a");
  const SymFloat factor = env->create_real(2.5, "argument b");
  const auto sizes = [&] { return SymInts({size, SymInt(3), size * 2}); };
  const std::string text(100, 'x');
  const Value values[] = {sizes(),
                          Ints({7, 8, 9, 10, 11, 12, 13}),
                          OptionalInts({1, 2}),
                          std::vector<Tensor>{ones({2}), ones({3})},
                          std::vector<std::optional<Tensor>>{ones({2}), std::nullopt},
                          std::vector<double>{0.5, 1.5},
                          text + "y",
                          size + 1,
                          factor * 2.0,
                          size > 3,
                          Scalar(size * 3),
                          std::optional<SymInts>(sizes()),
                          std::optional<Tensor>(ones({4}))};
  EXPECT_EQ(values[0].str(), "[s0, 3, 2*s0]");
  EXPECT_EQ(values[1].str(), "[7, 8, 9, 10, 11, 12, 13]");
  EXPECT_EQ(values[2].str(), "[1, 2]");
  EXPECT_EQ(values[3].tensors()[1].numel(), 3);
  EXPECT_FALSE(values[4].optional_tensors()[1]);
  EXPECT_EQ(values[5].reals()[1], 1.5);
  EXPECT_EQ(values[6].string(), text + "y");
  EXPECT_EQ(values[7].sym_int().str(), "s0 + 1");
  EXPECT_EQ(values[8].sym_float().str(), (factor * 2.0).str());
  EXPECT_EQ(values[9].sym_bool().str(), (size > 3).str());
  EXPECT_EQ(values[10].scalar().str(), (size * 3).str());
  EXPECT_EQ(values[11].str(), values[0].str());
  EXPECT_EQ(values[12].tensor().numel(), 4);
}

// What the caller holds is borrowed: no copy is made.
TEST(ValueTest, BorrowsWhatTheCallerHolds) {
  const std::vector<Tensor> list{ones({2})};
  const Ints sizes({7, 8});
  const std::string text = "text";
  EXPECT_EQ(Value(list).tensors().data(), list.data());
  EXPECT_EQ(Value(text).string().data(), text.data());
  EXPECT_NE(Value(list).own().tensors().data(), list.data());
  EXPECT_EQ(Value(sizes).str(), "[7, 8]");
}

TEST(ValueTest, SchemasOfSymbolicNumbers) {
  using F = Tensor (*)(const Tensor&, SymFloat, const SymBool&, std::optional<SymFloat>, SymInt);
  EXPECT_EQ(schema_of<F>("lib::f", {.names = "x, scale=1.0, flag=False, extra=None, n=3"}).str(),
            "lib::f(Tensor x, float scale=1.0, bool flag=False, float? extra=None, SymInt n=3) -> Tensor");
}

}  // namespace
}  // namespace tenon::dispatch
